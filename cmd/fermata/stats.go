package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"fermata/transcript"
)

func newStatsCommand(a *app) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count what became of stops, tools and tokens in this workspace",
		Long: "stats counts what the transcripts of this workspace say, with --all those of every workspace: how many stops were\n" +
			"redirects, who came back, how long a stop takes, what tools and tokens came to. It is computed on this machine when\n" +
			"it is asked for; nothing is sent anywhere. Each figure stands above its definition.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := transcript.StatsQuery{}
			if !all {
				workspace, err := a.workspace()
				if err != nil {
					return err
				}
				q.Workspace = workspace
			}
			store, err := a.readStore()
			if err != nil {
				return err
			}
			st, err := store.Stats(cmd.Context(), q)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.out, st)
			}
			page := statsPage{style: styleOf(a.out, environment), st: st}
			page.write()
			_, err = a.out.Write(page.Bytes())
			return err
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "count every workspace")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// statsPage is the statistics for people.
type statsPage struct {
	bytes.Buffer
	style style
	st    transcript.Stats
}

func (p *statsPage) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *statsPage) write() {
	where := "all workspaces"
	if p.st.Workspace != "" {
		where = oneLine(tilde(p.st.Workspace), 0)
	}
	p.line("%s: %s, %s", p.style.bold(where), plural(p.st.Sessions, "session"), plural(p.st.Turns, "turn"))
	p.line("Counted %s on this machine; nothing is sent anywhere.", p.st.At.Local().Format("2006-01-02 15:04"))
	if p.st.Damaged > 0 {
		p.line("%s", p.style.warn(plural(p.st.Damaged, "damaged entry")+" left out; run: fermata verify"))
	}
	if p.st.Turns == 0 {
		p.line("No turn is recorded here yet; fermata stats --all counts every workspace.")
		return
	}
	p.outcomes()
	p.redirects()
	p.returns()
	p.stops()
	p.tools()
	p.tokens()
}

// head begins a section.
func (p *statsPage) head(title string) { p.line("\n%s", p.style.bold(title)) }

// definition is the text beside a figure.
func (p *statsPage) definition(name string) {
	for _, line := range wrap(p.st.Definitions[name], 76) {
		p.line("  %s", p.style.dim(line))
	}
}

// row is one line of a chart: a name, a bar of part in of, and what it says.
func (p *statsPage) row(name string, part, of int, says string) {
	p.line("  %s %s %s", pad(name, 20), p.bar(part, of), says)
}

// share is a row that says the share, or that the cases are too few to tell.
func (p *statsPage) share(name string, s transcript.Share) {
	if s.Few() {
		p.line("  %s %s", pad(name, 20), tooFew(s.Of))
		return
	}
	p.row(name, s.Part, s.Of, fmt.Sprintf("%3d %%  (n=%d)", s.Percent(), s.Of))
}

func tooFew(n int) string { return fmt.Sprintf("too few to tell (n=%d)", n) }

// barWidth is the length of a whole bar in characters.
const barWidth = 24

// bar draws part of of. What is more than nothing is seen. A part beyond the whole, as a provider may count tokens, is drawn at its
// end.
func (p *statsPage) bar(part, of int) string {
	if of <= 0 {
		return strings.Repeat(" ", barWidth)
	}
	part = min(max(part, 0), of)
	if !p.style.unicode {
		n := (part*barWidth + of - 1) / of
		return strings.Repeat("#", n) + strings.Repeat(".", barWidth-n)
	}
	const blocks = "▏▎▍▌▋▊▉"
	eighths := (part*barWidth*8 + of - 1) / of
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune(blocks)[rest-1])
	}
	return pad(bar, barWidth)
}

func (p *statsPage) outcomes() {
	p.head("How turns ended")
	ended := 0
	for _, n := range p.st.Outcomes {
		ended += n
	}
	for _, o := range []transcript.Outcome{transcript.TurnCompleted, transcript.TurnStopped, transcript.TurnFailed, transcript.TurnAbandoned} {
		if n := p.st.Outcomes[o]; n > 0 {
			p.row(string(o), n, ended, strconv.Itoa(n))
		}
	}
	if open := p.st.Turns - ended; open > 0 {
		p.line("  %s %d", pad("not ended", 20), open)
	}
}

func (p *statsPage) redirects() {
	r, f := p.st.RedirectRate, p.st.FollowUps
	p.head("Stops that were followed by a message")
	p.share("within 60 s", r.Share)
	if r.Undecided > 0 || r.Others > 0 {
		p.line("  not counted: %d of the last minute, %d not by the user", r.Undecided, r.Others)
	}
	p.definition("redirectRate")

	p.head("What that message was")
	p.share("redirects", f.Redirects)
	if !f.Redirects.Few() {
		for _, k := range []struct {
			name string
			n    int
		}{{"  linked", f.Linked}, {"  quoting", f.Quoting}, {"  going on", f.GoingOn}, {"new topics", f.NewTopics}} {
			p.row(k.name, k.n, f.Redirects.Of, strconv.Itoa(k.n))
		}
	}
	p.definition("followUps")
}

func (p *statsPage) returns() {
	r := p.st.Returns
	p.head("Back within 7 days")
	p.share("stopped and left", r.StopAndLeft)
	p.share("stopped and went on", r.StopAndWentOn)
	p.share("never stopped", r.NeverStopped)
	if r.Young > 0 {
		p.line("  not counted: %s younger than 7 days", plural(r.Young, "session"))
	}
	p.definition("returns")
}

func (p *statsPage) stops() {
	l := p.st.StopLatency
	p.head("How long a stop takes")
	if l.N < p.st.MinCases {
		p.line("  %s", tooFew(l.N))
	} else {
		p.line("  half within %s, 95 %% within %s, the longest %s (n=%d)", duration(l.Median), duration(l.P95), duration(l.Max), l.N)
		before := int64(0)
		for _, b := range l.Buckets {
			name := "to " + duration(b.UpTo)
			if b.UpTo == 0 {
				name = "over " + duration(before)
			}
			before = b.UpTo
			p.row(name, b.N, l.N, strconv.Itoa(b.N))
		}
	}
	p.definition("stopLatency")

	k := p.st.Kept
	p.head("What stops kept")
	half := fmt.Sprintf("half of them %s or less", byteCount(k.Median))
	if k.Answers < p.st.MinCases {
		half = "their usual size: " + tooFew(k.Answers)
	}
	p.line("  %s in %s, %s; %s silent", byteCount(k.Bytes), plural(k.Answers, "answer"), half, plural(k.Silent, "stop"))
	p.definition("kept")
}

func (p *statsPage) tools() {
	if len(p.st.Tools) == 0 {
		return
	}
	p.head("Tools")
	states := []transcript.ToolState{transcript.ToolDone, transcript.ToolFailed, transcript.ToolStopped, transcript.ToolNotStarted, transcript.ToolUnknown}
	var head strings.Builder
	head.WriteString("  " + pad("", 20))
	for _, s := range states {
		head.WriteString(fmt.Sprintf("  %5s", s))
	}
	p.line("%s", head.String())
	for _, t := range p.st.Tools {
		name := oneLine(t.Name, 20)
		if t.Name == "" {
			name = "no such tool, other"
		}
		var line strings.Builder
		line.WriteString("  " + pad(name, 20))
		for _, s := range states {
			line.WriteString(fmt.Sprintf("  %*d", max(5, len(s)), t.States[s]))
		}
		if t.Late > 0 {
			line.WriteString(fmt.Sprintf("  (%d late)", t.Late))
		}
		p.line("%s", line.String())
	}
	p.definition("tools")
}

func (p *statsPage) tokens() {
	t := p.st.Tokens
	p.head("Tokens")
	most := max(t.Input, t.Triangle, t.Output)
	row := func(name string, n int64, note string) {
		// Scaled down, so that no product overflows.
		p.row(name, int(n*1000/max(1, most)), 1000, strings.TrimRight(fmt.Sprintf("%15s  %s", grouped(n), note), " "))
	}
	row("in", t.Input, "")
	row("  cached", t.Cached, percent(t.Cached, t.Input))
	row("  not cached", t.Input-t.Cached, "")
	row("triangle", t.Triangle, "")
	row("out", t.Output, "")
	p.line("  counted by the provider: %d of %s", t.Counted, plural(t.Requests, "request"))
	p.definition("tokens")
	p.definition("triangle")
}

func percent(part, of int64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%d %% of in", (200*part+of)/(2*of))
}

// pad fills a text with spaces up to n characters.
func pad(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(text)))
}

// grouped is a number with its digits in threes.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func duration(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(ms)/1000), ".0") + " s"
}

// byteCount is a number of bytes in powers of 1,000.
func byteCount(n int64) string {
	if n < 1000 {
		return plural(int(n), "byte")
	}
	v, unit := float64(n)/1000, 0
	for v >= 1000 && unit < 3 {
		v, unit = v/1000, unit+1
	}
	return fmt.Sprintf("%.1f %s", v, []string{"kB", "MB", "GB", "TB"}[unit])
}

// wrap breaks a text at spaces into lines of at most width characters; a longer word stands alone.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
