//go:build unix

package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/agent/permit"
	"fermata/transcript"
)

// A repository gives innocent names to what is protected.
func TestALinkLoosensNothing(t *testing.T) {
	for _, test := range []struct {
		name, to   string // a link in the workspace
		tool, args string
		asked      string // why; "" is that the call is denied at once
	}{
		{"notes.txt", ".env", "read_file", `{"path":"notes.txt"}`, "secret file: .env"},
		{"notes.txt", ".env", "grep", `{"pattern":"needle","path":"notes.txt"}`, "secret file: .env"},
		{"docs", "conf", "read_file", `{"path":"docs/.env.local"}`, "secret file: conf/.env.local"},
		{"notes.txt", ".env", "write_file", `{"path":"notes.txt","content":"x"}`, "secret file: .env"},
		{"notes.txt", ".git/config", "write_file", `{"path":"notes.txt","content":"x"}`, ""},
		{"docs", ".git", "write_file", `{"path":"docs/hooks/pre-commit","content":"x"}`, ""},
		{"notes.txt", ".env", "run", `{"command":"cat notes.txt"}`, "secret file: the command names .env"},
		{"docs", ".git", "run", `{"command":"echo x >docs/hooks/x"}`, "the command names .git/hooks/x, which belongs to git"},
		{"docs", ".git", "edit_file", `{"path":"docs/config","old":"needle","new":"x"}`, ""},
	} {
		t.Run(test.tool+" "+test.to, func(t *testing.T) {
			w, asked := asking(t, test.tool, test.args, permit.DenyCall)
			w.s.SetMode(permit.ModeTrust)
			for _, name := range []string{".env", "conf/.env.local", ".git/config"} {
				w.put(name, "needle\n")
			}
			if err := os.Symlink(test.to, filepath.Join(w.root, test.name)); err != nil {
				t.Fatal(err)
			}
			rep := w.run(say("Do it."))
			if rep.Tools[0].State != transcript.ToolNotStarted || rep.Tools[0].Cause != transcript.CausePermissionDenied {
				t.Errorf("the report says %+v", rep.Tools)
			}
			if (test.asked == "") != (len(*asked) == 0) || len(*asked) > 0 && !strings.Contains((*asked)[0].Why, test.asked) {
				t.Errorf("asked %+v", *asked)
			}
			if got := w.model.messages(t, 2); strings.Contains(*got[len(got)-1].Content, "1\tneedle") {
				t.Errorf("the model reads %q", *got[len(got)-1].Content)
			}
			for _, name := range []string{".env", ".git/config"} {
				if b, err := os.ReadFile(filepath.Join(w.root, name)); err != nil || string(b) != "needle\n" {
					t.Errorf("%s holds %q (%v)", name, b, err)
				}
			}
		})
	}
}
