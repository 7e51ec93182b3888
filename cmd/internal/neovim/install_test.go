//go:build nvim

package neovim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// configure writes an init.lua that names the binary, and more of it.
func (u *user) configure(more string) {
	u.t.Helper()
	u.write("config/nvim/init.lua", fmt.Sprintf("vim.g.fermata = { path = %q }\n%s", binary, more))
}

// There is nothing to call: a package is a folder below pack/*/start, or below opt and :packadd.
func TestAPlainPackageIsEnough(t *testing.T) {
	for version, program := range neovims {
		for _, how := range []struct{ name, folder, init string }{
			{"start", "start", ""}, {"opt", "opt", "vim.cmd.packadd('fermata')\n"},
		} {
			t.Run(version+"/"+how.name, func(t *testing.T) {
				t.Parallel()
				u := newUser(t, program, "reply\nsay \"Well met.\"\n")
				u.configure(how.init)
				dir := filepath.Join(u.home, "data", "nvim", "site", "pack", "any", how.folder)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(plugin, filepath.Join(dir, "fermata")); err != nil {
					t.Fatal(err)
				}
				u.startBare(Options{Args: []string{"main.go"}})
				u.Type(":Fermata ask Q<CR>")
				u.See("Answered…Well met.")
			})
		}
	}
}

// Managers that load a plugin late put a command of their own in its place. The first use takes that away, puts the folder on
// the runtime path, hands the user's options to setup, sources the plugin, and says the command again.
func TestAManagerMayLoadItWithItsFirstCommand(t *testing.T) {
	for version, program := range neovims {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, program, "reply\nsay \"Well met.\"\n")
			u.configure(fmt.Sprintf(`local folder = %q
				vim.api.nvim_create_user_command('Fermata', function(o)
					vim.api.nvim_del_user_command('Fermata')
					vim.opt.runtimepath:prepend(folder)
					require('fermata').setup({ lane = { width = 70 } })
					vim.cmd.source(folder .. '/plugin/fermata.lua')
					vim.cmd({ cmd = 'Fermata', args = o.fargs, bang = o.bang, range = o.range == 2 and { o.line1, o.line2 } or nil })
				end, { nargs = '*', range = true, bang = true })
			`, plugin))
			u.startBare(Options{Args: []string{"main.go"}})
			u.Type(":3,5Fermata ask Q<CR>")
			u.See("func main() {…Answered…Well met.")
			if body := u.last(); !strings.Contains(body, "main.go, lines 3-5") {
				t.Errorf("the request is\n%s", body)
			}
			var width int
			if u.Lua(&width, "return require('fermata.config').get().lane.width"); width != 70 {
				t.Errorf("the lane is %d columns wide, want what setup was given", width)
			}
		})
	}
}

// While -c is carried out the cursor is on line 0.
func TestTheCommandLineOfNeovimMayAsk(t *testing.T) {
	for version, program := range neovims {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, program, "reply\nsay \"Well met.\"\n")
			u.start(Options{Args: []string{"-c", "Fermata ask Q"}}, "main.go")
			u.See("package main…Answered…Well met.")
		})
	}
}

// Neovim 0.12 has a manager of its own. What the manual says to write is run here, on a repository of the same shape.
func TestNeovimsOwnManagerInstallsIt(t *testing.T) {
	for version, program := range neovims {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, program, "reply\nsay \"Well met.\"\n")
			repo := filepath.Join(u.home, "repository")
			if err := os.CopyFS(filepath.Join(repo, "editors", "nvim"), os.DirFS(plugin)); err != nil {
				t.Fatal(err)
			}
			git := exec.Command("sh", "-c", "git init -q && git add . && git -c user.name=a -c user.email=a@example.invalid commit -q -m plugin")
			git.Dir, git.Env = repo, []string{"HOME=" + u.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			manual, err := os.ReadFile(filepath.Join(plugin, "doc", "fermata.txt"))
			if err != nil {
				t.Fatal(err)
			}
			_, snippet, found := strings.Cut(string(manual), "vim.pack.add({ 'https://…/fermata' }, {")
			snippet, _, closed := strings.Cut(snippet, "\n<")
			if !found || !closed {
				t.Fatal("the manual does not show vim.pack.add")
			}
			u.configure("if not vim.pack then return end\n" + // Neovim before 0.12 has none
				"vim.pack.add({ 'file://" + repo + "' }, { confirm = false," + snippet + "\n")
			u.startBare(Options{Args: []string{"main.go"}})
			var has bool
			u.Lua(&has, "return vim.pack ~= nil")
			if !has {
				return
			}
			u.Type(":Fermata ask Q<CR>")
			u.See("Answered…Well met.")
		})
	}
}
