//go:build nvim

package neovim

import (
	"path/filepath"
	"strings"
	"testing"
)

// noErrors wants that Neovim has shown nobody an error of our Lua.
func (u *user) noErrors() {
	u.t.Helper()
	if messages := u.Text("return vim.fn.execute('messages') .. vim.v.errmsg"); strings.Contains(messages, "stack traceback") || strings.Contains(messages, ".lua:") {
		u.t.Errorf("Neovim shows an error of the plugin:\n%s", messages)
	}
}

// A file that is read again is another text at the same place: the answer stays there, and can be stopped.
func TestAnAnswerStaysAtItsLineWhenTheFileIsReadAgain(t *testing.T) {
	for name, again := range map[string]string{
		"edit":     "edit!",
		"unload":   "enew | edit main.go",
		"delete":   "enew | bdelete main.go | edit main.go",
		"autoread": "set autoread | silent !echo // x >> main.go\n checktime",
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
				u.Ex("set nohidden")
				u.Type("3G:Fermata ask Go<CR>")
				u.See("import…■ Stop…one two…func main")
				for command := range strings.SplitSeq(again, "\n") {
					u.Ex(strings.TrimSpace(command))
				}
				u.See("import…■ Stop…one two…func main")
				u.Type("3G")
				u.stop()
				u.See("import…Stopped here · 2 words kept…one two")
				u.noErrors()
			})
		})
	}
}

func TestTheStopKeyIsGoneFromABufferThatIsWiped(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\nreply\nsay \"three \"\nhang\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("one two")
		u.Ex("edit notes.txt | bwipeout main.go")
		u.Type(":Fermata stop<CR>")
		u.See("What should it do instead?", "one two")
		u.Type("<Esc>")
		u.noErrors()
	})
}

func TestATranscriptIsWholeAgainAfterItsBufferWasUnloaded(t *testing.T) {
	for name, away := range map[string]string{"delete": "bdelete", "edit": "edit!", "wipe": "bwipeout"} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, strings.Repeat("reply\nsay Eins.\n", 4)+"reply\nsay Fünf.\n", func(t *testing.T, u *user) {
				for _, q := range []string{"A1", "B2", "C3", "D4"} {
					u.Type(":Fermata ask " + q + "<CR>")
					u.Until("its end", "local all = require('fermata.turns').all() return #all == ... and all[#all].state == 'completed'", len(q)-2+int(q[1]-'0'))
				}
				u.Ex("Fermata clear")
				u.Ex("Fermata transcript")
				u.See("> D4…Eins.")
				u.Ex(away)
				u.Ex("Fermata transcript")
				u.Until("all of it", `local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
					return text:find('> A1.*> B2.*> C3.*> D4.*Eins') ~= nil and vim.bo.buftype == 'nofile' and vim.fn.maparg('R', 'n') ~= ''`)
				u.Type("<C-w>p:Fermata ask E5<CR>")
				u.Until("what comes", "return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('fermata://transcript'), 0, -1, false), '\\n'):find('> A1.*> D4.*> E5.*Fünf') ~= nil")
				u.noErrors()
			})
		})
	}
}

func TestBuffersThatASessionFileBroughtBackAreUsed(t *testing.T) {
	inBoth(t, "reply\nsay Eins.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Q<CR>")
		u.See("Answered")
		u.Ex("Fermata transcript")
		u.See("> Q")
		u.Ex("Fermata input")
		u.See("verified")
		u.Ex("Fermata stats")
		u.See("# What stopping comes to")
		u.Ex("mksession " + filepath.Join(u.home, "s.vim"))
		u.Quit()
		u.start(Options{Width: 240})
		u.Ex("source " + filepath.Join(u.home, "s.vim"))
		for command, want := range map[string]string{"transcript": "> Q", "input": "verified", "stats": "# What stopping comes to"} {
			u.Ex("Fermata " + command)
			u.See(want)
			u.noErrors()
			u.Until("a buffer of ours", "return vim.bo.buftype == 'nofile'")
		}
		u.noErrors()
	})
}

func TestThePageOfFiguresHasAName(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		for range 2 {
			u.Ex("Fermata stats")
			u.Until("the page", "return vim.api.nvim_buf_get_name(0) == 'fermata://stats'")
		}
		if n := u.Text("return tostring(#vim.api.nvim_list_wins())"); n != "2" {
			t.Errorf("there are %s windows", n)
		}
	})
}

// guards D1
func TestAStopThatEndsInTheCommandLineWindowOpensTheLaneBehindIt(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("one two")
		u.Type("q:")
		u.Until("the command-line window", "return vim.fn.getcmdwintype() ~= ''")
		u.Lua(nil, "require('fermata').stop()")
		u.See("Stopped here · 2 words")
		u.Type(":q<CR>")
		u.See("What should it do instead?")
		u.noErrors()
	})
}

func TestTheLaneFitsAScreenThatBecomesSmaller(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("one two")
		u.stop()
		u.See("What should it do instead?")
		u.Type("hi")
		u.Resize(50, 14)
		u.See("╭ Stopped here · 2 words kept…╮", "╭ Redirect ─…╮…hi…╯")
		u.Resize(50, 9) // no room for the answer
		u.SeeNot("╭ Stopped here")
		u.See("╭ Redirect ─…╮…hi…╯")
		u.Resize(100, 40)
		u.See("╭ Stopped here · 2 words kept…╮", "╭ Redirect ─…╮…hi…╯")
		u.noErrors()
	})
}

func TestAnAnswerInAClosedFoldIsSeen(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
		u.Ex("5,7fold")
		u.Type("6G:Fermata ask Go<CR>")
		u.See("fmt.Println…■ Stop…one two…}")
	})
}

func TestAnAnswerAtTheLastLineOfTheWindowIsSeen(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
		u.Type(":call setline(1, range(1, 100))<CR>")
		u.Type("30GztL:Fermata ask Go<CR>")
		u.See("■ Stop", "one two")
	})
}

// While Neovim waits for a key within an expression, no text may be changed.
func TestATranscriptGoesOnWhenAnExpressionHasItsKey(t *testing.T) {
	inBoth(t, "reply\nwait 100ms\nsay \"one two \"\nwait 300ms\nsay \"three \"\nwait 300ms\nsay four\n", func(t *testing.T, u *user) {
		u.Ex("nnoremap <expr> gx getcharstr()")
		u.Type(":Fermata ask Q<CR>")
		u.Ex("Fermata transcript")
		u.See("> Q", "one two")
		u.Type("gx")
		u.Until("the end", "return require('fermata.turns').all()[1].state == 'completed' and vim.wait(300) ~= nil")
		u.Type("$")
		if text := u.settled(); !strings.Contains(text, "one two three four") {
			t.Errorf("the transcript is\n%s", text)
		}
		u.noErrors()
	})
}

func TestALaneLeavesThePersonInTheTabOfTheStop(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\nreply\nsay \"tri \"\nhang\n", func(t *testing.T, u *user) {
		u.Type("3G:Fermata ask A<CR>")
		u.See("one two")
		u.Ex("tabedit notes.txt")
		u.Type("2G:Fermata ask B<CR>")
		u.See("tri")
		u.Ex("tabprevious")
		u.stop()
		u.See("╭ Stopped here · 2 words kept", "What should it do instead?")
		u.Type("draft<Esc>")
		u.Ex("tabnext")
		u.stop()
		u.See("five", "╭ Stopped here · 1 word kept", "What should it do instead?")
		u.Type("<Up>")
		u.See("draft")
		u.Ex("tabprevious")
		u.SeeNot("╭ Stopped here")
		u.noErrors()
	})
}

func TestWhatWasWrittenInALaneThatIsClosedIsBroughtBack(t *testing.T) {
	for _, command := range []string{"quit", "bdelete!", "close"} {
		t.Run(command, func(t *testing.T) {
			inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
				u.Type("3G:Fermata ask A<CR>")
				u.See("one two")
				u.stop()
				u.See("What should it do instead?")
				u.Type("draft<Esc>:edit main.go<CR>") // a lane stays one
				u.See("E1513", "╭ Redirect ─…draft")
				u.Type(":" + command + "<CR>")
				u.SeeNot("╭ Stopped here", "╭ Redirect")
				u.Type(":Fermata redirect<CR>")
				u.See("What should it do instead?")
				u.Type("<Up>")
				u.See("╭ Redirect ─…draft")
				u.noErrors()
			})
		})
	}
}
