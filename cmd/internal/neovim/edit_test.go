//go:build nvim

package neovim

import (
	"testing"
)

const editNotes = `reply
say Editing.
call edit_file {"path":"notes.txt","old":"two","new":"zwei"}
call edit_file {"path":"notes.txt","old":"four","new":"vier"}
reply
say Done.
`

func TestAnEditOfAnOpenBufferIsOneUndoStepAndUnsaved(t *testing.T) {
	inBoth(t, editNotes, func(t *testing.T, u *user) {
		u.Ex("edit notes.txt")
		u.Type("ggOmine<Esc>:Fermata ask Q<CR>")
		u.answer("s")
		u.See("mine…one…zwei…three…vier…five", "Done.")
		if got := u.read("notes.txt"); got != project["notes.txt"] {
			t.Errorf("the file was saved: %q", got)
		}
		var modified bool
		u.Lua(&modified, "return vim.bo.modified")
		if !modified {
			t.Error("the buffer is not marked modified")
		}
		for _, want := range []string{
			"mine\none\nzwei\nthree\nfour\nfive", "mine\none\ntwo\nthree\nfour\nfive", "one\ntwo\nthree\nfour\nfive",
		} {
			u.Ex("undo")
			if got := u.Buffer("notes.txt"); got != want {
				t.Errorf("an undo gives\n%s\nwant\n%s", got, want)
			}
		}
	})
}

func TestAFileThatIsNotOpenIsWrittenAndOneThatIsShownIsReadAgain(t *testing.T) {
	inBoth(t, "reply\ncall run {\"command\":\"echo six >> notes.txt\"}\nreply\nsay Done.\n", func(t *testing.T, u *user) {
		u.Ex("set autoread | split notes.txt | wincmd p")
		u.Type(":Fermata ask Q<CR>")
		u.answer("y")
		u.See("Done.", "five…six")
	})
}

// What the user typed while an edit was on its way is not overwritten.
func TestAnEditForAnotherTextIsRefused(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		u.Ex("edit notes.txt")
		var result struct {
			Applied       bool
			FailureReason string
		}
		u.Type(":Fermata ask Q<CR>")
		u.See("Answered")
		edit := `local buf = vim.api.nvim_get_current_buf()
			local version = vim.lsp.util.buf_versions[buf]
			if ... then vim.api.nvim_buf_set_lines(buf, 0, 1, false, { 'typed' }) end
			return require('fermata.edit').apply({ edit = { documentChanges = { {
				textDocument = { uri = vim.uri_from_bufnr(buf), version = version },
				edits = { { range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 3 } }, newText = 'eins' } },
			} } } })`
		u.Lua(&result, edit, true)
		if result.Applied || result.FailureReason == "" || u.Buffer("") != "typed\ntwo\nthree\nfour\nfive" {
			t.Errorf("%+v\n%s", result, u.Buffer(""))
		}
		u.Lua(&result, edit, false)
		if !result.Applied || u.Buffer("") != "einsed\ntwo\nthree\nfour\nfive" {
			t.Errorf("%+v\n%s", result, u.Buffer(""))
		}
	})
}

func TestAnEditLeavesTheUndoLevelsOfTheUserAlone(t *testing.T) {
	inBoth(t, editNotes, func(t *testing.T, u *user) {
		u.Ex("edit notes.txt | setlocal undolevels=77")
		u.Type(":Fermata ask Q<CR>")
		u.answer("s")
		u.See("Done.")
		if got := u.Text("return vim.go.undolevels .. ' ' .. vim.bo.undolevels"); got != "1000 77" {
			t.Errorf("the undo levels are %s", got)
		}
	})
}
