//go:build nvim

package neovim

import (
	"strings"
	"testing"
)

func TestAQuestionIsAboutWhatIsSelected(t *testing.T) {
	for _, tt := range []struct{ name, keys, want string }{
		{"the line", "3G:Fermata ask Q<CR>", `Q\n\nmain.go, lines 3-3:\n` + "```" + `\nimport \"fmt\"\n` + "```"},
		{"a range", ":5,6Fermata ask Q<CR>", `Q\n\nmain.go, lines 5-6:\n` + "```" + `\nfunc main() {\n\tfmt.Println(\"hello\")\n` + "```"},
		{"characters", "6G0fPve<Esc>gv:Fermata ask Q<CR>", `Q\n\nmain.go, lines 6-6:\n` + "```" + `\nPrintln\n` + "```"},
		{"lines", "5GVj:Fermata ask Q<CR>", `Q\n\nmain.go, lines 5-6:\n` + "```" + `\nfunc main() {\n\tfmt.Println(\"hello\")\n` + "```"},
		{"an empty line", "2G:Fermata ask Q<CR>", `"content":"Q"`},
		{"characters beyond ASCII", "ggOé漢字x<Esc>0vl:Fermata ask Q<CR>", "```" + `\né漢\n` + "```"},
		{"an input", "3G:Fermata ask<CR>", `Q\nmore\n\nmain.go, lines 3-3:`},
		{"the map", "3GV\\a", `Q\nmore\n\nmain.go, lines 3-3:`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
				u.Ex("xmap \\a <Plug>(fermata-ask)")
				u.Type(tt.keys)
				if strings.Contains(tt.want, "more") {
					u.See("Ask fermata", "What do you want to know")
					u.Type("Q<C-j>more<CR>")
				}
				u.See("Answered")
				if body := u.last(); !strings.Contains(body, tt.want) {
					t.Errorf("the request is\n%s\nwant\n%s", body[strings.Index(body, `"role":"user"`):], tt.want)
				}
			})
		})
	}
}

func TestUnsavedTextIsWhatTheModelReads(t *testing.T) {
	inBoth(t, "reply\ncall read_file {\"path\":\"notes.txt\"}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Ex("edit notes.txt")
		u.Type("ounsaved<Esc>:Fermata ask Q<CR>")
		u.See("Answered")
		if body := u.last(); !strings.Contains(body, `2\tunsaved\n`) {
			t.Errorf("the model was told\n%s", body)
		}
		if got := u.read("notes.txt"); got != project["notes.txt"] {
			t.Errorf("the file was saved: %q", got)
		}
	})
}

// A buffer that is no file of a project can be asked about too.
func TestAnyBufferCanBeAskedAbout(t *testing.T) {
	for _, name := range []string{"", "a name with späces.txt", "scp://host/there.txt"} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, "reply\nsay Fine.\n", func(t *testing.T, u *user) {
				u.Ex("enew")
				if name != "" {
					u.Lua(nil, "vim.cmd('noautocmd file ' .. vim.fn.fnameescape(...))", name)
				}
				u.Type("isome text<Esc>:Fermata ask Q<CR>")
				u.See("some text…Answered…Fine.")
				if body := u.last(); !strings.Contains(body, `some text`) {
					t.Errorf("the request is\n%s", body)
				}
			})
		})
	}
}

// What is chosen in a buffer that no answer can stand in was left out without a word.
func TestARangeOfATerminalOrAHelpPageGoesWithTheQuestion(t *testing.T) {
	for _, tt := range []struct{ name, open, keys, want string }{
		{"a terminal", "terminal printf 'wrong in line 7'", ":1Fermata ask Q<CR>", "wrong in line 7"},
		{"a scratch buffer", "new | setlocal buftype=nofile | call setline(1, ['one', 'two'])", ":2Fermata ask Q<CR>", `Q\n\nuntitled:Untitled-`},
		{"the line of one", "new | setlocal buftype=nofile | call setline(1, ['one', 'two'])", ":Fermata ask Q<CR>", `"content":"Q"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBoth(t, "reply\nsay Fine.\n", func(t *testing.T, u *user) {
				u.Ex(tt.open)
				u.Until("its text", "return vim.fn.getline(1):match('%S') ~= nil")
				u.Type(tt.keys)
				u.See("Fine.")
				if body := u.last(); !strings.Contains(body, tt.want) {
					t.Errorf("the request is\n%s\nwant\n%s", body[strings.Index(body, `"role":"user"`):], tt.want)
				}
			})
		})
	}
}

func TestCommandsAreCompleted(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		for _, tt := range []struct{ line, want string }{
			{"Fermata re", "redirect rename retry revert"},
			{"Fermata revert ", "undo"},
			{"5,6Fermata tr", "transcript"},
			{"Fermata! a", "answer ask"},
			{"Fermata ask ", ""},
		} {
			if got := u.Text("return table.concat(vim.fn.getcompletion(..., 'cmdline'), ' ')", tt.line); got != tt.want {
				t.Errorf("%q is completed to %q, want %q", tt.line, got, tt.want)
			}
		}
		u.Type(":Fermata nothing<CR>")
		u.See("there is no :Fermata nothing; there are: answer, ask")
	})
}

func TestOthersAreToldOfTurns(t *testing.T) {
	inBoth(t, "reply\nsay \"one \"\nhang\n", func(t *testing.T, u *user) {
		u.Lua(nil, `_G.seen = {}
			vim.api.nvim_create_autocmd('User', { pattern = 'Fermata*', callback = function(a)
				table.insert(_G.seen, a.match .. ' ' .. a.data.state .. ' ' .. tostring(a.data.turn ~= nil))
			end })
			vim.o.statusline = '[%{v:lua.require("fermata").status()}]'`)
		u.Type(":Fermata ask Q<CR>")
		u.See("[■ 1 word]")
		u.stop()
		u.See("Stopped here", "[]")
		want := "FermataTurnStarted running true, FermataTurnStopped stopping true, FermataTurnEnded stopped true"
		if got := u.Text("return table.concat(_G.seen, ', ')"); got != want {
			t.Errorf("the events were %s, want %s", got, want)
		}
	})
}

func TestASelectionThatExcludesItsEndIsWhatIsSeen(t *testing.T) {
	inBoth(t, "reply\nsay ok\nreply\nsay ok\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Ex("set selection=exclusive")
		u.Ex("call setline(1, 'package äö end')")
		for n, q := range [][2]string{{"wvll", "\\näö\\n"}, {"wvl", "\\nä\\n"}, {"wvj0", "\\näö end\\n"}} {
			u.Type("1G0" + q[0] + ":Fermata ask Q<CR>")
			u.Until("its end", "local all = require('fermata.turns').all() return #all == ... and all[#all].state == 'completed'", n+1)
			if body := u.last(); !strings.Contains(body[strings.LastIndex(body, "main.go"):], q[1]) {
				t.Errorf("%s: the request ends in\n%s", q[0], body[strings.LastIndex(body, "main.go"):])
			}
		}
	})
}
