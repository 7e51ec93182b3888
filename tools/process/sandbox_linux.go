package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// probeTime is how long bubblewrap may take to show that it works.
const probeTime = 5 * time.Second

// findBubblewrap finds a bubblewrap that works here, whatever relative folders PATH names.
func findBubblewrap() (string, error) {
	var path string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, "bwrap")); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return "", errors.New(`the sandbox needs bubblewrap, which is not installed: install the package "bubblewrap", or set [run] sandbox = false`)
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("bubblewrap cannot be found: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	probe := exec.CommandContext(ctx, path, append(namespaces(), "--ro-bind", "/", "/", "--", "/bin/sh", "-c", ":")...)
	probe.Env = []string{}
	probe.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what it leaves behind is known as an orphan, and collected
	if said, err := probe.CombinedOutput(); err != nil {
		return "", fmt.Errorf("bubblewrap at %s does not work here (%v: %s); allow user namespaces, or set [run] sandbox = false",
			path, err, strings.ToValidUTF8(strings.TrimSpace(string(said[:min(len(said), 300)])), "\uFFFD"))
	}
	return path, nil
}

// fits refuses a bubblewrap that a repository could have put there, and a folder that leaves nothing to protect.
func fits(program, root string) error {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	switch {
	case root == "/":
		return errors.New("the workspace is the whole file system, which no sandbox can confine anything to; open a folder of it")
	case within(root, program):
		return fmt.Errorf("bubblewrap at %s lies in the workspace and is not run; install the package \"bubblewrap\"", program)
	}
	return nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

func namespaces() []string {
	// No terminal is left to be typed into: OwnGroup has given it a session of its own.
	return []string{"--unshare-all", "--die-with-parent", "--cap-drop", "ALL"}
}

// keys are where keys and what speaks for them are usually kept, below the home folder.
var keys = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass",
	".my.cnf", ".vault-token", ".password-store", ".1password", ".terraform.d", ".cargo/credentials", ".cargo/credentials.toml",
	".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".bash_history", ".zsh_history", ".python_history",
	".mozilla", ".thunderbird", ".local/share/keyrings", ".config/gcloud", ".config/gh", ".config/hub", ".config/op",
	".config/rclone", ".config/git/credentials", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
	".config/Code/User/globalStorage", ".config/fermata", ".local/share/fermata", ".local/state/fermata",
}

// sockets are folders that programs of this machine listen in: a file system that cannot be written does not keep from
// connecting. What NixOS keeps there of its programs stays.
var (
	sockets = []string{"/run", "/var/run"}
	kept    = []string{"/run/current-system", "/run/booted-system", "/run/wrappers", "/run/opengl-driver"}
)

// arguments are bubblewrap's, up to the program. What comes later lies over what came before: first all as it is, then what
// is hidden around the root, the root, and what is hidden within it.
func (s *Sandbox) arguments(root string) ([]string, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("the workspace cannot be found: %w", err)
	}
	args := append(namespaces(), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--setenv", "TMPDIR", "/tmp")
	if is, _ := folder("/var/tmp"); is {
		args = append(args, "--tmpfs", "/var/tmp")
	}
	for _, dir := range sockets {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			args = append(args, "--tmpfs", dir)
		}
	}
	for _, dir := range kept {
		args = append(args, "--ro-bind-try", dir, dir)
	}
	if isLink(filepath.Join(root, ".git")) { // whatever else is available: a confined command can have made it, for the next one
		return nil, errors.New("the workspace's .git is a link, which the sandbox cannot keep from being replaced by a repository that runs programs; make it a folder")
	}
	hidden, empty := s.hidden(root), "/dev/null"
	if s.Caches != "" {
		empty = filepath.Join(s.Caches, "empty") // what reads a file with keys finds nothing; a device it could not open
		if err := makeEmpty(empty); err != nil {
			return nil, fmt.Errorf("make the sandbox's cache: %w", err)
		}
	}
	for _, path := range hidden {
		switch {
		case within(path, root) && path != root:
			args = append(args, "--tmpfs", path) // the root is to be put into it
		case !within(root, path):
			args = hide(args, path, empty)
		}
	}
	args = append(args, "--bind", root, root)
	args = guardGit(args, filepath.Join(root, ".git"))
	for _, path := range hidden {
		if within(root, path) && path != root {
			args = hide(args, path, empty)
		}
	}
	if s.Caches != "" {
		sum := sha256.Sum256([]byte(root))
		cache := filepath.Join(s.Caches, hex.EncodeToString(sum[:8])) // its own: what one workspace leaves there, no other one builds with
		if err := os.MkdirAll(cache, 0o700); err != nil {
			return nil, fmt.Errorf("make the sandbox's cache: %w", err)
		}
		args = append(args, "--bind", cache, cache, "--setenv", "XDG_CACHE_HOME", cache, "--setenv", "GOCACHE", filepath.Join(cache, "go-build"),
			"--setenv", "npm_config_cache", filepath.Join(cache, "npm"))
	}
	return append(args, "--chdir", root), nil
}

// In a repository's folder these have git run programs: hooks and configurations, its own and those of the repositories of its
// submodules and worktrees. Where one of the folders is not there, an empty one stands there for the time, which git takes for none.
var (
	runFiles   = []string{"config", "config.worktree", commonDir}
	runFolders = []string{"hooks", "modules", "worktrees"}
)

// commonDir is the file of a repository that names another one, whose hooks and configuration count then. Nothing can be mounted
// where it is not there: an empty one would break the repository for everybody.
const commonDir = "commondir"

// guardGit keeps what a repository has git run, also outside of the sandbox. A folder that something is mounted on cannot be
// renamed, so no other one takes .git's place. A repository that is made anew in a folder without one is not kept from anything.
func guardGit(args []string, git string) []string {
	info, err := os.Lstat(git)
	switch {
	case err != nil:
		return args
	case info.Mode().IsRegular(): // names a folder elsewhere
		return append(args, "--ro-bind", git, git)
	case info.IsDir():
		args = append(args, "--bind", git, git)
	}
	if slices.ContainsFunc(slices.Concat(runFiles, runFolders), func(name string) bool { return isLink(filepath.Join(git, name)) }) {
		return append(args, "--ro-bind", git, git) // a link could be replaced, whatever lies over what it leads to
	}
	for _, name := range runFiles {
		if path := filepath.Join(git, name); exists(path) {
			args = append(args, "--ro-bind", path, path)
		}
	}
	for _, name := range runFolders {
		if path := filepath.Join(git, name); exists(path) {
			args = append(args, "--ro-bind", path, path)
		} else {
			args = append(args, "--tmpfs", path, "--remount-ro", path)
		}
	}
	return args
}

// redirection is where a command could have git use another repository than a folder's own; "" where it cannot write that.
func redirection(root string) string {
	git := filepath.Join(root, ".git")
	if info, err := os.Lstat(git); err != nil || !info.IsDir() || exists(filepath.Join(git, commonDir)) {
		return ""
	}
	return filepath.Join(git, commonDir)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// private are folders that the sandbox has of its own.
var private = []string{"/tmp", "/var/tmp", "/run"}

// hidden are the paths to hide that exist, links resolved, but for those that are not there anyway: in a folder that is hidden or
// private, unless the root shows them again.
func (s *Sandbox) hidden(root string) []string {
	all := append([]string(nil), s.Hide...)
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		for _, k := range keys {
			all = append(all, filepath.Join(home, k))
		}
	}
	var found []string
	for _, path := range all {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != "/" {
			found = append(found, real)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return slices.DeleteFunc(slices.Clone(found), func(path string) bool {
		return slices.ContainsFunc(slices.Concat(found, private), func(around string) bool {
			return path != around && within(around, path) && !(within(around, root) && within(root, path))
		})
	})
}

// hide lays an empty folder or the empty file over one.
func hide(args []string, path, empty string) []string {
	if is, err := folder(path); err != nil {
		return args
	} else if is {
		return append(args, "--tmpfs", path, "--remount-ro", path)
	}
	return append(args, "--ro-bind", empty, path)
}

func makeEmpty(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

func folder(path string) (bool, error) {
	info, err := os.Stat(path)
	return err == nil && info.IsDir(), err
}

// within reports whether path is root or lies below it; both are absolute.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}
