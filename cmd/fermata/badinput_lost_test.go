package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

// command runs another fermata command as the editor's user and returns what it printed and its exit code.
func (e *editor) command(args ...string) (output string, code int) {
	e.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		e.t.Fatal(err)
	}
	cmd := exec.CommandContext(e.t.Context(), exe, args...)
	cmd.Dir, cmd.Env = e.root, e.env
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		e.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// edit writes a file as a function of itself; nil removes it.
func edit(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if f == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, f(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A daemon was killed in the middle of an answer, or left in order, and then a part of its database is lost. The next daemon
// says so, touches nothing and stays up; repair brings back what is there; and that same daemon goes on.
//
// guards C5, C6, P4
func TestADatabaseThatLostAPartIsNamedAndBroughtBack(t *testing.T) {
	t.Parallel()
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }
	for _, tt := range []struct {
		name    string
		killed  bool
		suffix  string // of the file that is damaged
		damage  func([]byte) []byte
		says    string // "": the daemon opens what is there
		session bool   // it is there in the end
		shown   bool   // and so is all that was shown
	}{
		{"its log is left alone", true, "", nil, "is missing or empty", true, true},
		{"its file is empty beside the log", true, "", func([]byte) []byte { return nil }, "is missing or empty", true, true},
		{"its log is gone", true, "-wal", nil, "", false, false},
		{"its log is torn at the end", true, "-wal", cut(100), "", true, false},
		{"its last page is torn", false, "", cut(2000), "the end of ", true, true},
		{"its first page is gone", false, "", func(b []byte) []byte { clear(b[:4096]); return b }, "not a fermata database", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBadInput(t, script("Count.", "size 4000", `say "One, two, "`, `think "hm"`, `say "three"`, "hang"), peer.Options{})
			turn := b.say("Count.", "three")
			shown := b.Shown(turn, 1, "text")
			if tt.killed {
				b.Kill()
			} else {
				b.Must("fermata/turn/stop", nil, nil)
				b.quit()
			}
			edit(t, b.database()+tt.suffix, tt.damage)
			before := b.files()

			b.start(peer.Options{})
			b.Initialize(b.root, nil)
			if tt.says != "" {
				kind := "damaged"
				if strings.HasPrefix(tt.says, "not a") {
					kind = "not_a_database"
				}
				storageError(t, "a new session", b.Call("fermata/session/new", nil, nil), kind, tt.says)
				storageError(t, "the old session", b.Call("fermata/session/open", map[string]any{"session": b.session}, nil), kind, "fermata repair")
				for name, content := range before {
					if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, content) {
						t.Errorf("%s was touched: %v", name, err)
					}
				}
				if out, code := b.command("doctor"); code != 1 || !strings.Contains(out, "fermata repair") {
					t.Errorf("doctor says %s", out)
				}
				out, code := b.command("repair")
				if code != 0 || !strings.Contains(out, "back: 1 session with ") {
					t.Fatalf("repair ended with %d: %s", code, out)
				}
				copies, err := filepath.Glob(b.database() + ".damaged-*")
				if err != nil || len(copies) != 1 || !strings.Contains(out, filepath.Base(copies[0])) {
					t.Fatalf("the copies are %v, %v; repair says %s", copies, err, out)
				}
				for _, suffix := range databaseFiles {
					was, ok := before[b.database()+suffix]
					is, err := os.ReadFile(filepath.Join(copies[0], filepath.Base(b.database())+suffix))
					if ok != (err == nil) || !bytes.Equal(was, is) {
						t.Errorf("the copy of the database%s is another: %v", suffix, err)
					}
				}
			}
			if err := b.Call("fermata/session/open", map[string]any{"session": b.session}, nil); (err == nil) != tt.session {
				t.Fatalf("open the session: %v", err)
			}
			if tt.session {
				b.goesOn(b.session)
				if kept, _ := b.answers(b.session, turn); tt.shown && kept != shown || !strings.HasPrefix(shown, kept) {
					t.Errorf("shown was %q, the transcript has %q", shown, kept)
				}
			}
			b.goesOn(b.NewSession(b.root))
			if out, code := b.command("repair"); code != 1 || !strings.Contains(out, "in use by fermata-") {
				t.Errorf("repair beside a daemon ended with %d: %s", code, out)
			}
			b.quit()
		})
	}
}

// say starts a turn and waits until a text was shown. It returns the turn.
func (b *badInput) say(prompt, text string) (turn string) {
	b.t.Helper()
	b.ask(b.session, prompt)
	return b.Event(text, func(ev peer.Event) bool { return ev.Kind == "delta" && strings.Contains(ev.Text, text) }).Turn
}

// The daemon need not be started again when what was in its way is gone.
//
// guards P4
func TestADaemonGoesOnWhenItsDatabaseIsThereAgain(t *testing.T) {
	t.Parallel()
	b := newBadInput(t, "", peer.Options{})
	b.quit()
	folder := filepath.Dir(b.database())
	for name, put := range map[string]func() error{
		"a file where the folder should be": func() error { return os.WriteFile(folder, []byte("x"), 0o600) },
		"garbage": func() error {
			return errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(b.database(), bytes.Repeat([]byte("x"), 5000), 0o600))
		},
	} {
		if err := errors.Join(os.Rename(folder, folder+".kept"), put()); err != nil {
			t.Fatal(err)
		}
		b.start(peer.Options{})
		b.Initialize(b.root, nil)
		if err := b.Call("fermata/session/open", map[string]any{"session": b.session}, nil); err == nil || err.Code != -31005 {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(os.RemoveAll(folder), os.Rename(folder+".kept", folder)); err != nil {
			t.Fatal(err)
		}
		b.goesOn(b.session)
		b.quit()
	}
}

// The disk fails in the middle of an answer, and works again.
//
// guards P1, P4, C1, C2
func TestADiskThatFailsForATimeLosesNothingThatWasShown(t *testing.T) {
	t.Parallel()
	b := newBadInput(t, script("Count.", "size 4000", `say "One, "`, "wait 500ms", `say "two."`), peer.Options{})
	start := b.ask(b.session, "Count.")
	b.Event("the first word", func(ev peer.Event) bool { return ev.Text == "One, " })
	mend, ok := failWrites(t, b.Pid())
	if !ok {
		return // the other faults are tried everywhere
	}
	r := b.turn(start)
	if r.Outcome != "failed" || r.Cause != "storage" || !strings.Contains(r.Error, "disk input or output failed") || !strings.Contains(r.Error, "check the disk") {
		t.Errorf("the turn ended %+v", r)
	}
	if shown := b.Shown(r.Turn, 1, "text"); shown != "One, " {
		t.Errorf("shown was %q", shown)
	}
	if m := b.Reply(b.ask(b.session, "Go on.")); m.Error == nil {
		t.Errorf("a turn was taken that cannot be recorded: %s", m.Result)
	} else {
		storageError(t, "a turn without a disk", m.Error, "disk_failed", "check the disk")
	}
	mend()
	// By itself, soon, without a restart:
	b.Event("the repair", func(ev peer.Event) bool {
		return ev.Kind == "turn.ended" && strings.Contains(string(ev.Entry), r.Turn)
	})
	b.goesOn(b.session)
	if kept, _ := b.answers(b.session, r.Turn); kept != "One, " {
		t.Errorf("the transcript has %q", kept)
	}
	b.quit()
}
