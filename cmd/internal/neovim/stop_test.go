//go:build nvim

package neovim

import (
	"strings"
	"testing"
)

// last is the body of the newest request that the model got.
func (u *user) last() string {
	requests := u.model.Requests()
	return string(requests[len(requests)-1].Body)
}

// stop presses the stop key. Neovim takes a Ctrl-C for an interrupt until it has waited for a key in normal mode.
func (u *user) stop() {
	u.t.Helper()
	for range 2 {
		u.Until("normal mode", "return vim.api.nvim_get_mode().mode == 'n'")
	}
	u.Type("<C-c>")
}

// guards P1, S3, S4, S11, D1, D3
func TestAnAnswerStreamsAtTheLineAndIsStoppedThereAndRedirected(t *testing.T) {
	inBoth(t, "reply Explain\nsay \"one two three \"\nhang\nreply\nsay Revised.\n", func(t *testing.T, u *user) {
		u.Type("6G:Fermata ask Explain this<CR>")
		u.See("fmt.Println…■ Stop <C-c> · 3 words…one two three")
		if dim := u.Group("one two three"); dim != "Comment" {
			t.Errorf("the answer is shown as %q, want as a comment", dim)
		}
		u.picture("1-streaming")
		u.stop()
		u.See("Stopped here · 3 words kept…one two three", "What should it do instead?")
		u.picture("2-lane")
		u.Type("Shorter<CR>")
		u.See("Answered · 1 word…Revised.")
		u.SeeNot("What should it do instead?", "Stopped here")
		u.picture("3-redirected")
		if body := u.last(); !strings.Contains(body, `"content":"one two three "`) || !strings.Contains(body, `first attempt and revise it as follows.]\n\nShorter`) {
			t.Errorf("the redirect's request is\n%s", body)
		}
		if text := u.Buffer("main.go"); text != strings.TrimSuffix(project["main.go"], "\n") {
			t.Errorf("the buffer has become\n%s", text)
		}
	})
}

// Neovim takes a Ctrl-C that comes in a mode without a map for it for an interrupt, and forgets the key before it, which would
// have left the mode.
func TestAStopRightBehindTheKeyThatLeavesAModeIsNotLost(t *testing.T) {
	for mode, keys := range map[string][2]string{"i": {"i", "<Esc>"}, "v": {"v", "<Esc>"}, "c": {":echo 1", "<CR>"}} {
		t.Run(mode, func(t *testing.T) {
			inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
				u.Type("6G:Fermata ask Go<CR>")
				u.See("■ Stop", "one two")
				u.Type(keys[0])
				u.Until("the mode", "return vim.api.nvim_get_mode().mode == ...", mode)
				u.Type(keys[1] + "<C-c>")
				u.See("Stopped here · 2 words kept", "What should it do instead?")
			})
		})
	}
}

func TestTheStopKeyInOtherModesIsWhatItAlwaysIs(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
		u.Ex("xnoremap <C-c> iw")
		u.Type("6G:Fermata ask Go<CR>")
		u.See("■ Stop", "one two")
		for _, keys := range []string{"i<C-c>", "d<C-c>", ":echo 1<C-c>", "v<C-c><Esc>"} { // the last is the user's own
			u.Type(keys)
			u.Until("normal mode after "+keys, "return vim.api.nvim_get_mode().mode == 'n'")
		}
		const maps = `local left = {} -- modes in which the buffer has a map of the key
			for _, mode in ipairs({ 'n', 'i', 'x', 's', 'o', 'c' }) do
				for _, map in ipairs(vim.api.nvim_buf_get_keymap(1, mode)) do
					table.insert(left, map.lhs == '<C-C>' and mode or nil)
				end
			end
			return table.concat(left, ' ')`
		if running := u.Text(maps); running != "n i s o c" {
			t.Errorf("while the turn runs there are maps in the modes %s", running)
		}
		var turn struct{ State string }
		if u.turn(&turn); turn.State != "running" {
			t.Errorf("the turn is %s", turn.State)
		}
		u.stop()
		u.See("Stopped here")
		if left := u.Text(maps); left != "" {
			t.Errorf("maps are left in the modes %s", left)
		}
	})
}

// guards S1
func TestTheStopControlIsClicked(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
		u.Ex("set mouse=a")
		u.Type("6G:Fermata ask Go<CR>")
		u.See("■ Stop", "one two")
		u.Type("gg")
		row, column := u.Find("■ Stop")
		u.Click(row, column+3)
		u.See("Stopped here · 2 words kept", "What should it do instead?")
		u.Type("<Esc>")
		u.SeeNot("What should it do instead?")
		u.Click(row, column) // nothing runs: an ordinary click
		var mode string
		u.Lua(&mode, "return vim.api.nvim_get_mode().mode")
		if mode != "n" {
			t.Errorf("the mode is %s", mode)
		}
	})
}

// guards S6
func TestAStopBeforeAnythingWasSaidOffersThePromptBack(t *testing.T) {
	inBoth(t, "reply First\nhang\nreply\nsay Well.\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First try<CR>")
		u.See("■ Stop <C-c> · waiting for the model")
		if _, err := u.model.Await(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		u.stop()
		u.See("Stopped before anything was said", "First try")
		u.picture("4-silent")
		u.Type(", again<CR>")
		u.See("Answered · 1 word…Well.")
		var turn struct{ Prompt string }
		if u.turn(&turn); turn.Prompt != "First try, again" {
			t.Errorf("the prompt was %q", turn.Prompt)
		}
	})
}

// guards S2: the stop comes before the turn has an id, in the same breath as the question.
func TestAStopInTheSameBreathAsTheQuestionStopsIt(t *testing.T) {
	inBoth(t, "reply\nhang\n", func(t *testing.T, u *user) {
		u.Lua(nil, "require('fermata').ask('Hello') require('fermata').stop()")
		u.See("Stopped before anything was said", "Hello")
		u.Type("<Esc>")
		u.SeeNot("Hello")
		u.Lua(nil, "require('fermata').ask('Hello again') vim.wait(5000, function() return require('fermata.client').runs(require('fermata.client').root_of(0)) end, 5) require('fermata').stop()")
		u.See("Stopped before anything was said", "Hello again")
		var running int
		u.Lua(&running, "return #require('fermata.turns').running()")
		if running != 0 {
			t.Errorf("%d turns run", running)
		}
	})
}

// guards D5
func TestARedirectIsStoppedAndRedirectedInTurn(t *testing.T) {
	inBoth(t, "reply First\nsay \"aaa \"\nhang\nreply Second\nsay \"bbb \"\nhang\nreply Third\nsay ccc\n", func(t *testing.T, u *user) {
		u.Type("3G:Fermata ask First<CR>")
		u.See("aaa")
		u.stop()
		u.See("What should it do instead?")
		u.Type("Second<CR>")
		u.See("■ Stop…bbb")
		u.SeeNot("aaa")
		u.stop()
		u.See("Stopped here · 1 word kept", "What should it do instead?")
		u.Type("Third<CR>")
		u.See("Answered…ccc")
		u.SeeNot("bbb")
		body := u.last()
		for _, want := range []string{`"aaa "`, `"bbb "`, `\n\nSecond"`, `\n\nThird"`} {
			if !strings.Contains(body, want) {
				t.Errorf("the request lacks %s:\n%s", want, body)
			}
		}
		u.Ex("Fermata transcript")
		u.See("### You redirect…Third…ccc")
		u.picture("5-thread")
		if text := u.transcript(); !pattern("## You, …aaa …### You redirect…bbb …### You redirect…ccc").MatchString(text) {
			t.Errorf("the transcript is\n%s", text)
		}
	})
}

// guards D4
func TestARedirectWithATextNeedsNoLane(t *testing.T) {
	inBoth(t, "reply First\nsay \"aaa \"\nhang\nreply Second\nsay bbb\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("aaa")
		u.Ex("Fermata redirect Second")
		u.See("Answered · 1 word…bbb")
		u.SeeNot("aaa", "What should it do instead?")
		if body := u.last(); !strings.Contains(body, `"aaa "`) {
			t.Errorf("the request is\n%s", body)
		}
	})
}

func TestEscapeLeavesEverythingAsItWas(t *testing.T) {
	inBoth(t, "reply First\nsay \"aaa \"\nhang\nreply Second\nsay bbb\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask First<CR>")
		u.See("aaa")
		u.stop()
		u.See("What should it do instead?")
		u.Type("half a thought<Esc>") // from insert mode, then from normal mode
		u.Until("normal mode", "return vim.api.nvim_get_mode().mode == 'n'")
		u.See("half a thought")
		u.Type("<Esc>")
		u.SeeNot("half a thought")
		u.See("Stopped here · 1 word kept…aaa")
		if n := len(u.model.Requests()); n != 1 {
			t.Errorf("the model got %d requests", n)
		}
		u.Ex("Fermata redirect") // the lane again, with what was written at hand
		u.See("What should it do instead?")
		u.Type("<Up>")
		u.See("half a thought")
		u.Type("<C-u>Second<C-j>line<CR>")
		u.See("Answered…bbb")
		if body := u.last(); !strings.Contains(body, `\n\nSecond\nline"`) {
			t.Errorf("the request is\n%s", body)
		}
	})
}

func TestTheAnswerFollowsItsLine(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
		u.Type("6G:Fermata ask Go<CR>")
		u.See("hello…■ Stop…one two")
		u.Type("ggOabove<CR>twice<Esc>")
		u.See("above…twice…hello…■ Stop")
		row, _ := u.Find("hello")
		if stop, _ := u.Find("■ Stop"); stop != row+1 {
			t.Errorf("the line is in row %d, the control in row %d", row, stop)
		}
		u.stop()
		u.See("Stopped here", "What should it do instead?")
		u.Type("<Esc>")
		u.SeeNot("What should it do instead?")
		u.Ex("Fermata clear")
		u.SeeNot("Stopped here", "one two")
	})
}

// guards S7, S8
func TestTheFatesOfToolsAreToldInOneLine(t *testing.T) {
	const scenario = `reply
say Looking.
call read_file {"path":"main.go"}
call run {"command":"echo started; exec sleep 60"}
call run {"command":"echo never"}
reply
say ok
`
	inBoth(t, scenario, func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("Fermata asks to run this", "echo started; exec sleep 60")
		u.picture("6-permission")
		u.answer("y")
		u.See("■ Stop <C-c> · 1 word · run echo started")
		u.stop()
		u.See("Stopped here…read_file main.go: done; run echo started; exec sleep 60: stopped")
		u.picture("7-fates")
	})
}

// guards S10
func TestAQueuedMessageIsHandedBackByAStop(t *testing.T) {
	inBoth(t, "reply\nsay \"aaa \"\nhang\nreply\nsay bbb\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Go<CR>")
		u.See("aaa")
		u.Ex("Fermata queue And then this")
		u.See("queued: the model gets it")
		u.stop()
		u.See("1 queued message handed back", "What should it do instead?")
		u.Type("<Up>")
		u.See("And then this")
		u.Type("<CR>")
		u.See("Answered…bbb")
	})
}
