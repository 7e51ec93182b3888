//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// child makes a command that runs fermata in dir/app for a user whose home is in dir. env goes before the user's.
func child(t *testing.T, dir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Dir = filepath.Join(dir, "app")
	if err := os.MkdirAll(cmd.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(append(append(os.Environ(), userEnv(dir)...), asBinary+"=1"), env...)
	return cmd
}

// output runs a command that must succeed and returns its stdout.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args[1:], err, complaint.String())
	}
	return string(out)
}

// sent are the messages of the newest model input.
func sent(t *testing.T, dir string) []struct{ Role, Content string } {
	t.Helper()
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(output(t, child(t, dir, nil, "input", "--raw"))), &body); err != nil {
		t.Fatal(err)
	}
	for len(body.Messages) > 0 && body.Messages[0].Role == "system" {
		body.Messages = body.Messages[1:]
	}
	return body.Messages
}

// The HTTP client printed by itself what a server sent behind its response.
//
// guards M6
func TestWhatAProviderSendsUnaskedIsNotPrinted(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, to, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(to, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\nno answer to %s", r.Header.Get("Authorization"))
		_ = to.Flush()
		_, _ = conn.Read(make([]byte, 1)) // the client closes it when it sees what is too much
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(config, []byte("[limits]\ntries = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := child(t, t.TempDir(), []string{"FERMATA_MODEL=openai/x", "OPENAI_API_KEY=sesame", "OPENAI_BASE_URL=" + server.URL}, "ask", "--config", config, "hello").CombinedOutput()
	if text := string(out); !strings.Contains(text, "the turn failed: overloaded (HTTP 503)") || strings.Contains(text, "sesame") || strings.Contains(text, "no answer to") {
		t.Errorf("it prints %s", out)
	}
}

// The reason stood in the terminal twice for each try.
func TestWhyATurnFailedIsToldOnceWhenAllTriesFailAlike(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // nothing answers there
	config := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(config, []byte("[limits]\ntries = 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := child(t, t.TempDir(), []string{"FERMATA_MODEL=openai/x", "OPENAI_API_KEY=sesame", "OPENAI_BASE_URL=" + server.URL}, "ask", "--config", config, "hello").CombinedOutput()
	why := "connection: nothing answers at " + server.URL + ": start the server, or check base_url"
	want := "try 1 failed: " + why + "; trying again\ntry 2 failed as well; trying again\nthe turn failed: " + why + "\n"
	if string(out) != want {
		t.Errorf("it prints\n%s\nwant\n%s", out, want)
	}
}

// readUntil reads until what was read contains marker, and returns it.
func readUntil(t *testing.T, r io.Reader, marker string) string {
	t.Helper()
	var got []byte
	for b := make([]byte, 1); !strings.Contains(string(got), marker); {
		n, err := r.Read(b)
		got = append(got, b[:n]...)
		if err != nil {
			t.Fatalf("%v before %q in %q", err, marker, got)
		}
	}
	return string(got)
}

// guards S1, S4, S11, D3, P1: a signal is a stop, what stdout was given is what the model reads next, word for word.
func TestASignalStopsAndKeepsWhatStdoutWasGiven(t *testing.T) {
	for name, test := range map[string]struct {
		signal syscall.Signal
		cause  string
	}{
		"interrupt": {syscall.SIGINT, `"cause": "user"`},
		"terminate": {syscall.SIGTERM, `"cause": "shutdown"`},
		"hang up":   {syscall.SIGHUP, `"cause": "shutdown"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := child(t, dir, []string{"FERMATA_REHEARSAL_RATE=60"}, "ask", "hello there")
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var notes bytes.Buffer
			cmd.Stderr = &notes
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			shown := readUntil(t, stdout, "rehearsal")
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(stdout)
			if err != nil {
				t.Fatal(err)
			}
			shown += string(rest)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitStopped {
				t.Errorf("exit code %d, want %d; stderr: %s", code, exitStopped, notes.String())
			}
			if !strings.Contains(notes.String(), "stopping...\nStopped here") || !strings.Contains(notes.String(), "kept\n") {
				t.Errorf("stderr does not tell of the stop: %q", notes.String())
			}
			if log := output(t, child(t, dir, nil, "transcript", "--json")); !strings.Contains(log, test.cause) {
				t.Errorf("the log does not hold %s", test.cause)
			}
			output(t, child(t, dir, nil, "ask", "--continue", "--redirect", "only one word"))
			messages := sent(t, dir)
			if len(messages) != 3 || messages[1].Content+"\n" != shown && messages[1].Content != shown {
				t.Errorf("stdout got %q; the model reads %q", shown, messages)
			}
			if want := "first attempt and revise it as follows.]\n\nonly one word"; len(messages) == 3 && !strings.HasSuffix(messages[2].Content, want) {
				t.Errorf("the redirect is %q, want one that ends %q", messages[2].Content, want)
			}
		})
	}
}

func TestAReaderThatGoesAwayStopsTheTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := child(t, dir, []string{"FERMATA_REHEARSAL_RATE=60"}, "ask", "hello there")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	readUntil(t, stdout, "I am")
	if err := stdout.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitStopped {
		t.Errorf("it ended with %v, want exit code %d", cmd.ProcessState, exitStopped)
	}
	if log := output(t, child(t, dir, nil, "transcript", "--json")); !strings.Contains(log, `"cause": "client_gone"`) {
		t.Errorf("the log does not say that the client was gone: %s", log)
	}
}

// guards F1: a failure is no stop and no answer.
func TestAFailedTurnExitsWithItsOwnCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := child(t, dir, []string{"FERMATA_MODEL=openai/x", "OPENAI_API_KEY=sk-secret", "OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, "ask", "hello")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(string(out), "the turn failed: ") || strings.Contains(string(out), "secret") {
		t.Errorf("exit code %d and %q", code, out)
	}
}
