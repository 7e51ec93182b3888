//go:build nvim

package neovim

import (
	"strings"
	"testing"
)

// answer waits until the permission question hears keys, then types one.
func (u *user) answer(key string) {
	u.t.Helper()
	u.Until("the question to hear keys", `local footer = vim.api.nvim_win_get_config(0).footer
		return vim.bo.filetype == 'fermata-permission' and footer[1][2] == 'FermataKey'`)
	u.Type(key)
}

const runTwice = `reply
call run {"command":"echo ran > one"}
reply
call run {"command":"echo ran > one"}
reply
say Both done.
`

func TestACommandIsAllowedOnceOrForTheSession(t *testing.T) {
	inBoth(t, runTwice, func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("Fermata asks to run this", "echo ran > one")
		u.answer("s")
		u.See("Answered…Both done.")
		u.SeeNot("Fermata asks")
		if got := u.read("one"); got != "ran\n" {
			t.Errorf("the command left %q", got)
		}
	})
}

func TestADenialTellsTheModelWhy(t *testing.T) {
	inBoth(t, "reply\ncall run {\"command\":\"rm main.go\"}\nreply\nsay Sorry.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("rm main.go")
		u.answer("N")
		u.See("Why not?")
		u.Type("I need it<CR>")
		u.See("Answered…run rm main.go: not started, denied…Sorry.")
		if body := u.last(); !strings.Contains(body, "I need it") {
			t.Errorf("the request is\n%s", body)
		}
	})
}

// What somebody types into a file allows nothing.
func TestAQuestionDoesNotTakeWhatIsTyped(t *testing.T) {
	inBoth(t, "reply\nwait 200ms\ncall run {\"command\":\"echo x > one\"}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>i")
		u.See("Fermata asks to run this")
		u.Type("yyyy")
		u.See("yyyypackage main", "Fermata asks to run this · when you leave this mode")
		u.See("Fermata asks to run this")
		u.Type("<Esc>")
		u.answer("n")
		u.See("Answered")
		u.SeeNot("Fermata asks")
	})
}

// guards S14
func TestAStopAnswersTheQuestion(t *testing.T) {
	inBoth(t, "reply\nsay Now.\ncall run {\"command\":\"echo x > one\"}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("Fermata asks to run this")
		u.answer("<C-c>")
		u.SeeNot("Fermata asks to run this")
		u.See("Stopped here…run echo x > one: not started, stopped by you", "What should it do instead?")
	})
}

func TestAnEditIsShownAsADiffBeforeItIsAllowed(t *testing.T) {
	inBoth(t, "reply\ncall edit_file {\"path\":\"notes.txt\",\"old\":\"two\",\"new\":\"zwei\"}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("Fermata asks to edit_file notes.txt", "-two", "+zwei")
		u.picture("8-diff")
		u.answer("y")
		u.See("Answered…edit_file notes.txt: done")
		if got := u.read("notes.txt"); got != "one\nzwei\nthree\nfour\nfive\n" {
			t.Errorf("the file is %q", got)
		}
	})
}

func TestAQuestionHearsNothingThatWasTypedBehindEscape(t *testing.T) {
	inBoth(t, "reply\nwait 200ms\ncall run {\"command\":\"echo x > one\"}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>i")
		u.See("Fermata asks to run this · when you leave this mode")
		u.Type("<Esc>")
		u.Until("the question to have the focus", "return vim.bo.filetype == 'fermata-permission'")
		u.Type("yy")
		u.answer("n")
		u.See("Answered…denied…ok")
	})
}

func TestAQuestionThatIsLeftForAnotherModeComesWithTheNextNormalOne(t *testing.T) {
	inBoth(t, "reply\nwait 200ms\ncall run {\"command\":\"echo x > one\"}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>i")
		u.See("Fermata asks to run this · when you leave this mode")
		u.Type("<Esc>i")
		u.Until("insert mode", "return vim.api.nvim_get_mode().mode == 'i'")
		u.Type("<Esc>")
		u.answer("n")
		u.See("Answered…denied…ok")
	})
}

func TestACommandOfSeveralLinesIsAskedAbout(t *testing.T) {
	inBoth(t, "reply\ncall run {\"command\":\"echo a\\n\\u001b[2Jecho b\\u0000\\r\\n\"}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.answer("n")
		u.See("Answered…denied…ok")
		u.noErrors()
	})
}

func TestAQuestionOfSeveralLinesIsShown(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		u.Lua(nil, `coroutine.wrap(function()
			require('fermata.permission').ask({ turn = 't', call = 'c', tool = 'read_file', summary = 'read it', path = 'a\nb', why = 'first\nsecond' })
		end)()`)
		u.See("Fermata asks to read it…a…b…first…second")
		u.noErrors()
	})
}

// guards S14: a stop is heard at once.
func TestAQuestionHearsAStopBeforeAnythingElse(t *testing.T) {
	inBoth(t, "reply\nsay Now.\ncall run {\"command\":\"echo x > one\"}\nreply\nsay ok\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.Until("the question to have the focus", "return vim.bo.filetype == 'fermata-permission'")
		u.Type("<C-c>")
		u.See("Stopped here…not started, stopped by you", "What should it do instead?")
	})
}
