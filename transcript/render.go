package transcript

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// LineRef says that the entry Seq is shown from Line on, 1-based, up to the next LineRef's line.
type LineRef struct {
	Line int
	Seq  int64
}

// Markdown writes a session for people to read: each question with what came of it, and a question, its stop, its
// redirects and the answer as one thread (D5). Entries must be all of the session's, in order. What users and models said
// is shown as they said it, but for line ends, which become "\n"; whatever it leaves open (a code fence, a comment) is
// closed, so that it cannot swallow what follows. Control characters stay: a terminal needs them removed.
//
// The references come in order of lines. An error is w's.
func Markdown(w io.Writer, info SessionInfo, entries []Entry) ([]LineRef, error) {
	return MarkdownPage(w, info, entries, 0, 0)
}

// MarkdownPage is what Markdown shows of the entries above since and below until; until 0 is the end. The heading is only in
// a page from the start, since 0. What comes of an entry stands in others: entries must be all of the session's, or those
// that [Store.Page] picks.
func MarkdownPage(w io.Writer, info SessionInfo, entries []Entry, since, until int64) ([]LineRef, error) {
	r := &renderer{w: bufio.NewWriter(w), line: 1, past: pastOf(entries)}
	if since <= 0 {
		r.heading(info)
	}
	for _, e := range entries {
		if e.Seq > since && (until <= 0 || e.Seq < until) {
			r.entry(e)
		}
	}
	return r.refs, r.w.Flush()
}

// MarkdownSaid writes what [Store.News] told of an answer that no entry holds yet, nothing when that is nothing: it is being said,
// or the process that took it has died, and [Log.Repair] was not here since. It goes behind the last page.
func MarkdownSaid(w io.Writer, said []Said) error {
	var spoken Spoken
	for _, d := range said {
		if d.Text != "" {
			spoken.Say(d.Part, d.Text)
		}
	}
	r := &renderer{w: bufio.NewWriter(w), line: 1}
	if spoken.Len() > 0 {
		r.para("*Being said, or cut off when fermata itself ended:*")
		r.parts(spoken.Parts(), closed)
	}
	return r.w.Flush()
}

// renderer writes paragraphs, each followed by an empty line, and counts the lines.
type renderer struct {
	w    *bufio.Writer
	line int // that the next paragraph begins at
	refs []LineRef
	seq  int64 // of the entry being written, 0 when it has its reference
	past sessionPast
}

func (r *renderer) heading(info SessionInfo) {
	title := info.Title
	if title == "" {
		title = "Conversation"
	}
	r.para("# " + escapeInline(title))
	about := "Session " + codeSpan(string(info.ID))
	if info.Workspace != "" {
		about += " in " + codeSpan(info.Workspace)
	}
	r.para(about)
}

// para writes one paragraph. Errors are kept by the writer.
func (r *renderer) para(text string) {
	if r.seq > 0 {
		r.refs = append(r.refs, LineRef{r.line, r.seq})
		r.seq = 0
	}
	_, _ = r.w.WriteString(text)
	_, _ = r.w.WriteString("\n\n")
	r.line += strings.Count(text, "\n") + 2
}

// callKey names a call in its session: the ids that models give are unique within an answer only.
type callKey struct {
	turn TurnID
	step int
	call CallID
}

// sessionPast is what the entries after one say about it.
type sessionPast struct {
	admissions map[int64]*Admission // the last one about each answer
	verdicts   map[int64][]*Verdict // about each answer
	requests   map[RequestID]*RequestEnded
	started    map[callKey]Entry
	settled    map[callKey]Entry
	redirected map[TurnID]bool
	ended      map[TurnID]bool
	thread     map[TurnID]TurnID // the first turn of the thread that a turn belongs to
	messages   messageFates
	reverts    map[int64]*RevertEnded // of each revert.started
}

func pastOf(entries []Entry) sessionPast {
	p := sessionPast{
		map[int64]*Admission{}, map[int64][]*Verdict{}, map[RequestID]*RequestEnded{}, map[callKey]Entry{}, map[callKey]Entry{},
		map[TurnID]bool{}, map[TurnID]bool{}, map[TurnID]TurnID{}, messageFates{}, map[int64]*RevertEnded{},
	}
	for _, e := range entries {
		p.messages.add(e.Body)
		switch b := e.Body.(type) {
		case *TurnStarted:
			p.thread[b.Turn] = b.Turn
			if first, ok := p.thread[b.Retries]; ok {
				p.thread[b.Turn] = first
			}
			if b.Redirects != "" {
				p.redirected[b.Redirects] = true
				if first, ok := p.thread[b.Redirects]; ok {
					p.thread[b.Turn] = first
				}
			}
		case *Admission:
			p.admissions[b.Answer] = b
		case *Verdict:
			p.verdicts[b.Answer] = append(p.verdicts[b.Answer], b)
		case *RequestEnded:
			p.requests[b.Request] = b
		case *ToolStarted:
			p.started[callKey{b.Turn, b.Step, b.Call}] = e
		case *ToolSettled:
			if !b.Late {
				p.settled[callKey{b.Turn, b.Step, b.Call}] = e
			}
		case *RevertEnded:
			p.reverts[b.Revert] = b
		case *TurnEnded:
			p.ended[b.Turn] = true
		}
	}
	return p
}

func (r *renderer) entry(e Entry) {
	r.seq = e.Seq
	switch b := e.Body.(type) {
	case nil:
		r.para(fmt.Sprintf("**Entry %d is damaged and cannot be shown:** %s", e.Seq, escapeInline(e.Damaged)))
	case *SessionOpened:
		if b.Parent != "" {
			r.para(fmt.Sprintf("*Forked from session* %s *after its entry %d*", codeSpan(string(b.Parent)), b.ParentSeq))
		}
	case *TurnStarted:
		r.turn(b, e.At)
	case *EpochOpened:
		text := "Model " + b.Provider + "/" + b.Model
		if b.Reason != "first" {
			text += "; the model input begins anew: " + b.Reason
		}
		r.para(italic(text))
	case *RequestSent:
		r.request(b)
	case *Answer:
		r.answer(b, e.Seq)
	case *ToolSettled:
		if b.Late {
			r.para(italic("The result of "+b.Name+" came after all: "+fate(b)) + " " + codeSpan(string(b.Call)))
		}
	case *MessageQueued:
		r.queued(b)
	case *MessageDelivered:
		r.delivered(b)
	case *RevertStarted:
		r.reverted(b, e.Seq)
	case *TurnEnded:
		r.turnEnded(b)
	}
}

// turn heads a question. A redirect and a retry go on in their thread, one level down; what is retried stands there already.
func (r *renderer) turn(b *TurnStarted, at time.Time) {
	heading := "## You"
	if b.Redirects != "" {
		heading = "### You redirect"
		if r.past.thread[b.Turn] == b.Turn {
			heading = "## You redirect turn " + codeSpan(string(b.Redirects))
		}
	}
	retried := b.Retries != "" && r.past.thread[b.Turn] != b.Turn
	if retried {
		heading = "### You retry"
	} else if b.Retries != "" {
		heading = "## You retry turn " + codeSpan(string(b.Retries))
	}
	r.para(heading + ", " + at.UTC().Format("2006-01-02 15:04:05") + " UTC")
	if b.Notice != "" {
		r.para(italic(b.Notice))
	}
	if !retried {
		r.para(quote(said(b.Prompt)))
	}
}

// said is what the user said, with what was quoted in it.
func said(prompt []PromptPart) string {
	var parts []string
	for _, p := range prompt {
		text := closed(p.Text)
		if p.Type == "file" || p.Type == "selection" {
			text = fmt.Sprintf("%s, lines %d-%d:\n\n%s", codeSpan(p.Path), p.Start, p.End, fenced(p.Text))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n")
}

func (r *renderer) request(b *RequestSent) {
	text := "Request " + codeSpan(string(b.Request)) + " to " + escapeInline(b.Route)
	if b.Try > 1 {
		text += fmt.Sprintf(", try %d", b.Try)
	}
	if ended := r.past.requests[b.Request]; ended != nil {
		text += ": " + escapeInline(ended.Outcome)
		if ended.Error != "" {
			text += ", " + escapeInline(ended.Error)
		}
		if u := ended.Usage; u != nil {
			text += fmt.Sprintf("; tokens in %d (cached %d), out %d", u.Input, u.Cached, u.Output)
		}
	}
	r.para("<sub>" + text + "</sub>")
}

// answer shows what was said, then the calls with what became of them.
func (r *renderer) answer(b *Answer, seq int64) {
	admission := r.past.admissions[seq]
	attempt := admission == nil || !admission.Admitted
	switch {
	case attempt && b.State != Broken:
		r.para(r.withheld(b, admission))
	case attempt:
		text := "**Attempt, not part of the model input**"
		if b.Cause != "" {
			text += ": it broke off (" + escapeInline(b.Cause) + ")"
		}
		r.para(text)
	case b.State == Broken:
		r.para("*Broken off, and kept by you*")
	}
	checked := verdictLines(admission, r.past.verdicts[seq])
	show := closed
	if attempt {
		show = quote
	}
	r.parts(b.Parts, show)
	if checked != "" {
		r.para(checked)
	}
	calls := b.Calls()
	if len(calls) == 0 {
		return
	}
	answer, lines := seq, make([]string, len(calls))
	for i, c := range calls {
		lines[i], seq = r.call(b, c, answer, seq)
		r.refs = append(r.refs, LineRef{r.line + i, seq})
	}
	r.seq = 0 // an answer without text is where its first call is
	r.para(strings.Join(lines, "\n"))
}

// parts shows what was said, its text by show. Parts of one type that follow each other are one text.
func (r *renderer) parts(parts []Part, show func(string) string) {
	for i := 0; i < len(parts); {
		kind := parts[i].Type
		var text strings.Builder
		for ; i < len(parts) && parts[i].Type == kind; i++ {
			text.WriteString(parts[i].Text)
		}
		switch {
		case strings.TrimSpace(text.String()) == "":
		case kind == PartReasoning:
			r.para(quote("*Reasoning*\n\n" + text.String()))
		default:
			r.para(show(text.String()))
		}
	}
}

// call is the line of a call and the entry that says most about it. The line begins with "+" because models' own lists
// do not: a list of another sign does not go on in this one.
func (r *renderer) call(a *Answer, c Call, answer, seq int64) (string, int64) {
	key := callKey{a.Turn, a.Step, c.ID}
	what, state := c.Name, "not started yet"
	if e, ok := r.past.started[key]; ok {
		if s := e.Body.(*ToolStarted); s.Summary != "" {
			what = s.Summary
		}
		state, seq = "running", e.Seq
	}
	if e, ok := r.past.settled[key]; ok {
		state, seq = fate(e.Body.(*ToolSettled)), e.Seq
	} else if a := r.past.admissions[answer]; r.past.ended[key.turn] && (a == nil || !a.Admitted) {
		state = "not run, the answer is withheld"
	} else if r.past.ended[key.turn] {
		state = "no result recorded"
	}
	return "+ " + codeSpan(what) + ": " + state, seq
}

// fate is what became of a call, in words.
func fate(b *ToolSettled) string {
	text := strings.ReplaceAll(string(b.State), "_", " ")
	switch b.Cause {
	case CauseStoppedByUser:
		if b.State != ToolStopped { // that says it already
			text += ", stopped by you"
		}
	case CauseClientGone:
		text += ", the client had gone"
	case CauseShutdown:
		text += ", fermata was ending"
	case CausePermissionDenied:
		text += ", permission denied"
	case CauseTurnFailed:
		text += ", the turn had failed"
	case CauseDaemonDied:
		text += ", fermata had ended"
	}
	if b.Exit != nil {
		text += fmt.Sprintf(", exit status %d", *b.Exit)
	}
	if b.Millis > 0 {
		text += fmt.Sprintf(", %s", time.Duration(b.Millis)*time.Millisecond)
	}
	return text
}

func (r *renderer) turnEnded(b *TurnEnded) {
	switch b.Outcome {
	case TurnStopped:
		text := "*Stopped here*"
		if b.Silent {
			text = "*Stopped before anything was said*"
		}
		if b.Kept != nil {
			unit := "words"
			if b.Kept.Words == 1 {
				unit = "word"
			}
			text += fmt.Sprintf(" · %d %s kept", b.Kept.Words, unit)
		}
		switch b.Cause {
		case "client_gone":
			text += " · the client had gone"
		case "shutdown":
			text += " · fermata was ended"
		}
		if r.past.redirected[b.Turn] {
			text += " · replaced by the redirect"
		}
		r.para(text)
	case TurnFailed:
		r.para("*Failed:* " + escapeInline(strings.Join(slices.DeleteFunc([]string{b.Cause, b.Error}, func(s string) bool { return s == "" }), ": ")))
	case TurnAbandoned:
		r.para("*Abandoned: fermata ended before the turn did*")
	}
}

// italic is a text of fermata's own, on one line.
func italic(text string) string {
	return "*" + escapeInline(text) + "*"
}

var inlineEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "&", `\&`, "#", `\#`, "~", `\~`, "|", `\|`)

// escapeInline is text on one line that means itself.
func escapeInline(text string) string {
	return inlineEscapes.Replace(strings.Join(strings.Fields(text), " "))
}

// codeSpan shows text as code, on one line, whatever backticks it holds.
func codeSpan(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	ticks := strings.Repeat("`", longestRun(text, '`')+1)
	if len(ticks) == 1 && text != "" {
		return ticks + text + ticks
	}
	return ticks + " " + text + " " + ticks
}

// fenced shows text as a block of code, whatever fences it holds.
func fenced(text string) string {
	fence := strings.Repeat("`", max(longestRun(text, '`')+1, 3))
	return fence + "\n" + strings.TrimSuffix(newlines(text), "\n") + "\n" + fence
}

func longestRun(text string, c rune) int {
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// newlines makes every line end "\n": CommonMark takes a lone "\r" for one too.
func newlines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// quote puts a text into a block quote. Whatever it leaves open ends with the quote.
func quote(text string) string {
	lines := strings.Split(strings.TrimRight(newlines(text), "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight("> "+l, " ")
	}
	return strings.Join(lines, "\n")
}

// closed is a text followed by what ends the block it leaves open at its outermost level. Blocks within lists and quotes
// end with those.
func closed(text string) string {
	text = strings.TrimRight(newlines(text), "\n")
	end := ""
	for line := range strings.SplitSeq(text, "\n") {
		end = after(line, end)
	}
	if end == "" {
		return text
	}
	return text + "\n" + end
}

// htmlBlocks are the HTML blocks that only their own end ends (CommonMark, HTML blocks 1 to 5).
var htmlBlocks = [][2]string{
	{"<!--", "-->"}, {"<![cdata[", "]]>"}, {"<?", "?>"}, {"<!", ">"},
	{"<script", "</script>"}, {"<pre", "</pre>"}, {"<style", "</style>"}, {"<textarea", "</textarea>"},
}

// after follows one line: open is what ends the block that the line begins in, "" outside of one; the result is the
// same for the next line.
func after(line, open string) string {
	body := strings.TrimLeft(line, " ")
	indent := len(line) - len(body)
	if open != "" && (open[0] == '`' || open[0] == '~') {
		mark := body[:len(body)-len(strings.TrimLeft(body, open[:1]))]
		if indent < 4 && len(mark) >= len(open) && strings.TrimSpace(body[len(mark):]) == "" {
			return ""
		}
		return open
	}
	lower := strings.ToLower(body)
	if open != "" {
		if strings.Contains(lower, open) {
			return ""
		}
		return open
	}
	if indent > 3 || body == "" {
		return ""
	}
	for _, c := range []string{"`", "~"} {
		mark := body[:len(body)-len(strings.TrimLeft(body, c))]
		if len(mark) >= 3 && (c == "~" || !strings.Contains(body[len(mark):], "`")) {
			return mark
		}
	}
	for _, b := range htmlBlocks {
		if strings.HasPrefix(lower, b[0]) {
			if strings.Contains(lower[len(b[0]):], b[1]) {
				return ""
			}
			return b[1]
		}
	}
	return ""
}
