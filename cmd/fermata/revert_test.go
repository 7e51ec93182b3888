package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

var revertScenario = script("Change it.", "size 4000",
	`call edit_file {"path":"old.txt","old":"before","new":"after"}`, `call write_file {"path":"new.txt","content":"new\n"}`) +
	script("Change it.", "size 4000", `say "Done."`) + thenGood

// revertUntilDead has a turn change two files, then starts a daemon that dies at its kth place and reverts and undoes with it.
func revertUntilDead(t *testing.T, k int) *crashed {
	t.Helper()
	allow := func(string, json.RawMessage) (any, *peer.Error) { return map[string]any{"answer": "once"}, nil }
	c := &crashed{places: filepath.Join(t.TempDir(), "places")}
	c.editor = newEditor(t, revertScenario, peer.Options{Answer: allow})
	if err := os.WriteFile(filepath.Join(c.root, "old.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Initialize(c.root, map[string]any{"experimental": map[string]any{"fermata": map[string]any{"protocol": 1}}})
	c.session = c.NewSession(c.root)
	c.Must("fermata/turn/start", map[string]any{"session": c.session, "prompt": peer.Text("Change it.")}, nil)
	c.quit()

	c.start(peer.Options{Env: []string{fmt.Sprintf("%s=%d %s", faultAt, k, c.places)}})
	if c.answer(c.Go("initialize", map[string]any{"rootUri": "file://" + c.root, "capabilities": map[string]any{}}), nil) {
		c.Notify("initialized", map[string]any{})
		if c.answer(c.Go("fermata/turn/revert", map[string]any{"session": c.session}), nil) &&
			c.answer(c.Go("fermata/turn/revert", map[string]any{"session": c.session, "undo": true}), nil) &&
			c.answer(c.Go("shutdown", nil), nil) {
			c.Notify("exit", nil)
		}
	}
	c.Exit()
	return c
}

// Whatever place a revert dies at, the log of the next daemon says of each file what the disk says, and the files are whole.
//
// guards C2, C3
func TestADaemonKilledInARevertKnowsAfterwardsWhatItDid(t *testing.T) {
	t.Parallel()
	whole := revertUntilDead(t, 0)
	places := whole.cameTo()
	whole.checkReverts()
	for k := 1; k <= len(places); k++ {
		t.Run(fmt.Sprintf("%d %s", k, strings.ReplaceAll(places[k-1], " ", "_")), func(t *testing.T) {
			t.Parallel()
			revertUntilDead(t, k).checkReverts()
		})
	}
}

// checkReverts starts the next daemon, and compares what the log says of the files with the files.
func (c *crashed) checkReverts() {
	c.t.Helper()
	c.start(peer.Options{})
	c.Initialize(c.root, nil)
	var opened struct{ Entries []logEntry }
	c.Must("fermata/session/open", map[string]any{"session": c.session}, &opened)
	is := map[string]string{} // path → SHA-256 of what the log says it holds
	var started *transcript.RevertStarted
	for n, e := range opened.Entries {
		var err error
		switch transcript.Kind(e.Kind) {
		case transcript.KindFileChanged:
			var b transcript.FileChanged
			err = json.Unmarshal(e.Entry, &b)
			is[b.Path] = b.After
		case transcript.KindRevertStarted:
			if started != nil {
				c.t.Errorf("entry %d: a revert before it has not ended", n+1)
			}
			started = new(transcript.RevertStarted)
			err = json.Unmarshal(e.Entry, started)
		case transcript.KindRevertEnded:
			var b transcript.RevertEnded
			err = json.Unmarshal(e.Entry, &b)
			for i, f := range b.Files {
				switch f.State {
				case transcript.RevertDone:
					is[f.Path] = started.Files[i].After
				case transcript.RevertUnknown:
					c.t.Errorf("nobody else touched %s, and it is unknown", f.Path)
				}
			}
			started = nil
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	if started != nil {
		c.t.Error("the last revert has not ended")
	}
	for path, want := range is {
		got := ""
		if b, err := os.ReadFile(filepath.Join(c.root, path)); err == nil {
			sum := sha256.Sum256(b)
			got = hex.EncodeToString(sum[:])
		}
		if got != want {
			c.t.Errorf("the log says that %s holds %.8s, it holds %.8s", path, want, got)
		}
	}
	b := &badInput{editor: c.editor}
	b.goesOn(c.session)
	b.quit()
}
