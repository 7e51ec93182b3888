// Package neovim drives a real Neovim for tests of the plugin in editors/nvim: it starts one without a terminal, types into
// it, clicks, and reads the screen back as a user would see it, from the UI protocol. It knows nothing of fermata. What goes
// wrong fails the test that owns the Neovim. A [Neovim] may be used from any goroutine.
package neovim

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/neovim/go-client/nvim"
)

// patience is how long a test waits for what must come; only a broken plugin uses it up.
const patience = 20 * time.Second

// Options say how Neovim is started.
type Options struct {
	Program string   // the binary
	Args    []string // beside those that make it speak msgpack-RPC
	Dir     string
	Env     []string // the whole environment
	Width   int      // columns; 0 means 100
	Height  int      // lines; 0 means 40
	Colours int      // that the terminal has; 0 means all, and 'termguicolors'
}

// Neovim is a running Neovim with a screen attached.
type Neovim struct {
	t      testing.TB
	api    *nvim.Nvim
	screen *screen
	closed bool
}

// Start starts Neovim; the test's end closes it when it still runs.
func Start(t testing.TB, o Options) *Neovim {
	t.Helper()
	if o.Width == 0 {
		o.Width = 100
	}
	if o.Height == 0 {
		o.Height = 40
	}
	n := &Neovim{t: t, screen: newScreen()}
	api, err := nvim.NewChildProcess(
		nvim.ChildProcessCommand(o.Program),
		nvim.ChildProcessArgs(append([]string{"--embed"}, o.Args...)...),
		nvim.ChildProcessDir(o.Dir),
		nvim.ChildProcessEnv(o.Env),
		nvim.ChildProcessServe(false), // begins below, once the handler is there
		nvim.ChildProcessLogf(t.Logf),
	)
	if err != nil {
		t.Fatal(err)
	}
	n.api = api
	if err := api.RegisterHandler("redraw", n.screen.redraw); err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { // ends with the connection
		defer close(served)
		_ = api.Serve() // that Neovim has gone is seen by whoever waits for something
		n.screen.end()
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen at the end:\n%s", n.Screen())
		}
		n.Close()
		<-served
	})
	ui := map[string]any{"ext_linegrid": true, "ext_hlstate": true, "rgb": o.Colours == 0}
	if o.Colours > 0 {
		ui["term_colors"] = o.Colours
	}
	if err := api.AttachUI(o.Width, o.Height, ui); err != nil {
		t.Fatal(err)
	}
	return n
}

// Close ends Neovim as if its terminal were closed. Closing twice is once.
func (n *Neovim) Close() {
	if n.closed {
		return
	}
	n.closed = true
	_ = n.api.Close() // how it ended says nothing about the plugin
}

// Quit leaves as a user does, whatever is unsaved, and waits for the end.
func (n *Neovim) Quit() {
	n.t.Helper()
	n.Type("<C-\\><C-n>:qall!<CR>")
	n.screen.await(n.t, "Neovim to end", func(s *screen) bool { return s.ended })
}

// call makes a call over RPC, which Neovim answers only when it waits for a key and not for one of several.
func (n *Neovim) call(what string, call func() error) {
	n.t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }() // ends with the answer, or with Neovim
	select {
	case err := <-done:
		if err != nil {
			n.t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(patience):
		n.t.Fatalf("%s: Neovim does not answer; the screen is\n%s", what, n.Screen())
	}
}

// Type types keys, written as in a mapping: "ihello<Esc>".
func (n *Neovim) Type(keys string) {
	n.t.Helper()
	n.call("type "+keys, func() error {
		_, err := n.api.Input(keys)
		return err
	})
}

// Ex runs a command. Its error fails the test.
func (n *Neovim) Ex(command string) {
	n.t.Helper()
	n.call(":"+command, func() error { return n.api.Command(command) })
}

// Lua runs a chunk of Lua that may return one value, which is decoded into result unless that is nil. args are "..." in it.
func (n *Neovim) Lua(result any, chunk string, args ...any) {
	n.t.Helper()
	if args == nil {
		args = []any{}
	}
	var text string
	wrapped := "local ok, value = pcall(function(...) " + chunk + "\nend, ...) " +
		"if not ok then error(value, 0) end return vim.json.encode(value == nil and vim.NIL or value)"
	n.call("lua "+chunk, func() error { return n.api.ExecLua(wrapped, &text, args...) })
	if result == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), result); err != nil {
		n.t.Fatalf("lua %s: %v: %s", chunk, err, text)
	}
}

// Text is what a chunk of Lua returns as a string.
func (n *Neovim) Text(chunk string, args ...any) string {
	n.t.Helper()
	var s string
	n.Lua(&s, chunk, args...)
	return s
}

// Buffer is the text of a buffer whose name ends with suffix; "" is the current one.
func (n *Neovim) Buffer(suffix string) string {
	n.t.Helper()
	return n.Text(`local suffix = ...
		for _, b in ipairs(vim.api.nvim_list_bufs()) do
			if suffix == '' and b == vim.api.nvim_get_current_buf() or suffix ~= '' and vim.endswith(vim.api.nvim_buf_get_name(b), suffix) then
				return table.concat(vim.api.nvim_buf_get_lines(b, 0, -1, false), '\n')
			end
		end
		error('there is no buffer ' .. suffix)`, suffix)
}

// Click presses and releases the left button at a place on the screen, both from 0.
func (n *Neovim) Click(row, column int) {
	n.t.Helper()
	for _, action := range []string{"press", "release"} {
		n.call("click", func() error { return n.api.InputMouse("left", action, "", 0, row, column) })
	}
}

// Resize makes the screen another size.
func (n *Neovim) Resize(width, height int) {
	n.t.Helper()
	n.call("resize", func() error { return n.api.TryResizeUI(width, height) })
}

// Screen is the screen as text, one line a row, without the white space at their ends.
func (n *Neovim) Screen() string { return n.screen.text() }

// Find is where a text begins on the screen: row and column from 0, -1 if nowhere.
func (n *Neovim) Find(text string) (row, column int) { return n.screen.find(text) }

// Group is the highlight group of the first character of a text on the screen, "" if there is none.
func (n *Neovim) Group(text string) string { return n.screen.group(text) }

// See waits until the screen shows all of some texts at once, and returns it. In a text … stands for anything, also lines.
func (n *Neovim) See(texts ...string) string {
	n.t.Helper()
	n.screen.await(n.t, fmt.Sprintf("%q", texts), func(s *screen) bool { return s.shows(texts) })
	return n.Screen()
}

// SeeNot waits until the screen shows none of some texts.
func (n *Neovim) SeeNot(texts ...string) {
	n.t.Helper()
	n.screen.await(n.t, fmt.Sprintf("none of %q", texts), func(s *screen) bool {
		for _, text := range texts {
			if s.shows([]string{text}) {
				return false
			}
		}
		return true
	})
}

// Until waits until a chunk of Lua returns true.
func (n *Neovim) Until(what, chunk string, args ...any) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	for {
		var done bool
		n.Lua(&done, "return (function(...) "+chunk+"\nend)(...) == true", args...)
		if done {
			return
		}
		select {
		case <-ctx.Done():
			n.t.Fatalf("waited %s for %s; the screen is\n%s", patience, what, n.Screen())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// pattern is a regular expression for a text in which … stands for anything.
func pattern(text string) *regexp.Regexp {
	parts := strings.Split(text, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("(?s)" + strings.Join(parts, ".*"))
}
