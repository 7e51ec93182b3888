package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fermata/transcript"
)

func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that fermata is set up: config, model, database, what editors start",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{app: a, style: styleOf(a.out, environment), out: a.out}
			d.all(cmd.Context())
			if d.failed > 0 {
				return fmt.Errorf("%d of the checks above failed", d.failed)
			}
			return nil
		},
	}
}

// doctor prints one line for each thing it looked at.
type doctor struct {
	app    *app
	style  style
	out    io.Writer
	failed int
}

func (d *doctor) all(ctx context.Context) {
	d.binary()
	d.config()
	d.provider(ctx)
	d.database(ctx)
	d.state()
	d.programs()
	d.sandbox()
	d.mcp(ctx)
}

func (d *doctor) say(verdict, what, format string, args ...any) {
	fmt.Fprintf(d.out, "%s %-9s %s\n", verdict, what, printable(fmt.Sprintf(format, args...)))
}

func (d *doctor) ok(what, format string, args ...any) { d.say("ok  ", what, format, args...) }
func (d *doctor) note(what, format string, args ...any) {
	d.say(d.style.warn("note"), what, format, args...)
}

func (d *doctor) bad(what, format string, args ...any) {
	d.failed++
	d.say(d.style.bad("BAD "), what, format, args...)
}

func (d *doctor) binary() {
	d.ok("version", "%s, %s %s/%s", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		d.bad("editors", "the path of this program cannot be found: %v", err)
		return
	}
	d.ok("editors", "start: %s lsp", path)
	if found, err := exec.LookPath("fermata"); err != nil {
		d.note("editors", "fermata is not on PATH; set the path above in the editor")
	} else if real, err := filepath.EvalSymlinks(found); err == nil && real != path {
		d.note("editors", "another fermata is first on PATH: %s", real)
	}
}

func (d *doctor) config() {
	path, err := d.app.configFile()
	if err != nil {
		d.bad("config", "%v", err)
		return
	}
	s, err := d.app.settings()
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.bad("config", "%s", line)
		}
		return
	}
	if s.config.path == "" {
		d.ok("config", "%s does not exist, which is fine", tilde(path))
	} else {
		d.ok("config", "%s", tilde(path))
	}
	d.ok("model", "%s (%s)", s.model, s.from)
	d.ok("may do", "permission mode %s, %s; see fermata permissions", s.policy.Mode, plural(len(s.policy.Rules), "rule"))
}

func (d *doctor) provider(ctx context.Context) {
	s, err := d.app.settings()
	if err != nil {
		return // said by config
	}
	name, _ := splitModel(s.model)
	p := s.provider(name, environment)
	if p.kind == kindRehearsal {
		d.note("provider", "the built-in rehearsal model answers; set DEEPSEEK_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, or configure a provider in %s", tilde(d.configFile()))
		return
	}
	if err := checkBaseURL(p.baseURL); err != nil { // of a file config has said it; the environment has addresses too
		d.bad("provider", "%s: its address %v", p.name, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	key, err := newKeySource(p, d.configFile()).Key(ctx)
	if err != nil {
		d.bad("key", "%v", err)
		return
	}
	switch {
	case len(p.keyCommand) > 0:
		d.ok("key", "printed by %q", p.keyCommand[0])
	case key != "":
		d.ok("key", "in %s", p.keyEnv)
	default:
		d.ok("key", "none needed")
	}
	if key != "" && strings.HasPrefix(p.baseURL, "http://") && !strings.HasPrefix(p.baseURL, "http://127.") && !strings.HasPrefix(p.baseURL, "http://localhost") {
		d.note("key", "it is sent unencrypted to %s: use https", p.baseURL)
	}
	d.reach(ctx, p, key)
}

func (d *doctor) configFile() string {
	path, _ := d.app.configFile() // config said why not
	return path
}

// reach asks the provider for its models. Neither the key nor what the provider says is printed.
func (d *doctor) reach(ctx context.Context, p provider, key string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(p.baseURL, "/")+"/models", nil)
	if err != nil {
		d.bad("provider", "%s: the address is wrong", p.name)
		return
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		d.bad("provider", "%s cannot be reached: %v", p.name, err)
		return
	}
	resp.Body.Close()
	switch took := time.Since(began).Round(time.Millisecond); {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		d.bad("provider", "%s at %s refuses the key (HTTP %d)", p.name, p.baseURL, resp.StatusCode)
	case resp.StatusCode == http.StatusOK:
		d.ok("provider", "%s at %s answers (%s)", p.name, p.baseURL, took)
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed:
		d.note("provider", "%s at %s answers, but does not list models (HTTP %d)", p.name, p.baseURL, resp.StatusCode)
	default:
		d.bad("provider", "%s at %s answers with HTTP %d", p.name, p.baseURL, resp.StatusCode)
	}
}

func (d *doctor) database(ctx context.Context) {
	path, err := d.app.databasePath()
	if err != nil {
		d.bad("database", "%v", err)
		return
	}
	store, err := d.app.readStore()
	if errors.Is(err, errNoDatabase) {
		d.ok("database", "%s does not exist yet", tilde(path))
		return
	}
	if err != nil {
		d.bad("database", "%v", err)
		return
	}
	d.ok("database", "%s, %s and %s of log to merge", tilde(path), size(path), size(path+"-wal"))
	report, err := store.Verify(ctx, func(string) (transcript.Encoder, bool) { return nil, false })
	switch {
	case err != nil:
		d.bad("database", "%v", err)
	case len(report.Problems) > 0:
		d.bad("database", "%s; run fermata verify to see all, fermata repair to bring back what can be read. The first: %s", plural(len(report.Problems), "problem"), problemText(report.Problems[0]))
	default:
		d.ok("database", "%s, %s, %s, all as they were written", plural(report.Sessions, "session"), plural(report.Turns, "turn"), plural(report.Entries, "entry"))
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		d.note("database", "others can read it; run: chmod 600 %s", path)
	}
}

// size is a file's size for people; nothing there is 0 kB.
func size(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "0 kB"
	}
	return fmt.Sprintf("%d kB", (info.Size()+1023)/1024)
}

func (d *doctor) state() {
	dir, err := d.app.stateDir()
	if err != nil {
		d.bad("state", "%v", err)
		return
	}
	d.ok("state", "%s", tilde(dir))
}

func (d *doctor) programs() {
	if path, err := exec.LookPath("rg"); err == nil {
		d.ok("programs", "rg: %s", path)
	} else {
		d.ok("programs", "rg is not installed; searching works without it, more slowly")
	}
}
