package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"fermata/agent"
	"fermata/tools"
	"fermata/transcript"
)

// outputLines is how many lines of a running tool's output are shown; all of it is in the transcript.
const outputLines = 12

// thinking stands before reasoning where colour cannot tell it from the answer.
const thinking = "thinking: "

// argumentLines is how much of each argument a question shows.
const argumentLines = 16

// screen shows a session's events: on a terminal all in one place, else the answer's text on stdout and everything about
// it on stderr. Its methods may be called from any goroutine.
type screen struct {
	verbose bool

	mu    sync.Mutex
	turn  transcript.TurnID // only what this one says is the answer: another daemon may run the session's turn before it
	text  *sink             // what the model says
	note  *sink             // everything else; the same as text when both are one terminal
	part  transcript.PartType
	open  transcript.CallID // the call whose line the cursor is at the end of
	names map[transcript.CallID]string
	args  map[transcript.CallID]string
	lines map[transcript.CallID]int                // lines of output shown
	said  map[transcript.PartType]*strings.Builder // by the last answer
	why   string                                   // the last try failed
	lost  func()                                   // called once when writing what the model says fails; may be nil
}

// sink is one output with what is known of its cursor.
type sink struct {
	w       io.Writer
	tty     bool
	style   style
	midLine bool
	columns func() int // the terminal's width now; nil for no terminal
	wrap    wrapper    // of the text that is streaming
	err     error      // the first failure to write; nothing more is written
}

func newSink(f *os.File) *sink {
	to := &sink{w: f, tty: term.IsTerminal(int(f.Fd())), style: styleOf(f, os.Getenv)}
	if to.tty {
		to.columns = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width < 20 {
				return 0 // unknown, or too narrow to care
			}
			return width
		}
	}
	return to
}

func newScreen(out, err *os.File, verbose bool) *screen {
	s := &screen{verbose: verbose, text: newSink(out), note: newSink(err)}
	if s.text.tty && s.note.tty {
		s.note = s.text
	}
	s.begin("", nil)
	return s
}

// begin forgets the turn before. turn is "" for what is said outside of any. lost is called when nobody reads any more; it may be nil.
func (s *screen) begin(turn transcript.TurnID, lost func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn, s.lost = turn, lost
	s.args = map[transcript.CallID]string{}
	s.part, s.open, s.why = "", "", ""
	s.names, s.lines = map[transcript.CallID]string{}, map[transcript.CallID]int{}
	s.said = nil
}

// show shows one event.
func (s *screen) show(ev agent.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ev.Delta != nil:
		if ev.Delta.Turn == s.turn {
			s.delta(ev.Delta)
		}
	case ev.Output != nil:
		s.output(ev.Output)
	case ev.Retracted != nil:
		why := ": " + oneLine(ev.Retracted.Why, 0)
		if why == s.why {
			why = " as well"
		} else {
			s.why = why
		}
		what := fmt.Sprintf("try %d failed%s; trying again", ev.Retracted.Try, why)
		if s.said != nil {
			what += "; the text above is kept as an attempt"
		}
		s.line(s.note.style.warn(what))
		s.said = nil
	case ev.Stopping != nil:
		s.line(s.note.style.warn("stopping" + s.note.style.ellipsis()))
	case ev.Warning != nil:
		s.line(s.note.style.warn(oneLine(ev.Warning.Text, 0)))
	case ev.Entry != nil:
		s.entry(ev.Entry)
	}
}

func (s *screen) delta(d *agent.Delta) {
	if s.said == nil {
		s.said = map[transcript.PartType]*strings.Builder{transcript.PartText: {}, transcript.PartReasoning: {}}
	}
	s.said[d.Part].WriteString(d.Text)
	to, text := s.text, d.Text
	if d.Part == transcript.PartReasoning {
		to = s.note
		if !to.tty && !s.verbose {
			return
		}
	}
	col := 0
	if s.part != d.Part {
		s.lineStart()
		if s.part != "" && to.tty {
			s.write(to, "\n")
		}
		if d.Part == transcript.PartReasoning && !to.style.color {
			s.write(to, thinking)
			col = len(thinking)
		}
		s.part = d.Part
	}
	if to.tty {
		if !to.midLine {
			to.wrap = wrapper{width: to.columns(), col: col}
		}
		to.wrap.resize(to.columns())
		text = to.wrap.add(printable(text))
	}
	if d.Part == transcript.PartReasoning {
		text = to.style.dim(text)
	}
	s.write(to, text)
	if d.Text != "" {
		to.midLine = !strings.HasSuffix(d.Text, "\n")
	}
}

// output shows the first lines of what a running tool prints.
func (s *screen) output(o *agent.Output) {
	if !s.note.tty {
		return
	}
	for line := range strings.Lines(o.Text) {
		if s.lines[o.Call]++; s.lines[o.Call] > outputLines {
			return
		}
		line = "  " + oneLine(line, 200)
		if s.lines[o.Call] == outputLines {
			line = "  " + s.note.style.ellipsis()
		}
		s.line(s.note.style.dim(line))
	}
}

func (s *screen) entry(e *transcript.Entry) {
	switch b := e.Body.(type) {
	case *transcript.RequestSent:
		s.said = nil
		if s.verbose {
			s.line(s.note.style.dim("request " + string(b.Request) + " to " + oneLine(b.Route, 0)))
		}
	case *transcript.Answer:
		s.lineStart()
		s.part = ""
		for _, c := range b.Calls() {
			s.args[c.ID], s.names[c.ID], s.lines[c.ID] = c.Args, summary(c), 0
		}
	case *transcript.ToolStarted:
		if b.Summary != "" {
			s.names[b.Call] = b.Summary
		}
		if s.note.tty {
			s.lineStart()
			s.write(s.note, s.note.style.dot()+" "+s.name(b.Call, b.Name))
			s.note.midLine = true
			s.open = b.Call
		}
	case *transcript.ToolSettled:
		s.settled(b)
	case *transcript.MessageQueued, *transcript.MessageDelivered, *transcript.MessageReturned:
		s.message(b)
	}
}

func (s *screen) settled(b *transcript.ToolSettled) {
	state := s.note.style.state(b.State) + because(b.Cause)
	if b.Exit != nil && *b.Exit != 0 {
		state += fmt.Sprintf(" (exit status %d)", *b.Exit)
	}
	if s.open == b.Call && s.note.midLine {
		s.write(s.note, " "+s.note.style.dim(s.note.style.ellipsis())+" "+state+"\n")
		s.note.midLine, s.open = false, ""
		return
	}
	s.line(s.note.style.dot() + " " + s.name(b.Call, b.Name) + ": " + state)
}

// name is a call in one line.
func (s *screen) name(call transcript.CallID, tool string) string {
	if name := oneLine(s.names[call], 160); name != "" {
		return name
	}
	return oneLine(tool, 40)
}

// summary is a call in the words of its tool; "" when there is no such tool.
func summary(c transcript.Call) string {
	all := tools.All()
	i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Name == c.Name })
	if i < 0 {
		return ""
	}
	return all[i].Summary(json.RawMessage(c.Args))
}

// state is a tool's fate in words.
func (s style) state(state transcript.ToolState) string {
	switch word := strings.ReplaceAll(string(state), "_", " "); state {
	case transcript.ToolDone:
		return s.dim(word)
	case transcript.ToolFailed, transcript.ToolUnknown:
		return s.bad(word)
	default:
		return s.warn(word)
	}
}

// say writes a line of fermata's own.
func (s *screen) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(text)
}

// finish ends the line that the cursor is in.
func (s *screen) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineStart()
}

// argument is what else a call was given than a path or a command, as far as it fits: for the one who decides. It is ""
// when there is nothing. The order is the model's.
func (s *screen) argument(call transcript.CallID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(s.args[call]))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break // malformed: the call will fail by itself
		}
		var value any
		if d.Decode(&value) != nil {
			break
		}
		text, ok := value.(string)
		if !ok || name == "path" || name == "command" || text == "" {
			continue
		}
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		fmt.Fprintf(&b, "%s:\n", name)
		for i, line := range lines {
			if i == argumentLines {
				fmt.Fprintf(&b, "  %s %d more lines\n", s.note.style.ellipsis(), len(lines)-i)
				break
			}
			b.WriteString("  " + clip(line, 160) + "\n")
		}
	}
	return b.String()
}

// shown is what the last answer said so far.
func (s *screen) shown() (text, reasoning string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said == nil {
		return "", ""
	}
	return s.said[transcript.PartText].String(), s.said[transcript.PartReasoning].String()
}

// line writes a whole line of notes.
func (s *screen) line(text string) {
	s.lineStart()
	s.write(s.note, text+"\n")
}

// lineStart brings both outputs to the start of a line.
func (s *screen) lineStart() {
	for _, to := range []*sink{s.text, s.note} {
		if to.midLine {
			held := to.wrap.flush()
			if s.part == transcript.PartReasoning {
				held = to.style.dim(held)
			}
			s.write(to, held+"\n")
			to.midLine = false
		}
	}
	s.open = ""
}

// write remembers the first failure of an output. That of the text means that nobody reads any more.
func (s *screen) write(to *sink, text string) {
	if to.err != nil {
		return
	}
	if _, err := io.WriteString(to.w, text); err != nil {
		to.err = err
		if to == s.text && s.lost != nil {
			s.lost()
		}
	}
}

// unshown is why not all of the text could be shown; nil when it was, and when its reader wanted no more or its terminal is gone.
func (s *screen) unshown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text.tty || errors.Is(s.text.err, syscall.EPIPE) {
		return nil
	}
	return s.text.err
}
