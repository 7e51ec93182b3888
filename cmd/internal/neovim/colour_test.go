//go:build nvim

package neovim

import "testing"

// Every group is a link, so that colours are the scheme's, light or dark; a scheme that clears them gets them back, also
// while an answer stands there.
func TestColoursAreThoseOfTheScheme(t *testing.T) {
	inBoth(t, "reply\nsay \"one two \"\nhang\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Q<CR>")
		u.See("■ Stop", "one two")
		for _, scheme := range []string{"default", "habamax", "morning", "quiet"} {
			for _, background := range []string{"dark", "light"} {
				u.Ex("set background=" + background)
				u.Ex("colorscheme " + scheme)
				var missing []string
				u.Lua(&missing, `local missing = {}
					for group, link in pairs(require('fermata.highlight').groups) do
						if vim.api.nvim_get_hl(0, { name = group }).link ~= link then table.insert(missing, group) end
					end
					return missing`)
				if len(missing) > 0 {
					t.Errorf("%s, %s: %q are no links any more", scheme, background, missing)
				}
				u.See("■ Stop", "one two")
				if group := u.Group("one two"); group == "" || group == u.Group("package") {
					t.Errorf("%s, %s: the answer looks like text of the buffer: %q", scheme, background, group)
				}
			}
		}
		u.Ex("highlight FermataAnswer guifg=#123456") // the user's own
		u.Ex("colorscheme default")
		u.See("■ Stop", "one two")
		u.stop()
		u.See("Stopped here")
	})
}

// Nothing is told by colour alone: a terminal with eight colours, or with none to speak of, shows the same words.
func TestATerminalWithoutColoursShowsTheSameWords(t *testing.T) {
	for version, program := range neovims {
		for name, colours := range map[string]int{"8": 8, "none": 1} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				u := newUser(t, program, "reply\nsay \"one two \"\nhang\nreply\nsay Three.\n")
				u.start(Options{Colours: colours, Env: []string{"NO_COLOR=1"}, Args: []string{"--cmd", "set notermguicolors"}}, "main.go")
				u.Type(":Fermata ask Q<CR>")
				u.See("■ Stop <C-c> · 2 words", "one two")
				u.stop()
				u.See("Stopped here · 2 words", "What should it do instead?")
				u.Type("Again<CR>")
				u.See("Answered…Three.")
				u.Ex("Fermata transcript")
				u.See("Stopped here", "You redirect", "Three.")
			})
		}
	}
}
