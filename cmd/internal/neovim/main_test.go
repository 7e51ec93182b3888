//go:build nvim

package neovim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fermata/agent/model/chat"
	"fermata/agent/model/rehearsal"
	"fermata/transcript"
)

// What the tests run with: the two real Neovims, the plugin, and fermata built from this checkout, or the binary that
// FERMATA_TEST_BINARY names.
var (
	neovims map[string]string // version to program
	binary  string
	plugin  string
)

func TestMain(m *testing.M) {
	code, err := func() (int, error) {
		var err error
		if plugin, err = filepath.Abs(filepath.Join("..", "..", "..", "editors", "nvim")); err != nil {
			return 1, err
		}
		fetch := exec.Command("sh", filepath.Join(plugin, "test", "neovim.sh"))
		fetch.Stderr = os.Stderr
		out, err := fetch.Output()
		if err != nil {
			return 1, fmt.Errorf("fetch Neovim: %w", err)
		}
		neovims = map[string]string{}
		for program := range strings.FieldsSeq(string(out)) {
			version, err := exec.Command(program, "--version").Output()
			if err != nil {
				return 1, fmt.Errorf("%s: %w", program, err)
			}
			first, _, _ := strings.Cut(string(version), "\n")
			neovims[strings.TrimPrefix(first, "NVIM v")] = program
		}
		if binary = os.Getenv("FERMATA_TEST_BINARY"); binary != "" {
			return m.Run(), nil
		}
		dir, err := os.MkdirTemp("", "fermata-nvim-")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "fermata")
		build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "fermata/cmd/fermata")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return 1, fmt.Errorf("build fermata: %w", err)
		}
		return m.Run(), nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// user is somebody with a project, a configured model and Neovim.
type user struct {
	*Neovim
	t       *testing.T
	model   *rehearsal.Server
	program string
	home    string
	root    string
}

// project is what the project of every user holds.
var project = map[string]string{
	"main.go":   "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n",
	"notes.txt": "one\ntwo\nthree\nfour\nfive\n",
}

// inBoth plays a test in each real Neovim, against a scripted model. The database that is left must verify.
func inBoth(t *testing.T, scenario string, play func(t *testing.T, u *user)) {
	for version, program := range neovims {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, program, scenario)
			u.start(Options{}, "main.go")
			play(t, u)
		})
	}
}

func newUser(t *testing.T, program, scenario string) *user {
	t.Helper()
	model, err := rehearsal.Start(scenario)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	home := t.TempDir()
	u := &user{t: t, model: model, program: program, home: home, root: filepath.Join(home, "project")}
	for name, text := range project {
		u.write(filepath.Join("project", name), text)
	}
	if err := os.Mkdir(filepath.Join(u.root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	u.write("config/fermata/config.toml", fmt.Sprintf(
		"model = \"scripted/model\"\n[providers.scripted]\nkind = \"deepseek\"\nbase_url = %q\n[limits]\ntries = 1\n", model.URL))
	t.Cleanup(u.verify)
	return u
}

// write writes a file below the user's home.
func (u *user) write(name, text string) {
	u.t.Helper()
	path := filepath.Join(u.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// read reads a file of the project.
func (u *user) read(name string) string {
	u.t.Helper()
	b, err := os.ReadFile(filepath.Join(u.root, name))
	if err != nil {
		u.t.Fatal(err)
	}
	return string(b)
}

// start starts Neovim with the plugin and nothing else, on some files of the project.
func (u *user) start(o Options, files ...string) {
	u.t.Helper()
	o.Args = append([]string{"--clean", "-i", "NONE", "-n",
		"--cmd", "set runtimepath^=" + plugin, "--cmd", "let g:fermata = {'path': '" + binary + "'}",
	}, append(o.Args, files...)...)
	u.startBare(o)
}

// startBare starts Neovim as it is, with the user's own configuration and packages.
func (u *user) startBare(o Options) {
	u.t.Helper()
	o.Program, o.Dir = u.program, u.root
	o.Env = append(o.Env,
		"HOME="+u.home, "PATH="+os.Getenv("PATH"), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TMPDIR="+u.home,
		"XDG_CONFIG_HOME="+filepath.Join(u.home, "config"), "XDG_DATA_HOME="+filepath.Join(u.home, "data"),
		"XDG_STATE_HOME="+filepath.Join(u.home, "state"), "XDG_CACHE_HOME="+filepath.Join(u.home, "cache"),
	)
	u.Neovim = Start(u.t, o)
}

// turn is the newest turn that this Neovim knows, as the plugin has it, decoded into result.
func (u *user) turn(result any) {
	u.t.Helper()
	u.Lua(result, `local all = require('fermata.turns').all()
		local t = all[#all]
		return { id = t.id, session = t.session, state = t.state, words = t.words, result = t.result, prompt = t.prompt }`)
}

// verify wants what fermata verify wants.
func (u *user) verify() {
	path := filepath.Join(u.home, "data", "fermata", "fermata.db")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return // nothing was asked
	}
	store, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		u.t.Errorf("verify: %v", err)
		return
	}
	defer store.Close()
	report, err := store.Verify(context.Background(), func(dialect string) (transcript.Encoder, bool) {
		d, err := chat.ByName(dialect)
		return d, err == nil
	})
	if err != nil {
		u.t.Errorf("verify: %v", err)
	}
	for _, p := range report.Problems {
		u.t.Errorf("verify: %+v", p)
	}
}

// output collects lines that tests leave for a person to look at, below the folder that FERMATA_PICTURES names.
var output = struct {
	sync.Mutex
	dir string
}{dir: os.Getenv("FERMATA_PICTURES")}

// picture keeps the screen for a person to look at, when they are wanted.
func (u *user) picture(name string) {
	u.t.Helper()
	output.Lock()
	defer output.Unlock()
	if output.dir == "" {
		return
	}
	_, version, _ := strings.Cut(u.t.Name(), "/")
	dir := filepath.Join(output.dir, version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(u.Screen()+"\n"), 0o644); err != nil {
		u.t.Fatal(err)
	}
}
