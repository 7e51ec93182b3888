//go:build nvim

package neovim

import (
	"strings"
	"testing"
)

// transcript is the text of the transcript buffer.
func (u *user) transcript() string {
	u.t.Helper()
	return u.Text(`for _, b in ipairs(vim.api.nvim_list_bufs()) do
		if vim.startswith(vim.api.nvim_buf_get_name(b), 'fermata://transcript/') then
			return table.concat(vim.api.nvim_buf_get_lines(b, 0, -1, false), '\n')
		end
	end
	error('there is no transcript')`)
}

// settled waits until the transcript is what the daemon renders, and returns it.
func (u *user) settled() string {
	u.t.Helper()
	u.Until("the transcript to be the daemon's", `
		local session = require('fermata.session').current(require('fermata.client').root_of(0))
		local text
		require('fermata.client').request(require('fermata.client').root_of(0), 'fermata/transcript/render', { session = session },
			function(_, result) text = result and result.text or '' end)
		vim.wait(2000, function() return text end, 5)
		for _, b in ipairs(vim.api.nvim_list_bufs()) do
			if vim.api.nvim_buf_get_name(b) == 'fermata://transcript/' .. session then
				return vim.trim(text) == vim.trim(table.concat(vim.api.nvim_buf_get_lines(b, 0, -1, false), '\n'))
			end
		end`)
	return u.transcript()
}

// guards P1: what is shown live is what the log holds.
func TestATranscriptIsLive(t *testing.T) {
	const scenario = `reply First
think "Let me see. "
say "one "
wait 300ms
say "two\n\n"
say "- three\n"
call read_file {"path":"notes.txt"}
reply
say "Four.\n"
hang
reply Second
say Five.
`
	inBoth(t, scenario, func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("■ Stop")
		u.Ex("Fermata transcript")
		u.See("one")
		u.See("> *Reasoning*", "- three", "+ `read_file notes.txt`: done", "Four.")
		u.picture("9-transcript")
		u.Type("<C-w>p")
		u.Until("the file", "return vim.endswith(vim.api.nvim_buf_get_name(0), 'main.go')")
		u.stop()
		u.See("Stopped here", "What should it do instead?")
		u.Type("Second<CR>")
		u.See("Five.")
		text := u.settled()
		if !pattern("## You, …> First…*Reasoning*…one two…- three…+ `read_file notes.txt`: done…Four.…*Stopped here*…### You redirect…> Second…Five.").MatchString(text) {
			t.Errorf("the transcript is\n%s", text)
		}
	})
}

func TestATranscriptLeavesAReaderWhereHeIs(t *testing.T) {
	inBoth(t, "reply\nwords 300\nwait 500ms\nsay \"the end\"\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Count<CR>")
		u.See("300")
		u.Ex("Fermata transcript")
		u.See("Request…w300")
		u.Type("gg")
		u.See("# Count")
		u.Type("<C-w>p")
		u.See("Answered")
		u.settled()
		u.See("# Count")
		u.Type("<C-w>pzM")
		u.See("+--")
		u.Type("zR")
		u.SeeNot("+--")
	})
}

func TestThingsAreDoneAtThePlaceInTheTranscript(t *testing.T) {
	inBoth(t, "reply First\nsay Eins.\ncall read_file {\"path\":\"notes.txt\"}\nreply\nsay Zwei.\nreply Second\nsay Drei.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("Zwei.")
		u.Type(":Fermata ask Second<CR>")
		u.See("Drei.")
		u.Ex("Fermata transcript")
		u.See("Second", "Drei.")
		u.settled()
		u.Type("gg/read_file<CR><CR>") // a menu of what fits here
		u.See("Model input (I)", "Fork after this turn (F)", "Open the file (gf)")
		u.Type("q")
		u.Type("gf")
		u.See("notes.txt", "three")
		u.Type("<C-w>q")
		u.Type("gg/Zwei<CR>F")
		u.Until("the fork", "return #vim.tbl_filter(function(b) return vim.startswith(vim.api.nvim_buf_get_name(b), 'fermata://transcript/') end, vim.api.nvim_list_bufs()) == 2")
		u.See("Forked from session")
		text := u.Buffer("")
		if !strings.Contains(text, "Zwei.") || strings.Contains(text, "Drei.") {
			t.Errorf("the fork is\n%s", text)
		}
	})
}

func TestAToolsOutputIsShownWhileItRuns(t *testing.T) {
	const command = `while [ ! -e finish ]; do echo working; sleep 0.05; done`
	inBoth(t, "reply\nsay Look.\ncall run {\"command\":\""+command+"\"}\nreply\nsay Done.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Q<CR>")
		u.See("Fermata asks to run this")
		u.answer("y")
		u.SeeNot("Fermata asks")
		u.Ex("Fermata transcript")
		u.See("Look.", "    working")
		u.write("project/finish", "")
		u.See("Done.")
		text := u.settled() // the log says what came of it
		if strings.Contains(text, "    working") || strings.Count(text, "Look.") != 1 {
			t.Errorf("the transcript is\n%s", text)
		}
	})
}

func TestASessionIsRenamedAndDeleted(t *testing.T) {
	inBoth(t, "reply First\nsay Eins.\nreply Second\nsay Zwei.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("Eins.")
		u.Ex("Fermata transcript")
		u.See("# First")
		u.Ex("Fermata rename A better title")
		u.See("# A better title", "Eins.")
		u.Type("gD")
		u.See("Session “A better title”", "Delete it for good: all 1 turn, also their model inputs")
		u.Type("1<CR>") // keep it
		u.SeeNot("Delete it for good")
		u.See("# A better title")
		u.Ex("Fermata delete")
		u.See("Delete it for good")
		u.Type("2<CR>")
		u.See("deleted: 1 turn, 1 model input")
		u.SeeNot("# A better title")
		u.Type(":Fermata ask Second<CR>") // in a new session
		u.See("Answered…Zwei.")
		if body := u.last(); strings.Contains(body, "Eins.") {
			t.Errorf("the request is\n%s", body)
		}
	})
}

// guards M7, P3
func TestAModelInputIsShownAsItWasSent(t *testing.T) {
	inBoth(t, "reply First\nsay Eins.\nreply Second\nsay Zwei.\n", func(t *testing.T, u *user) {
		u.Lua(nil, "vim.api.nvim_create_autocmd('User', { pattern = 'FermataTurnEnded', callback = function() _G.ended = true end })")
		u.Type(":Fermata ask First<CR>")
		u.See("Eins.")
		u.Until("the end of the turn", "return _G.ended") // asked before, the second would wait behind the first
		u.Type(":Fermata ask Second<CR>")
		u.See("Zwei.")
		u.Resize(160, 50)
		u.Ex("Fermata input")
		u.See("✓ verified: these are the bytes that were sent", "head, … bytes · ", "user, entry … bytes · ")
		u.picture("10-input")
		first := u.model.Requests()[1]
		u.Type("B") // the exact bytes
		u.Until("the exact bytes", "return vim.trim(vim.api.nvim_buf_get_lines(0, 0, 1, false)[1]):sub(1, 1) == '{'")
		if got := u.Buffer(""); got != string(first.Body) {
			t.Errorf("the bytes shown are\n%s\nsent were\n%s", got, first.Body)
		}
		u.Type("<C-w>q")
		u.Until("the input", "return vim.bo.filetype == 'fermata-input'")
		if text := u.Buffer(""); !pattern("// user, entry …// assistant, entry …\"content\": \"Eins.\"…// user, entry …Second").MatchString(text) {
			t.Errorf("the input is\n%s", text)
		}
		u.Type("D")
		u.Until("two windows in diff mode", `local n = 0
			for _, w in ipairs(vim.api.nvim_list_wins()) do n = n + (vim.wo[w].diff and 1 or 0) end
			return n == 2`)
		u.See("Eins.")
		u.picture("11-input-diff")
	})
}

// guards T2, M7
func TestAMessageOfWhichNothingWasSentIsNamedInTheModelInput(t *testing.T) {
	inBoth(t, "reply First\nreply Second\nsay Zwei.\n", func(t *testing.T, u *user) {
		u.Lua(nil, "vim.api.nvim_create_autocmd('User', { pattern = 'FermataTurnEnded', callback = function() _G.ended = true end })")
		u.Type(":Fermata ask First<CR>")
		u.Until("the end of the turn", "return _G.ended")
		u.Type(":Fermata ask Second<CR>")
		u.See("Zwei.")
		u.Ex("Fermata input")
		u.See("answer: not sent, because") // not folded
		want := "// user, entry …\"content\": \"First…// assistant, entry …, 0 bytes…//   answer: not sent, because it says nothing that can be sent…// user, entry …Second…// tail, "
		if text := u.Buffer(""); !pattern(want).MatchString(text) {
			t.Errorf("the input is\n%s", text)
		}
	})
}

// guards D2: of an older turn too.
func TestARedirectOfAnOlderTurnIsSeenAtThatTurn(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n"+strings.Repeat("reply\nsay Yes.\n", 5), func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("one two")
		u.stop()
		u.See("What should it do instead?")
		u.Type("<Esc>")
		for n, q := range []string{"B", "C", "D", "E"} {
			u.Type(":Fermata ask " + q + "<CR>")
			u.Until("its end", "local all = require('fermata.turns').all() return #all == ... and all[#all].state == 'completed'", n+2)
		}
		u.Ex("Fermata transcript")
		u.See("Yes.")
		u.Lua(nil, "require('fermata.lane').redirect('Shorter', require('fermata.turns').all()[1])")
		u.Until("its end", "local all = require('fermata.turns').all() return #all == 6 and all[6].state == 'completed'")
		live := u.settled()
		u.Ex("bwipeout")
		u.Ex("Fermata transcript")
		if fresh := u.settled(); live != fresh {
			t.Errorf("the live transcript is\n%s\nopened anew it is\n%s", live, fresh)
		}
	})
}

// guards D1: only what was stopped is called so.
func TestTheLaneOfATurnThatAnsweredSaysSo(t *testing.T) {
	inBoth(t, "reply\nsay \"Eins zwei.\"\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Q<CR>")
		u.See("Answered")
		u.Ex("Fermata transcript")
		u.See("> Q…Eins zwei.")
		u.Type("Gk0R")
		u.See("╭ Answered · 2 words ─…Eins zwei.…╭ Redirect")
		u.Type("<Esc>")
		u.Quit()
		u.start(Options{}, "main.go")
		u.Ex("Fermata transcript")
		u.See("> Q…Eins zwei.")
		u.Type("Gk0R")
		u.See("╭ Redirect")
		u.SeeNot("Stopped here", "0 words")
	})
}
