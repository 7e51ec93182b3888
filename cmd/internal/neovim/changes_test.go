//go:build nvim

package neovim

import (
	"os"
	"path/filepath"
	"testing"
)

const twoFiles = `reply
call edit_file {"path":"notes.txt","old":"two","new":"zwei"}
call write_file {"path":"new.txt","content":"fresh\n"}
reply
say Done.
`

func TestChangesAreShownInDiffsRevertedAndPutBack(t *testing.T) {
	inBoth(t, twoFiles, func(t *testing.T, u *user) {
		u.Ex("set hidden autoread")
		u.Type(":Fermata ask Q<CR>")
		u.See("-two", "+zwei")
		u.answer("y")
		u.See("+fresh")
		u.answer("y")
		u.See("Answered…Done.")
		u.Type(":Fermata changes<CR>")
		u.See("All 2 files, a tab for each", "new.txt · created · +1 -0", "notes.txt · changed · +1 -1")
		u.Type("3<CR>")
		u.See("two…│  zwei")
		u.picture("16-changes")
		u.Ex("tabonly | tabnew | tabonly")
		u.Type(":Fermata revert<CR>")
		u.See("All 2 files")
		u.Type("1<CR>")
		u.See("reverted in 2 files; :Fermata revert undo takes it back")
		if got := u.Buffer("notes.txt"); got != "one\ntwo\nthree\nfour\nfive" { // it is open: reverted there, and unsaved
			t.Errorf("the buffer is %q", got)
		}
		if _, err := os.Stat(filepath.Join(u.root, "new.txt")); !os.IsNotExist(err) {
			t.Errorf("the created file is still there: %v", err)
		}
		u.Ex("Fermata revert undo")
		u.See("the revert was undone in 2 files")
		if got := u.Buffer("notes.txt"); got != "one\nzwei\nthree\nfour\nfive" {
			t.Errorf("the buffer is %q", got)
		}
		if got := u.read("new.txt"); got != "fresh\n" {
			t.Errorf("the created file is %q", got)
		}
	})
}

func TestAFileWithAPercentSignAndOneOfDOSAreShownAsTheyWereChanged(t *testing.T) {
	inBoth(t, `reply
call write_file {"path":"100%d %s.txt","content":"fresh\n"}
call edit_file {"path":"dos.txt","old":"two","new":"zwei"}
reply
say Done.
`, func(t *testing.T, u *user) {
		u.write("project/dos.txt", "one\r\ntwo\r\nthree\r\n")
		u.Type(":Fermata ask Q<CR>")
		u.answer("y")
		u.See("+zwei")
		u.answer("y")
		u.See("Answered…Done.")
		u.Type(":Fermata changes<CR>")
		u.See("All 2 files, a tab for each")
		u.Type("1<CR>")
		u.Until("both", "return #vim.api.nvim_list_tabpages() == 3")
		u.noErrors()
		u.Lua(nil, `for _, win in ipairs(vim.api.nvim_list_wins()) do
			if vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)):match('project/dos.txt$') then vim.api.nvim_set_current_win(win) end
		end`)
		if hl := u.Text("return vim.fn.diff_hlID(1, 1) .. ' ' .. (vim.fn.diff_hlID(2, 1) ~= 0 and 'changed' or 'same')"); hl != "0 changed" {
			t.Errorf("the lines of the diff are %s", hl)
		}
	})
}
