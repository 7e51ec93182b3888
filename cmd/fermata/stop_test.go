package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fermata/agent/model/rehearsal"
	"fermata/cmd/internal/peer"
)

// Each file of testdata/stop is a stop, or an end that nobody asked for, driven over LSP against the real binary and a
// real HTTP model. Its sections:
//
//	provider  the kind of provider that it is behind; "deepseek" without this section
//	model   the scenario that the model plays
//	when    the moment of the stop: "shown TEXT" (the text shown so far ends with it), "output TEXT" (of a tool),
//	        "request" (it has arrived whole), "question" (permission is asked for), "write" (start and stop in one
//	        write), "never"
//	queue   messages, one a line, that are queued right before the stop; with "write" in the same write. Optional
//	returned  what the replies to start and stop hand back of them, one a line: the text and the cause
//	shown   the reasoning and the text that the client was shown, as Go strings, "" for none
//	result  outcome and cause, then one line for each tool call: its id, state and cause
//	next    the messages of the next request, each as its exact JSON; … stands for any text
//
// guards P1, P2, S2, S3, S4, S5, S6, S7, S8, S10, S11, S14, F1, T1, T2, T3
func TestWhatTheClientWasShownIsWhatTheModelSeesNext(t *testing.T) {
	eachCase(t, "stop", playStop)
}

func playStop(t *testing.T, c map[string]string) {
	asked, answered := make(chan struct{}, 1), make(chan struct{})
	e := newUser(t, c["model"], "")
	if kind := strings.TrimSpace(c["provider"]); kind != "" {
		e.behind(kind)
	}
	e.start(peer.Options{Answer: func(method string, _ json.RawMessage) (any, *peer.Error) {
		if method != "fermata/permission" {
			return nil, nil
		}
		if strings.HasPrefix(c["when"], "question") {
			asked <- struct{}{}
			<-answered // the user is still thinking when the stop comes
		}
		return map[string]any{"answer": "once"}, nil
	}})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)

	how, text, _ := strings.Cut(strings.TrimSpace(c["when"]), " ")
	var start, stop string
	queue := func() (frames []byte, ids []string) {
		for line := range strings.Lines(c["queue"]) {
			f, id := e.Request("fermata/turn/queue", map[string]any{"session": session, "prompt": peer.Text(strings.TrimSpace(line))})
			frames, ids = append(frames, f...), append(ids, id)
		}
		return frames, ids
	}
	if how == "write" {
		a, startID := e.Request("fermata/turn/start", map[string]any{"session": session, "prompt": peer.Text("Count.")})
		b, stopID := e.Request("fermata/turn/stop", map[string]any{})
		q, _ := queue()
		e.Write(append(append(a, q...), b...))
		start, stop = startID, stopID
	} else {
		start = e.ask(session, "Count.")
	}
	switch how {
	case "shown":
		want, err := strconv.Unquote(text)
		if err != nil {
			t.Fatal(err)
		}
		all := ""
		e.Event(text, func(ev peer.Event) bool {
			if ev.Kind == "delta" {
				all += ev.Text
			}
			return strings.HasSuffix(all, want)
		})
	case "output":
		all := ""
		e.Event(text, func(ev peer.Event) bool {
			if ev.Kind == "tool.output" {
				all += ev.Text
			}
			return strings.Contains(all, text)
		})
	case "request":
		if _, err := e.model.Await(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	case "question":
		<-asked
	case "write", "never":
	default:
		t.Fatalf("when %q", how)
	}
	if how != "write" {
		q, ids := queue()
		e.Write(q)
		for _, id := range ids {
			e.Reply(id) // it is in the log
		}
	}
	if how != "write" && how != "never" {
		stop = e.Go("fermata/turn/stop", map[string]any{})
	}
	r := e.turn(start)
	if stop != "" {
		if s := e.turn(stop); fmt.Sprint(s) != fmt.Sprint(r) && (s.Turn != r.Turn || s.Outcome != r.Outcome) {
			t.Errorf("the stop answers %+v, the start %+v", s, r)
		}
	}
	close(answered)

	var returned strings.Builder
	for _, m := range r.Returned {
		returned.WriteString(m.Prompt[0].Text + " " + m.Cause + "\n")
	}
	if returned.String() != c["returned"] {
		t.Errorf("handed back were\n%swant\n%s", returned.String(), c["returned"])
	}
	var result strings.Builder
	result.WriteString(r.Outcome + " " + r.Cause + "\n")
	for _, tool := range r.Tools {
		result.WriteString(strings.TrimSpace(tool.Call+" "+tool.State+" "+tool.Cause) + "\n")
	}
	if result.String() != c["result"] {
		t.Errorf("the turn ended\n%swant\n%s", result.String(), c["result"])
	}
	steps := strings.Count(c["model"], "call ") + 1
	var shown strings.Builder
	for step := 1; step <= steps; step++ {
		reasoning, text := e.Shown(r.Turn, step, "reasoning"), e.Shown(r.Turn, step, "text")
		if step == 1 || reasoning+text != "" {
			fmt.Fprintf(&shown, "%q %q\n", reasoning, text)
		}
	}
	if shown.String() != c["shown"] {
		t.Errorf("the client was shown\n%swant\n%s", shown.String(), c["shown"])
	}

	// The session goes on, and the next request holds what was shown.
	if next := e.turn(e.ask(session, "Go on.")); next.Outcome != "completed" {
		t.Fatalf("the session does not go on: %+v", next)
	}
	// A request that the stop has overtaken can come to the model as late as this.
	requests := e.model.Requests()
	at := slices.IndexFunc(requests, func(r *rehearsal.Recorded) bool { return strings.Contains(string(r.Body), "Go on.") })
	if at < 0 {
		t.Fatalf("none of %d requests goes on", len(requests))
	}
	got := messages(t, requests[at].Body)
	want := strings.Split(strings.TrimSpace(c["next"]), "\n")
	if len(got) != len(want) {
		t.Fatalf("the next request holds\n%s\nwant\n%s", strings.Join(got, "\n"), c["next"])
	}
	for i := range want {
		if !matches(want[i], got[i]) {
			t.Errorf("message %d of the next request is\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
	e.quit()
}
