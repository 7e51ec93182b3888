package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheModelCommandServesAScenarioOnLoopbackAndRecordsBodies(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(dir, "hello.scenario")
	if err := os.WriteFile(scenario, []byte("reply\nsay hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	cmd := newModelCommand()
	cmd.SetOut(in)
	cmd.SetArgs([]string{"--scenario", scenario, "--record", filepath.Join(dir, "bodies")})
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }() // ends when the test cancels it
	base, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base = strings.TrimSpace(base)
	if !strings.HasPrefix(base, "http://127.0.0.1:") || !strings.HasSuffix(base, "/v1") {
		t.Fatalf("the base URL is %q", base)
	}
	body := `{"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(b), `"content":"hello"`) {
			t.Errorf("got %s, %v", b, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "bodies", "0002.json")); err != nil || string(b) != body {
		t.Errorf("recorded %q, %v", b, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestTheModelCommandServesOnlyThisMachine(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1"} {
		cmd := newModelCommand()
		cmd.SetArgs([]string{"--listen", address})
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--listen "+address) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestTheModelCommandNamesAMistakeInAScenario(t *testing.T) {
	scenario := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(scenario, []byte("reply\nsings\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := newModelCommand()
	cmd.SetArgs([]string{"--scenario", scenario})
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}
