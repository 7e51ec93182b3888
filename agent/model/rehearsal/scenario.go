package rehearsal

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"fermata/transcript"
)

// Scenario is a scripted model: replies, one for each request, each a list of steps. [Parse] documents how it is written.
type Scenario struct {
	Loop    bool // after the last reply comes the first again; without it the last one repeats
	Replies []Reply
}

// Reply answers one request.
type Reply struct {
	Match string // a substring that the request's last user message must have; "" matches any
	Steps []Step
}

// Step is one thing that a reply does. Which fields count depends on Do.
type Step struct {
	Do     string
	Text   string
	Name   string
	ID     string
	Count  int
	Number float64
	For    time.Duration
	Usage  *transcript.Usage
}

// Parse reads a scenario: one step a line, the first word says which. Lines of white space and lines that begin with
// "#" are skipped; indentation means nothing. TEXT is the rest of the line, or a Go string in double quotes.
//
//	loop                     at the top: begin again after the last reply
//	reply [TEXT]             begins a reply; with TEXT it answers requests whose last user message holds it
//
//	headers DURATION         wait before the response headers ("headers hang": for ever)
//	status CODE              another status than 200, with the header and body steps after it
//	header NAME: VALUE       a response header
//	body TEXT                the body of an answer that is no stream
//	html TEXT                the same with status 200 and content type text/html
//
//	rate N                   words per second from here on; 0, the default, is as fast as possible
//	size N                   bytes of a delta from here on; 0, the default, is a word
//	stamp                    from here on each delta of content begins with "@NANOSECONDS " (see Stamp)
//	say TEXT                 content
//	think TEXT               reasoning
//	words N                  N words of content: w1 w2 …
//	musing N                 N words of reasoning
//	call NAME ARGS           a whole tool call (ids call_1, call_2 …; "call id=x NAME ARGS" sets it, "id=" sends none)
//	cutcall NAME ARGS        its name and the first half of its arguments
//	usage IN [CACHED [OUT [REASONING]]]
//	finish REASON            instead of the "stop" or "tool_calls" that the end sends
//	wait DURATION            silence
//	comment TEXT             an SSE comment
//	event TEXT               an event with this data, as it is: {"error": …}
//	raw TEXT                 bytes, as they are
//
//	hang                     for ever, until the client closes
//	drop                     breaks the connection
//	truncate                 ends the stream without [DONE]
//
// A reply that comes to its end sends its finish reason, its usage and [DONE]. Requests take the replies in order, each
// the first unused one that matches.
func Parse(text string) (*Scenario, error) {
	var sc Scenario
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := sc.add(line); err != nil {
			return nil, fmt.Errorf("scenario line %d: %w", n, err)
		}
	}
	if len(sc.Replies) == 0 {
		return nil, fmt.Errorf("scenario: no reply")
	}
	return &sc, nil
}

// ParseFile reads the scenario in a file.
func ParseFile(name string) (*Scenario, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	return Parse(string(b))
}

func (sc *Scenario) add(line string) error {
	do, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	s := Step{Do: do}
	var err error
	switch do {
	case "loop":
		sc.Loop = true
		return nil
	case "reply":
		var r Reply
		r.Match, err = unquote(rest)
		sc.Replies = append(sc.Replies, r)
		return err
	case "headers", "wait":
		if do == "headers" && rest == "hang" {
			s.Do = "hang"
			break
		}
		s.For, err = time.ParseDuration(rest)
	case "say", "think", "body", "html", "comment", "event", "raw", "finish":
		s.Text, err = unquote(rest)
	case "header":
		name, value, ok := strings.Cut(rest, ":")
		if s.Name, s.Text = name, strings.TrimSpace(value); !ok {
			err = fmt.Errorf("%q is not NAME: VALUE", rest)
		}
	case "status", "size", "words", "musing":
		if s.Count, err = strconv.Atoi(rest); err == nil && (s.Count < 0 || (do == "status" && http.StatusText(s.Count) == "")) {
			err = fmt.Errorf("%s is out of range", rest)
		}
	case "rate":
		s.Number, err = strconv.ParseFloat(rest, 64)
	case "usage":
		s.Usage, err = parseUsage(rest)
	case "call", "cutcall":
		s.ID = "auto"
		if id, ok := strings.CutPrefix(rest, "id="); ok {
			s.ID, rest, _ = strings.Cut(id, " ")
		}
		s.Name, rest, _ = strings.Cut(rest, " ")
		if s.Name == "" {
			return fmt.Errorf("%s without a name", do)
		}
		s.Text, err = unquote(strings.TrimSpace(rest))
	case "stamp", "hang", "drop", "truncate":
	default:
		err = fmt.Errorf("no step %q", do)
	}
	if err != nil {
		return err
	}
	if len(sc.Replies) == 0 {
		return fmt.Errorf("%s before the first reply", do)
	}
	r := &sc.Replies[len(sc.Replies)-1]
	r.Steps = append(r.Steps, s)
	return nil
}

func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	u, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("%s is not a Go string", s)
	}
	return u, nil
}

func parseUsage(s string) (*transcript.Usage, error) {
	var u transcript.Usage
	into := []*int64{&u.Input, &u.Cached, &u.Output, &u.Reasoning}
	fields := strings.Fields(s)
	if len(fields) == 0 || len(fields) > len(into) {
		return nil, fmt.Errorf("usage is IN [CACHED [OUT [REASONING]]]")
	}
	for i, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", f)
		}
		*into[i] = n
	}
	return &u, nil
}
