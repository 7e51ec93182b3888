package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// asDialer has the test binary try to connect to the address that is its value.
const asDialer = "PROCESS_TEST_DIAL"

func dial(address string) {
	if c, err := net.DialTimeout("tcp", address, 5*time.Second); err != nil {
		fmt.Println(err)
		os.Exit(1)
	} else {
		c.Close()
	}
}

// box is a workspace in a home folder with keys, and a sandbox around it.
type box struct {
	home, root, outside string
	sandbox             *Sandbox
}

func newBox(t *testing.T) *box {
	t.Helper()
	here, err := os.Getwd() // not below /tmp, which the sandbox has of its own
	if err == nil && (strings.HasPrefix(here, "/tmp/") || strings.HasPrefix(here, "/var/tmp/")) {
		if here, err = os.UserCacheDir(); err == nil {
			err = os.MkdirAll(here, 0o700)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(here, "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	b := &box{home: home, outside: t.TempDir()}
	b.root = filepath.Join(b.home, "project")
	t.Setenv("HOME", b.home)
	for name, content := range map[string]string{
		"project/f": "x\n", "project/.git/config": "[core]\n", "project/.git/hooks/pre-commit": "#!/bin/sh\n", "project/.git/HEAD": "ref\n",
		".ssh/id_ed25519": "hush\n", ".netrc": "hush\n", "own/key": "hush\n", "project/inner/key": "hush\n", ".profile": "mine\n",
	} {
		name = filepath.Join(b.home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.sandbox = &Sandbox{Required: true, Hide: []string{filepath.Join(b.home, "own"), filepath.Join(b.home, "own", "key"), filepath.Join(b.root, "inner"), "/nowhere"}, Caches: filepath.Join(b.home, "cache")}
	return b
}

func (b *box) run(t *testing.T, ctx context.Context, command string) (End, string) {
	t.Helper()
	cmd, err := Shell(command)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = b.root
	var said strings.Builder
	p := Program{Cmd: cmd, Timeout: time.Minute, Sandbox: b.sandbox, Output: func(r io.Reader) { _, _ = io.Copy(&said, r) }}
	end, err := p.Run(ctx)
	if err != nil {
		t.Error(err)
	}
	return end, strings.TrimSuffix(said.String(), "\n")
}

// bubblewraps are those that this machine has. Where tests are not a person's own, it must have one.
func bubblewraps(t *testing.T) (found []string) {
	t.Helper()
	path, err := exec.LookPath("bwrap")
	if err == nil {
		found = append(found, path)
	} else if os.Getenv("CI") == "true" {
		t.Error("there is no bubblewrap to test with: make test gets it, or install the package")
	}
	return found
}

// guards S14
func TestASandboxConfines(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, path := range bubblewraps(t) {
		t.Setenv("PATH", filepath.Dir(path)+":"+os.Getenv("PATH"))
		b := newBox(t)
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		self, err := os.ReadFile(exe)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.root, "self"), self, 0o700); err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(os.TempDir(), filepath.Base(b.home)+"-other")
		if err := os.WriteFile(other, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(other)
		for name, tt := range map[string]struct {
			command, says string
			fails         bool
		}{
			"the workspace is read and written":    {"echo y >>f; cat f; rm f; echo x >f", "x\ny", false},
			"the rest is read":                     {"cat ~/.profile", "mine", false},
			"the rest is not written":              {"echo y >~/.profile", "Read-only file system", true},
			"nor what lies beside it":              {"echo y >" + filepath.Join(b.outside, "f"), "", true},
			"a folder with keys is empty":          {"ls -A ~/.ssh", "", false},
			"and cannot be written":                {"echo y >~/.ssh/config", "Read-only file system", true},
			"a file with keys is empty":            {"cat ~/.netrc", "", false},
			"what the user hides is empty":         {"ls -A ~/own inner", "/project/own:\n\ninner:", false},
			"/tmp is its own":                      {"test -e " + other, "", true},
			"and can be written":                   {"mktemp >/dev/null && echo x >/tmp/x && cat /tmp/x", "x", false},
			"there is no network":                  {asDialer + "=" + listener.Addr().String() + " ./self", "connect", true},
			"no program listens":                   {"find /run -type s", "", false},
			"other processes are not there":        {fmt.Sprintf("test -e /proc/%d/exe", os.Getpid()), "", true},
			"hooks are not written":                {"echo evil >.git/hooks/pre-commit", "Read-only file system", true},
			"nor added":                            {"echo evil >.git/hooks/post-checkout", "Read-only file system", true},
			"nor git told to run something":        {"echo evil >.git/config", "Read-only file system", true},
			"no other .git takes its place":        {"mv .git old && mkdir .git", "Device or resource busy", true},
			"git works":                            {"echo y >.git/HEAD && cat .git/HEAD", "y", false},
			"nothing is mounted":                   {"mount -t tmpfs none /mnt", "", true},
			"caches are kept":                      {`echo x >"$XDG_CACHE_HOME/x" && cat ~/cache/[0-9a-f]*/x`, "x", false},
			"the exit status is the command's own": {"exit 7", "", true},
			"without a terminal":                   {"(: </dev/tty) 2>/dev/null", "", true},
			"what it leaves behind ends":           {"(SANDBOX_TEST=left setsid sleep 60 >/dev/null 2>&1 &); echo x", "x", false},
		} {
			t.Run(name, func(t *testing.T) {
				end, said := b.run(t, t.Context(), tt.command)
				said = strings.ReplaceAll(said, b.home+"/own", "/project/own")
				if end.Why != ByItself || (end.Exit != 0) != tt.fails || tt.fails && !strings.Contains(said, tt.says) || !tt.fails && said != tt.says {
					t.Errorf("%+v: %s", end, said)
				}
			})
		}
		for _, p := range readProcs() {
			if !p.dead && p.tagged("SANDBOX_TEST=left") {
				t.Errorf("process %d is left", p.pid)
			}
		}
	}
}

// A repository without hooks, or whose .git names a folder elsewhere, is not given any by a command in a sandbox.
func TestACommandInASandboxCannotHaveGitRunSomethingLater(t *testing.T) {
	for range bubblewraps(t) {
		for name, tt := range map[string]struct {
			prepare func(git string) error
			command string
		}{
			"no hooks":       {func(git string) error { return os.RemoveAll(filepath.Join(git, "hooks")) }, "mkdir -p .git/hooks && echo evil >.git/hooks/pre-commit"},
			"a worktree":     {beWorktree, "echo gitdir: evil >.git"},
			"a worktree too": {beWorktree, "rm .git && mkdir .git"},
			"hooks that are a link": {
				func(git string) error {
					if err := os.Rename(filepath.Join(git, "hooks"), filepath.Join(git, "../ours")); err != nil {
						return err
					}
					return os.Symlink("../ours", filepath.Join(git, "hooks"))
				},
				"rm .git/hooks && mkdir .git/hooks",
			},
			"a submodule's hooks":           {nil, "mkdir -p .git/modules/sub/hooks"},
			"a submodule's hooks too":       {makeFolders("modules/sub/hooks"), "echo evil >.git/modules/sub/hooks/pre-commit"},
			"a submodule's configuration":   {makeFolders("modules/sub"), "echo evil >.git/modules/sub/config"},
			"the folder of submodules":      {makeFolders("modules/sub"), "mv .git/modules .git/old"},
			"another folder for a worktree": {makeFolders("worktrees/w"), "echo ../../../evil >.git/worktrees/w/commondir"},
			"a worktree that is not there":  {nil, "mkdir -p .git/worktrees/w"},
			"another repository in the place": {
				func(git string) error {
					return os.WriteFile(filepath.Join(git, "commondir"), []byte("../real\n"), 0o600)
				}, "echo ../evil >.git/commondir",
			},
			"its own configuration": {
				func(git string) error { return os.WriteFile(filepath.Join(git, "config.worktree"), nil, 0o600) }, "echo evil >.git/config.worktree",
			},
		} {
			t.Run(name, func(t *testing.T) {
				b := newBox(t)
				if tt.prepare != nil {
					if err := tt.prepare(filepath.Join(b.root, ".git")); err != nil {
						t.Fatal(err)
					}
				}
				end, said := b.run(t, t.Context(), tt.command)
				if end.Exit == 0 || !strings.Contains(said, "Read-only file system") && !strings.Contains(said, "Device or resource busy") {
					t.Errorf("%+v: %s", end, said)
				}
			})
		}
	}
}

// Git commits in a sandbox; and where a command has it use another repository's hooks, that is taken back when it has ended.
func TestTheRepositoryOfASandboxStaysTheOneThatGitUses(t *testing.T) {
	for range bubblewraps(t) {
		b := newBox(t)
		git := func(args ...string) string {
			t.Helper()
			cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.invalid"}, args...)...)
			cmd.Dir = b.root
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		if err := os.RemoveAll(filepath.Join(b.root, ".git")); err != nil {
			t.Fatal(err)
		}
		git("init", "-q", "-b", "main")
		git("add", "f")
		git("commit", "-q", "-m", "one")
		end, said := b.run(t, t.Context(), `echo y >>f && git add f && git -c user.name=a -c user.email=a@b.invalid commit -q -m two && git switch -q -c other && git stash list && git status --short f
			mkdir -p evil/hooks && printf '#!/bin/sh\necho ran >ran\n' >evil/hooks/post-commit && chmod +x evil/hooks/post-commit && echo ../evil >.git/commondir`)
		if end.Exit != 0 || said != "" || !strings.HasSuffix(end.Undone, ".git/commondir, from which git would run programs: that was removed") {
			t.Errorf("%+v: %s", end, said)
		}
		git("commit", "-q", "--allow-empty", "-m", "three")
		if got, want := git("log", "--format=%s"), "three\ntwo\none"; got != want {
			t.Errorf("the log is %q, not %q", got, want)
		}
		if _, err := os.Lstat(filepath.Join(b.root, "ran")); err == nil {
			t.Error("git ran a program of the command's")
		}
		if worktrees := git("worktree", "list", "--porcelain"); strings.Count(worktrees, "worktree ") != 1 {
			t.Errorf("worktrees: %s", worktrees)
		}
	}
}

func TestACommandIsNotRunInASandboxWhoseRepositoryIsALink(t *testing.T) {
	for range bubblewraps(t) {
		b := newBox(t)
		git := filepath.Join(b.root, ".git")
		if err := os.Rename(git, filepath.Join(b.root, "real")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("real", git); err != nil {
			t.Fatal(err)
		}
		p := Program{Cmd: exec.Command("/bin/sh", "-c", "rm .git && mkdir .git"), Sandbox: b.sandbox, Timeout: time.Minute, Output: func(io.Reader) {}}
		p.Cmd.Dir = b.root
		if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), ".git is a link") {
			t.Errorf("%v", err)
		}
	}
}

// guards S14
func TestTryingWhetherThereIsASandboxLeavesNoProcess(t *testing.T) {
	dir := t.TempDir()
	shell(t, t.Context(), dir, "true") // from here on orphans are adopted
	collectOrphans()
	// Like bubblewrap when it is quicker than what it has started: that ends a moment later, and is an orphan then.
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "bwrap"), []byte("#!/bin/sh\nsleep 0.05 >/dev/null 2>&1 &\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	before := zombies()
	if err := (&Sandbox{}).Ready(dir); err != nil {
		t.Fatal(err)
	}
	children := func() (n int) {
		for _, p := range readProcs() {
			if p.parent == os.Getpid() && !p.dead {
				n++
			}
		}
		return n
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.After(20 * time.Second); ; {
		if collectOrphans(); children() == 0 && zombies() <= before {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%d dead processes are left", zombies()-before)
		}
	}
}

func makeFolders(path string) func(git string) error {
	return func(git string) error { return os.MkdirAll(filepath.Join(git, path), 0o700) }
}

func beWorktree(git string) error {
	if err := os.RemoveAll(git); err != nil {
		return err
	}
	return os.WriteFile(git, []byte("gitdir: ../elsewhere/.git/worktrees/project\n"), 0o600)
}

// guards S7
func TestACommandInASandboxIsAskedToEnd(t *testing.T) {
	for range bubblewraps(t) {
		b := newBox(t)
		ctx, stop := context.WithCancel(t.Context())
		type result struct {
			end  End
			said string
		}
		ended := make(chan result, 1)
		go func() {
			end, said := b.run(t, ctx, "trap 'echo goodbye; exit 7' TERM; echo $$ >a; while :; do sleep 0.05; done")
			ended <- result{end, said}
		}()
		await(t, filepath.Join(b.root, "a"))
		stop()
		if r := <-ended; r.end.Why != ByStop || r.end.Exit != 7 || !strings.HasSuffix(r.said, "goodbye") {
			t.Errorf("%+v: %s", r.end, r.said)
		}
	}
}

// fake is a bubblewrap that says what it is given, and then ends as it is told.
func fake(t *testing.T, dir, end string) {
	t.Helper()
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\"\n" + end + "\n"
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestASandboxSaysWhatItHides(t *testing.T) {
	b := newBox(t)
	programs := t.TempDir()
	fake(t, programs, "exit 0")
	t.Setenv("PATH", "relative:"+programs+":/usr/bin:/bin")
	_, said := b.run(t, t.Context(), "echo it")
	args := strings.Split(said, "\n")
	at := func(words ...string) int {
		return bytes.Index([]byte("\n"+said+"\n"), []byte("\n"+strings.Join(words, "\n")+"\n"))
	}
	cache := filepath.Join(b.home, "cache")
	for _, order := range [][][]string{
		{{"--ro-bind", "/", "/"}, {"--tmpfs", "/tmp"}, {"--tmpfs", filepath.Join(b.home, ".ssh")}, {"--bind", b.root, b.root}, {"--tmpfs", filepath.Join(b.root, "inner")}},
		{{"--unshare-all"}, {"--die-with-parent"}, {"--cap-drop", "ALL"}, {"--ro-bind", filepath.Join(b.home, "cache", "empty"), filepath.Join(b.home, ".netrc")}, {"--bind", b.root, b.root}},
		{{"--bind", b.root, b.root}, {"--ro-bind", filepath.Join(b.root, ".git/hooks"), filepath.Join(b.root, ".git/hooks")}, {"--chdir", b.root}},
	} {
		places := make([]int, len(order))
		for i, words := range order {
			places[i] = at(words...)
		}
		if places[0] < 0 || !slices.IsSorted(places) {
			t.Errorf("%q stand at %v of\n%s", order, places, said)
		}
	}
	if tail := args[len(args)-4:]; !slices.Equal(tail, []string{"--", "/bin/sh", "-c", "echo it"}) {
		t.Errorf("it ends with %q", tail)
	}
	if entries, err := os.ReadDir(cache); err != nil || len(entries) != 2 {
		t.Errorf("caches: %v, %v", entries, err)
	}
}

func TestWhatCannotBeConfinedIsRefused(t *testing.T) {
	none, works, broken := t.TempDir(), t.TempDir(), t.TempDir()
	fake(t, works, "exit 0")
	fake(t, broken, "echo 'setting up uid map: Permission denied' >&2; exit 1")
	inside := t.TempDir()
	fake(t, inside, "exit 0")
	for name, tt := range map[string]struct{ programs, root, want string }{
		"no bubblewrap":                    {none, "", `install the package "bubblewrap"`},
		"one that does not work":           {broken, "", "uid map: Permission denied); allow user namespaces"},
		"one of the workspace":             {inside, inside, "lies in the workspace"},
		"the whole file system":            {works, "/", "is the whole file system"},
		"a relative PATH names no program": {"../" + filepath.Base(works), "", `install the package "bubblewrap"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(none)
			t.Setenv("PATH", tt.programs)
			root := tt.root
			if root == "" {
				root = t.TempDir()
			}
			s := &Sandbox{Required: true}
			if box, err := s.For(root); box != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(s.Says(root), "refused: ") {
				t.Errorf("%v, %v, says %q", box, err, s.Says(root))
			}
			s = &Sandbox{}
			if box, err := s.For(root); box != nil || err != nil || !strings.HasPrefix(s.Says(root), "none: ") {
				t.Errorf("if available: %v, %v, says %q", box, err, s.Says(root))
			}
		})
	}
	if box, err := (*Sandbox)(nil).For("/"); box != nil || err != nil || (*Sandbox)(nil).Says("/") != "" {
		t.Error("no sandbox is one")
	}
}

func TestWhatIsHiddenAroundAndWithinTheWorkspace(t *testing.T) {
	for _, path := range bubblewraps(t) {
		t.Setenv("PATH", filepath.Dir(path)+":"+os.Getenv("PATH"))
		b := newBox(t)
		for name, tt := range map[string]struct {
			hide, root, command, says string
		}{
			"a folder around it":                    {"", "project", "ls -A ..; cat f", "project\nx"},
			"and one within that folder":            {",own", "project", "ls -A ..; cat f", "project\nx"},
			"and one within it":                     {",project/inner", "project", "ls -A .. inner", "..:\nproject\n\ninner:"},
			"the home folder is the workspace":      {"own", ".", "ls -A .ssh own; cat .netrc .profile", ".ssh:\n\nown:\nmine"},
			"a folder of keys is the workspace":     {"nothing", ".ssh", "cat id_ed25519; ls -A ..  >/dev/null", "hush"},
			"a file of the folder that is hidden":   {"own,own/key", "project", "ls -A ../own", ""},
			"a file below the private /tmp":         {b.outside, "project", "test -e " + b.outside + " || echo none", "none"},
			"a file in it, where it is a workspace": {"project/inner/key", "project", "cat inner/key", ""},
		} {
			t.Run(name, func(t *testing.T) {
				var all []string
				for h := range strings.SplitSeq(tt.hide, ",") {
					if !filepath.IsAbs(h) {
						h = filepath.Join(b.home, h)
					}
					all = append(all, h)
				}
				b := *b
				b.root, b.sandbox = filepath.Join(b.home, tt.root), &Sandbox{Required: true, Hide: all, Caches: t.TempDir()}
				if end, said := b.run(t, t.Context(), tt.command); said != tt.says {
					t.Errorf("%+v: %s", end, said)
				}
			})
		}
	}
}
