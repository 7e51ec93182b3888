package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

// sessionInfo is a session as the protocol tells it, as much as tests look at.
type sessionInfo struct {
	Session, Title, Parent string
	Turns                  int
	Seq                    int64
}

// open opens a session; entries are those that it has.
func (e *editor) open(session string) (info sessionInfo, entries []struct{ Kind string }) {
	e.t.Helper()
	var r struct {
		Session sessionInfo
		Entries []struct{ Kind string }
	}
	e.Must("fermata/session/open", map[string]any{"session": session}, &r)
	return r.Session, r.Entries
}

// refused wants an error of a kind.
func (e *editor) refused(method string, params any, kind string) {
	e.t.Helper()
	err := e.Call(method, params, nil)
	if err == nil || !strings.Contains(string(err.Data), `"kind":"`+kind+`"`) {
		e.t.Errorf("%s %v: got %v, want %s", method, params, err, kind)
	}
}

// said waits until a turn has said something.
func (e *editor) said(text string) {
	e.t.Helper()
	e.Event("the text "+text, func(ev peer.Event) bool { return ev.Kind == "delta" && strings.HasSuffix(ev.Text, text) })
}

// guards S11, M4, P1: what was stopped in the parent is in the fork's input word for word, and told there once.
func TestAForkTakesUpWhatWasStoppedWhereItWasStopped(t *testing.T) {
	e := newEditor(t, "reply\nthink Hm.\nsay First.\nreply\nthink So.\nsay \"Half a wo\"\nhang\nreply\nsay Fork.\nreply\nsay Parent.\nreply\nsay Earlier.\n", peer.Options{})
	e.Initialize(e.root, nil)
	parent := e.NewSession(e.root)
	e.turn(e.ask(parent, "one"))
	start := e.ask(parent, "two")
	e.said("wo")
	e.refused("fermata/session/fork", map[string]any{"session": parent, "after": e.lastTurn(parent)}, "busy")
	var early sessionInfo
	e.Must("fermata/session/fork", map[string]any{"session": parent}, &early) // the parent is read, not stopped
	if early.Turns != 1 || early.Parent != parent {
		t.Errorf("a fork beside a running turn: %+v", early)
	}
	e.turn(e.Go("fermata/turn/stop", nil))
	e.turn(start)

	var late sessionInfo
	e.Must("fermata/session/fork", map[string]any{"session": parent, "after": e.lastTurn(parent)}, &late)
	_, entries := e.open(late.Session)
	if slices.ContainsFunc(entries, func(x struct{ Kind string }) bool { return strings.HasPrefix(x.Kind, "request.") }) {
		t.Errorf("requests were copied: %v", entries)
	}
	e.turn(e.ask(late.Session, "go on"))
	e.turn(e.ask(parent, "go on"))
	inFork, inParent := e.model.Requests()[2].Body, e.model.Requests()[3].Body
	if !bytes.Equal(inFork, inParent) {
		t.Errorf("the fork's model was sent\n%s\nthe parent's\n%s", inFork, inParent)
	}
	got := messages(t, inFork)
	if !matches(`{"role":"assistant","content":"Half a wo","reasoning_content":"So."}`, got[3]) ||
		!matches(`{"role":"user","content":"[The user stopped your answer above where it ends.]\n\ngo on"}`, got[4]) {
		t.Errorf("the fork's model was sent %s", got)
	}
	e.turn(e.ask(early.Session, "instead"))
	if got := messages(t, e.model.Requests()[4].Body); len(got) != 3 || got[2] != `{"role":"user","content":"instead"}` {
		t.Errorf("the earlier fork's model was sent %s", got)
	}
	var list struct {
		Requests []struct{ Epoch int }
	}
	e.Must("fermata/request/list", map[string]any{"session": late.Session}, &list)
	if len(list.Requests) != 1 {
		t.Errorf("the fork has %d requests", len(list.Requests))
	}
	e.refused("fermata/session/fork", map[string]any{"session": "s_none"}, "unknown_session")
	e.refused("fermata/session/fork", map[string]any{"session": parent, "after": "t_none"}, "unknown_turn")
	e.quit()
}

// lastTurn is the session's last turn.
func (e *editor) lastTurn(session string) string {
	e.t.Helper()
	last := ""
	for _, ev := range e.Events() {
		if ev.Kind == "turn.started" && ev.Session == session {
			var b struct{ Turn string }
			if err := json.Unmarshal(ev.Entry, &b); err != nil {
				e.t.Fatal(err)
			}
			last = b.Turn
		}
	}
	return last
}

func TestASessionIsRenamed(t *testing.T) {
	e := newEditor(t, "reply\nsay Yes.\n", peer.Options{})
	e.Initialize(e.root, nil)
	id := e.NewSession(e.root)
	e.turn(e.ask(id, "one"))
	var r sessionInfo
	e.Must("fermata/session/rename", map[string]any{"session": id, "title": " Über alles "}, &r)
	e.turn(e.ask(id, "two"))
	if info, _ := e.open(id); r.Title != "Über alles" || info.Title != r.Title {
		t.Errorf("%+v, then %+v", r, info)
	}
	e.refused("fermata/session/rename", map[string]any{"session": "s_none", "title": "x"}, "unknown_session")
	for _, bad := range []map[string]any{{"session": id}, {"title": "x"}, {"session": id, "title": "a\nb"}, {"session": id, "title": strings.Repeat("x", 201)}} {
		if err := e.Call("fermata/session/rename", bad, nil); err == nil || err.Code != -32602 {
			t.Errorf("%v: %v", bad, err)
		}
	}
	e.quit()
}

func TestASessionIsDeletedWithAllThatWasWrittenOfIt(t *testing.T) {
	e := newEditor(t, "reply\nsay \"A secret.\"\nhang\nreply\nsay Other.\n", peer.Options{})
	e.Initialize(e.root, nil)
	id := e.NewSession(e.root)
	start := e.ask(id, "tell the secret")
	e.said("secret.")
	e.refused("fermata/session/delete", map[string]any{"session": id}, "busy")
	e.turn(e.Go("fermata/turn/stop", nil))
	e.turn(start)
	for _, command := range []string{"fermata.openTranscript", "fermata.showModelInput"} {
		e.Must("workspace/executeCommand", map[string]any{"command": command, "arguments": []any{map[string]any{"session": id}}}, nil)
	}
	other := e.NewSession(e.root)
	e.turn(e.ask(other, "hello"))

	var r struct {
		Session                         string
		Turns, Entries, Requests, Blobs int
		Bytes                           int64
	}
	e.Must("fermata/session/delete", map[string]any{"session": id}, &r)
	if r.Session != id || r.Turns != 1 || r.Requests != 1 || r.Entries < 6 || r.Bytes == 0 {
		t.Errorf("it says that it removed %+v", r)
	}
	e.refused("fermata/session/open", map[string]any{"session": id}, "unknown_session")
	e.refused("fermata/session/delete", map[string]any{"session": id}, "unknown_session")
	e.refused("fermata/turn/start", map[string]any{"session": id, "prompt": peer.Text("x")}, "unknown_session")
	if info, _ := e.open(other); info.Turns != 1 {
		t.Errorf("the other session: %+v", info)
	}
	e.turn(e.ask(other, "again"))
	e.quit()
	err := filepath.WalkDir(e.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte("secret")) {
			t.Errorf("%s still holds it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// guards M5, T2
func TestAModelChangedWithinASessionIsNotSentTheOthersReasoning(t *testing.T) {
	e := newEditor(t, "reply\nthink \"My thoughts.\"\nsay One.\nreply\nthink \"Its thoughts.\"\nsay Two.\nreply\nsay Three.\n", peer.Options{})
	e.Initialize(e.root, nil)
	e.quit()
	e.configure(fmt.Sprintf("model = \"scripted/model\"\n[providers.scripted]\nkind = \"deepseek\"\nbase_url = %q\n"+
		"[providers.other]\nkind = \"deepseek\"\nbase_url = %q\n", e.model.URL, e.model.URL))
	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	id := e.NewSession(e.root)
	e.turn(e.ask(id, "one"))
	e.turn(e.Go("fermata/turn/start", map[string]any{"session": id, "prompt": peer.Text("two"), "model": "other/big"}))
	e.turn(e.ask(id, "three"))
	for n, want := range map[int][]string{
		1: {`{"role":"assistant","content":"One.","reasoning_content":""}`},
		2: {`{"role":"assistant","content":"One.","reasoning_content":"My thoughts."}`, `{"role":"assistant","content":"Two.","reasoning_content":""}`},
	} {
		got := messages(t, e.model.Requests()[n].Body)
		for i, m := range want {
			if got[1+2*i] != m {
				t.Errorf("request %d: message %d is %s, want %s", n+1, 2+2*i, got[1+2*i], m)
			}
		}
	}
	var reasons []string
	for _, ev := range e.Events() {
		if ev.Kind == "epoch.opened" {
			var b struct{ Reason string }
			if err := json.Unmarshal(ev.Entry, &b); err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, b.Reason)
		}
	}
	if !slices.Equal(reasons, []string{"first", "model changed", "model changed"}) {
		t.Errorf("epochs were opened because: %q", reasons)
	}
	var in struct {
		Verified bool
		Parts    []struct {
			Role       string
			Unsendable []string
		}
	}
	e.Must("fermata/request/input", map[string]any{"session": id}, &in)
	var lost []string
	for _, p := range in.Parts {
		lost = append(lost, p.Unsendable...)
	}
	if !in.Verified || !slices.Equal(lost, []string{"reasoning: not sendable, because it is of another model, other/big"}) {
		t.Errorf("shown as not sendable: %q, verified %v", lost, in.Verified)
	}
	e.quit()
}

// guards M8: the same bytes, streamed, and nothing of it in the log.
func TestARequestIsSentAgainOutsideOfItsSession(t *testing.T) {
	e := newEditor(t, "reply\nsay First.\nreply\nthink Hm.\nsay Again.\ncall read_file {\"path\":\"x\"}\nreply\nsay Edited.\nreply\nsay \"Never e\"\nhang\nreply\nstatus 500\nbody no\n", peer.Options{})
	e.Initialize(e.root, nil)
	id := e.NewSession(e.root)
	e.turn(e.ask(id, "one"))
	before, _ := e.open(id)
	var in struct {
		Body    string
		SHA256  string
		Request struct{ Request string }
	}
	e.Must("fermata/request/input", map[string]any{"session": id}, &in)
	type resent struct {
		Outcome, SHA256, Error string
		Same                   bool
		Status                 int
		Parts                  []struct {
			Type, Text string
			Call       *struct{ Name string }
		}
	}
	resend := func(params map[string]any) (r resent) {
		t.Helper()
		params["request"] = in.Request.Request
		e.Must("fermata/request/resend", params, &r)
		return r
	}
	r := resend(map[string]any{})
	if r.Outcome != "complete" || !r.Same || r.SHA256 != in.SHA256 || len(r.Parts) != 3 || r.Parts[1].Text != "Again." || r.Parts[2].Call.Name != "read_file" {
		t.Errorf("%+v", r)
	}
	if sent := e.model.Requests(); !bytes.Equal(sent[0].Body, sent[1].Body) || string(sent[0].Body) != in.Body {
		t.Errorf("sent first\n%s\nand again\n%s", sent[0].Body, sent[1].Body)
	}
	if said := e.resent(); said != "Hm.|Again.|" {
		t.Errorf("told were %q", said)
	}
	edited := strings.Replace(in.Body, "one", "two", 1)
	if r = resend(map[string]any{"body": edited}); r.Same || r.Outcome != "complete" || string(e.model.Requests()[2].Body) != edited {
		t.Errorf("%+v", r)
	}

	frame, call := e.Request("fermata/request/resend", map[string]any{"request": in.Request.Request})
	e.Write(frame)
	request, err := e.model.Await(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	e.Event("the text", func(ev peer.Event) bool { return ev.Kind == "resend" && strings.HasSuffix(ev.Text, "e") })
	e.Notify("$/cancelRequest", map[string]any{"id": json.RawMessage(call)})
	m := e.Reply(call)
	r = resent{}
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.Outcome != "stopped" || len(r.Parts) != 1 || r.Parts[0].Text != "Never e" {
		t.Errorf("%v %s", m.Error, m.Result)
	}
	<-request.Closed()
	if r = resend(map[string]any{}); r.Outcome != "broken" || r.Status != 500 || r.Error == "" {
		t.Errorf("%+v", r)
	}
	if after, _ := e.open(id); after.Seq != before.Seq {
		t.Errorf("the log went from %d to %d", before.Seq, after.Seq)
	}
	e.refused("fermata/request/resend", map[string]any{"request": "r_none"}, "unknown_request")
	if err := e.Call("fermata/request/resend", map[string]any{"request": in.Request.Request, "body": "{"}, nil); err == nil || err.Code != -32602 {
		t.Errorf("a body that is no JSON: %v", err)
	}
	e.quit()
}

// resent are the texts of resend events, each followed by "|".
func (e *editor) resent() string {
	var b strings.Builder
	last := ""
	for _, ev := range e.Events() {
		if ev.Kind != "resend" {
			continue
		}
		if last != "" && last != ev.Part {
			b.WriteByte('|')
		}
		last = ev.Part
		b.WriteString(ev.Text)
	}
	return b.String() + "|"
}
