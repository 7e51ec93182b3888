package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fermata/agent/model/chat"
	"fermata/agent/model/rehearsal"
	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

// editor is a real fermata daemon, a scripted model on HTTP behind it, and an editor before it.
type editor struct {
	*peer.Peer
	t     testing.TB
	model *rehearsal.Server
	home  string
	root  string // the workspace
	env   []string
}

// newEditor writes a configuration for the model, and starts and greets the daemon. At the test's end the daemon is
// shut down and the database that it leaves must verify.
func newEditor(t testing.TB, scenario string, o peer.Options) *editor {
	t.Helper()
	e := newUser(t, scenario, "")
	e.start(o)
	return e
}

// newUser is an editor that has not started a daemon yet. more is appended to the configuration. What is left at the test's
// end must verify.
func newUser(t testing.TB, scenario, more string) *editor {
	t.Helper()
	model, err := rehearsal.Start(scenario)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	home := t.TempDir()
	e := &editor{t: t, model: model, home: home, root: filepath.Join(home, "project")}
	if err := os.MkdirAll(e.root, 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(userEnv(home), asBinary+"=1", "PATH="+os.Getenv("PATH"))
	e.env = append(env, "SystemRoot="+os.Getenv("SystemRoot"), "TMPDIR="+t.TempDir())
	e.configure(fmt.Sprintf("model = \"scripted/model\"\n[providers.scripted]\nkind = \"deepseek\"\nbase_url = %q\n[limits]\ntries = 1\n", model.URL) + more)
	t.Cleanup(func() { verifyDatabase(t, e.database()) })
	return e
}

func (e *editor) configure(text string) {
	e.t.Helper()
	dir := filepath.Join(e.home, "home", "config", "fermata")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// start starts a daemon; the one before it, if any, must be gone.
func (e *editor) start(o peer.Options) {
	e.t.Helper()
	if o.Path == "" {
		var err error
		if o.Path, err = os.Executable(); err != nil {
			e.t.Fatal(err)
		}
	}
	o.Dir, o.Env = e.root, append(o.Env, e.env...)
	e.Peer = peer.Start(e.t, o)
}

func (e *editor) database() string {
	return filepath.Join(e.home, "home", "data", "fermata", "fermata.db")
}

// quit ends the daemon as LSP has it and waits for its end.
func (e *editor) quit() {
	e.t.Helper()
	e.Must("shutdown", nil, nil)
	e.Notify("exit", nil)
	if code := e.Exit(); code != 0 {
		e.t.Errorf("the daemon exited with %d", code)
	}
}

// verifyDatabase wants what fermata verify wants.
func verifyDatabase(t testing.TB, path string) {
	t.Helper()
	store, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		t.Errorf("verify: %v", err)
		return
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	report, err := store.Verify(context.Background(), func(dialect string) (transcript.Encoder, bool) {
		d, err := chat.ByName(dialect)
		return d, err == nil
	})
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	for _, p := range report.Problems {
		t.Errorf("verify: %+v", p)
	}
}

// turnResult is what the replies to start, stop and redirect hold, as much as tests look at.
type turnResult struct {
	Session, Turn, Outcome, Cause, Error string
	Silent                               bool
	Kept                                 *transcript.Kept
	Tools                                []struct{ Call, Name, State, Cause string }
	Prompt                               []transcript.PromptPart
	Returned                             []struct {
		Message, Cause string
		Prompt         []transcript.PromptPart
	}
}

// turn decodes the reply to a start, stop or redirect.
func (e *editor) turn(id string) turnResult {
	e.t.Helper()
	m := e.Reply(id)
	if m.Error != nil {
		e.t.Fatalf("the turn: %v (%s)", m.Error, m.Error.Data)
	}
	var r turnResult
	if err := json.Unmarshal(m.Result, &r); err != nil {
		e.t.Fatal(err)
	}
	return r
}

func (e *editor) ask(session, text string) (id string) {
	return e.Go("fermata/turn/start", map[string]any{"session": session, "prompt": peer.Text(text)})
}

// messages are the messages of a request body after the system message, each as its exact JSON.
func messages(t testing.TB, body []byte) []string {
	t.Helper()
	var b struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var out []string
	for _, m := range b.Messages {
		if s := string(m); !strings.HasPrefix(s, `{"role":"system"`) {
			out = append(out, s)
		}
	}
	return out
}

// matches compares with a pattern in which … stands for any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("(?s)^" + strings.Join(parts, ".*") + "$").MatchString(text)
}
