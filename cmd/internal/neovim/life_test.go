//go:build nvim

package neovim

import (
	"strings"
	"testing"
)

// guards P4, C1: quitting in the middle of an answer loses nothing.
func TestASessionSurvivesNeovim(t *testing.T) {
	inBoth(t, "reply First\nsay \"one two \"\nhang\nreply Second\nsay Three.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("one two")
		u.Quit()
		u.start(Options{}, "main.go")
		u.Ex("Fermata transcript")
		u.See("> First", "one two", "Stopped here")
		u.Type("<C-w>p:Fermata ask Second<CR>") // goes on in the session that was opened
		u.See("Answered…Three.")
		if body := u.last(); !strings.Contains(body, `"content":"one two "`) {
			t.Errorf("the request is\n%s", body)
		}
		u.Quit()
	})
}

// guards C1, C2
func TestADaemonThatDiesIsStartedAgainByTheNextQuestion(t *testing.T) {
	inBoth(t, "reply First\nsay \"one two \"\nhang\nreply Second\nsay Three.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("one two")
		u.Ex("Fermata transcript")
		u.See("> First…one two")
		u.Type("<C-w>p")
		u.Lua(nil, `for _, p in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do
			if vim.api.nvim_get_proc(p).name:match('fermata') then vim.uv.kill(p, 'sigkill') end
		end`)
		u.See("the daemon ended (signal 9)", "Abandoned")
		u.Type("<CR>")
		u.picture("12-crash")
		messages := u.Text("return vim.fn.execute('messages')")
		if strings.Count(messages, "\n")+1 > 3 || strings.Contains(messages, "quit with exit code") {
			t.Errorf("the messages are\n%s", messages)
		}
		u.Type(":Fermata ask Second<CR>")
		u.See("Answered…Three.")
		if text := u.settled(); !pattern("one two…Abandoned…> Second…Three.").MatchString(text) {
			t.Errorf("the transcript is\n%s", text)
		}
	})
}

// guards F3, F4
func TestATurnThatFailedIsKeptOrTriedAgain(t *testing.T) {
	inBoth(t, "reply\nsay \"half an \"\ntruncate\nreply\nsay \"whole answer\"\n", func(t *testing.T, u *user) {
		u.Type("3G:Fermata ask First<CR>")
		u.See("import…Failed · ", ":Fermata retry · :Fermata keep")
		u.picture("13-failed")
		u.Type("<CR>")
		u.Ex("Fermata keep")
		u.See("kept: 2 words are in the next model input")
		u.Ex("Fermata retry")
		u.See("import…Answered…whole answer")
		u.SeeNot("Failed")
		if body := u.last(); !strings.Contains(body, `"half an "`) {
			t.Errorf("the request is\n%s", body)
		}
	})
}

func TestEachRootHasADaemonOfItsOwn(t *testing.T) {
	inBoth(t, "reply\ncall list_dir {}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.write("other ünd/.git/HEAD", "")
		u.write("other ünd/ä file.txt", "text\n")
		u.Type(":Fermata ask One<CR>")
		u.See("Answered")
		u.Ex("tabedit " + strings.ReplaceAll(u.home+"/other ünd/ä file.txt", " ", "\\ "))
		u.Type(":Fermata ask Two<CR>")
		u.See("text…Answered")
		var roots []string
		u.Lua(&roots, "return require('fermata.client').roots()")
		if len(roots) != 2 {
			t.Errorf("the roots are %q", roots)
		}
		if body := u.last(); !strings.Contains(body, "ä file.txt, lines 1-1") || strings.Contains(body, "main.go") {
			t.Errorf("the request is\n%s", body)
		}
	})
}

// guards C4: a second Neovim on the project is told of what the first does.
func TestTwoNeovimsOnOneProject(t *testing.T) {
	inBoth(t, "reply First\nsay \"one \"\nhang\nreply Second\nsay Two.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("one")
		first := u.Neovim
		u.start(Options{}, "main.go")
		u.Ex("Fermata transcript")
		u.See("> First…one")
		u.Type("<C-w>p:Fermata ask Second<CR>")
		u.See("another fermata runs a turn in this session")
		u.Type("<CR>:Fermata! ask Second<CR>") // in a session of its own
		u.See("Answered…Two.")
		first.Type("<C-c>")
		first.See("Stopped here")
		u.See("one", "Stopped here")
	})
}

func TestPickingASessionGoesOnInIt(t *testing.T) {
	inBoth(t, "reply First\nsay Eins.\nreply Second\nsay Zwei.\nreply Third\nsay Drei.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("Eins.")
		u.Type(":Fermata! ask Second<CR>")
		u.See("Zwei.")
		u.Type(":Fermata sessions<CR>")
		u.See("1: Second · 1 turn", "2: First · 1 turn")
		u.Type("2<CR>")
		u.See("# First", "Eins.")
		u.Type("<C-w>p:Fermata ask Third<CR>")
		u.See("Drei.")
		if body := u.last(); !strings.Contains(body, "Eins.") || strings.Contains(body, "Zwei.") {
			t.Errorf("the request is\n%s", body)
		}
	})
}

func TestTheModelIsChosen(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata model<CR>")
		u.See("scripted/model · used now", "rehearsal/rehearsal")
		u.Type("q")
		u.Type(":Fermata model scripted/other<CR>")
		u.See("the next turn uses scripted/other")
		u.Type(":Fermata ask Q<CR>")
		u.See("Answered")
		if body := u.last(); !strings.Contains(body, `"model":"other"`) {
			t.Errorf("the request is\n%s", body)
		}
	})
}

func TestTheFiguresAreShownWithTheirDefinitions(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Q<CR>")
		u.See("Answered")
		u.Ex("Fermata stats")
		u.See("# What stopping comes to", "1 session, 1 turn in", "too few to tell")
		u.picture("14-stats")
	})
}

func TestTheHealthPageSaysWhatIsWrong(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		u.Ex("checkhealth fermata")
		text := u.Buffer("")
		for _, want := range []string{"the daemon answers", "vim.g.fermata is right", "scripted/model"} {
			if !strings.Contains(text, want) {
				t.Errorf("the health page lacks %q:\n%s", want, text)
			}
		}
		u.Lua(nil, "vim.g.fermata = { path = '/nowhere/fermata', colour = 'red', keys = { stop = 7 } }")
		u.Lua(nil, "require('fermata.config').reset()")
		u.Ex("checkhealth fermata")
		text = u.Buffer("")
		for _, want := range []string{"vim.g.fermata.colour is not an option", "vim.g.fermata.keys.stop is 7"} {
			if !strings.Contains(text, want) {
				t.Errorf("the health page lacks %q:\n%s", want, text)
			}
		}
	})
}

// The project that is edited must not make Neovim run a program of its own.
func TestTheBinaryIsNeverTakenFromTheWorkspace(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		u.write("project/bin/fermata", "#!/bin/sh\ntouch "+u.home+"/ran\n")
		u.write("elsewhere/fermata", "#!/bin/sh\n")
		var r struct{ InRoot, Relative, Elsewhere, Given string }
		u.Lua(&r, `local home, root = ...
			vim.uv.fs_chmod(root .. '/bin/fermata', 493)
			vim.uv.fs_chmod(home .. '/elsewhere/fermata', 493)
			local function find(path, given)
				vim.env.PATH = path
				vim.g.fermata = { path = given }
				require('fermata.config').reset()
				local found, from = require('fermata.binary').find(root)
				return (found or 'none') .. ' ' .. from
			end
			return {
				InRoot = find(root .. '/bin'),
				Relative = find('bin:.:'),
				Elsewhere = find(root .. '/bin:' .. home .. '/elsewhere'),
				Given = find('', './bin/fermata'),
			}`, u.home, u.root)
		if strings.HasPrefix(r.InRoot, u.root) || strings.HasPrefix(r.Relative, u.root) || strings.HasPrefix(r.Relative, "bin") ||
			r.Elsewhere != u.home+"/elsewhere/fermata PATH" || !strings.Contains(r.Given, "must be an absolute path") {
			t.Errorf("%+v", r)
		}
	})
}

func TestANarrowScreenShowsWhatMatters(t *testing.T) {
	inBoth(t, "reply\nsay \"one two three four five six seven eight nine ten \"\nhang\n", func(t *testing.T, u *user) {
		u.Resize(32, 16)
		u.Type(":Fermata ask Q<CR>")
		u.See("■ Stop <C-c> · 10 words", "nine ten")
		u.stop()
		u.See("╭Stopped here · 10 words kept╮", "What should it do instead?")
		u.picture("15-narrow")
		u.Type("<Esc>")
		u.SeeNot("What should it do instead?")
		u.See("Stopped here · 10 words kept")
	})
}

func TestWrongOptionsAreSaid(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		for given, want := range map[string]string{
			"'yes'":                      "vim.g.fermata is a string; it must be a table",
			"{ keys = { stop = '' } }":   "vim.g.fermata.keys.stop",
			"{ keys = true }":            "vim.g.fermata.keys is a boolean",
			"{ args = { 1 } }":           "vim.g.fermata.args",
			"{ args = { model = 'x' } }": "vim.g.fermata.args",
			"{ env = { A = true } }":     "vim.g.fermata.env",
			"{ root_markers = {} , path = 'x', args={{}} }": "vim.g.fermata.args",
			"{ root_markers = { 1 } }":                      "vim.g.fermata.root_markers",
			"{ inline = { lines = -2 } }":                   "vim.g.fermata.inline.lines",
			"{ inline = { width = 0 } }":                    "vim.g.fermata.inline.width",
			"{ inline = { width = 33.5 } }":                 "vim.g.fermata.inline.width",
			"{ lane = { height = 2.5 } }":                   "vim.g.fermata.lane.height",
			"{ lane = { width = 0 } }":                      "vim.g.fermata.lane.width",
			"function() error('mine') end":                  "mine",
		} {
			var problems []string
			u.Lua(&problems, "vim.g.fermata = "+given+" local ok, p = pcall(require('fermata.config').problems) return ok and (#p > 0 and p or {'none'}) or {'CRASH ' .. p}")
			if got := strings.Join(problems, "\n"); !strings.Contains(got, want) || strings.Contains(got, "CRASH") {
				t.Errorf("of %s is said %q, want %q", given, got, want)
			}
		}
	})
}
