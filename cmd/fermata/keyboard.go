package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// What ends an input instead of Enter.
var (
	errInterrupt = errors.New("interrupted") // ^C
	errLeft      = errors.New("left")        // Escape, or ^D on an empty line
)

// keyboard reads the terminal. A read cannot be taken back, so one goroutine does them all and only when somebody waits
// for a key; what comes for a question that was given up goes to the next. Its methods may be called from any goroutine;
// a question waits for the one before it.
type keyboard struct {
	in   *os.File
	out  io.Writer
	want chan struct{}
	got  chan keys

	interrupts <-chan os.Signal // a ^C that came as a signal before the terminal's mode had changed, or from elsewhere

	mu      sync.Mutex // held as long as a question has the terminal: its mode is changed and changed back under it
	reading bool
}

type keys struct {
	b   []byte
	err error
}

func newKeyboard(in *os.File, out io.Writer, interrupts <-chan os.Signal) *keyboard {
	k := &keyboard{in: in, out: out, want: make(chan struct{}), got: make(chan keys, 1), interrupts: interrupts}
	// Ends with the process: a read from a terminal cannot be interrupted everywhere.
	go func() {
		for range k.want {
			b := make([]byte, 1024)
			n, err := k.in.Read(b)
			k.got <- keys{b[:n], err}
		}
	}()
	return k
}

// next waits for what is typed. It is called with mu held.
func (k *keyboard) next(ctx context.Context) ([]byte, error) {
	if !k.reading {
		k.want <- struct{}{}
		k.reading = true
	}
	select {
	case got := <-k.got:
		k.reading = false
		return got.b, got.err
	case <-k.interrupts:
		return nil, errInterrupt
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// raw gives the terminal's keys to fermata one by one, ^C included.
func (k *keyboard) raw() (restore func(), err error) {
	before, err := term.MakeRaw(int(k.in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(k.in.Fd()), before) }, nil
}

// silence keeps what is typed from being echoed into an answer that streams. ^C still is a signal.
func (k *keyboard) silence() (restore func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	echo := noEcho(k.in)
	stop := whenResumed(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		noEchoAgain(k.in)
	})
	return func() {
		stop()
		k.mu.Lock() // a question that was given up restores the mode first
		defer k.mu.Unlock()
		echo()
	}
}

// discard forgets what was typed before a question was seen: it is no answer to it.
func (k *keyboard) discard() {
	k.mu.Lock()
	defer k.mu.Unlock()
	discardTyped(k.in)
	select {
	case <-k.got:
		k.reading = false
	default:
	}
}

// choose shows a question and waits for one of the keys in choices; Escape counts as the last of them. The terminal gives
// its keys to fermata before the question is seen: a ^C or an Enter that follows at once would mean something else.
func (k *keyboard) choose(ctx context.Context, question, choices string) (byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	restore, err := k.raw()
	if err != nil {
		return 0, err
	}
	defer restore()
	if _, err := io.WriteString(k.out, question+"\r\n"); err != nil {
		return 0, err
	}
	for {
		b, err := k.next(ctx)
		if err != nil {
			return 0, err
		}
		switch {
		case bytes.IndexByte(b, 3) >= 0:
			return 0, errInterrupt
		case string(b) == "\x1b":
			return choices[len(choices)-1], nil
		case b[0] == '\x1b':
			continue // an arrow or another function key
		}
		key := bytes.TrimRight(bytes.ToLower(b), "\r\n") // a key and Enter, typed before the terminal's mode had changed
		if len(key) == 0 {
			key = []byte("\r")
		}
		if len(key) == 1 && bytes.Contains([]byte(choices), key) { // several are a paste, and no answer
			return key[0], nil
		}
	}
}

// line lets the user edit a line, which begins as prefill, and returns it on Enter. Pasted line breaks stay in it. It
// returns errInterrupt on ^C, errLeft on Escape and on ^D in an empty line.
func (k *keyboard) line(ctx context.Context, prompt, prefill string, history ...string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	restore, err := k.raw()
	if err != nil {
		return "", err
	}
	defer restore()
	from := &typed{k: k, ctx: ctx}
	if prefill != "" {
		from.ahead = []byte(pasteBegins + printable(prefill) + pasteEnds) // as if it were pasted
	}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{from, k.out}, prompt)
	if width, height, err := term.GetSize(int(k.in.Fd())); err == nil && width > 0 {
		_ = t.SetSize(width, height) // never fails without a line on the screen
	}
	for _, h := range history {
		t.History.Add(h)
	}
	t.SetBracketedPasteMode(true)
	defer t.SetBracketedPasteMode(false)
	var lines []string
	for {
		line, err := t.ReadLine()
		switch {
		case err == nil, errors.Is(err, term.ErrPasteIndicator): // of a line that was also typed it does not tell
			if lines = append(lines, line); !from.pasted {
				return strings.Join(lines, "\n"), nil
			}
		default:
			_, _ = io.WriteString(k.out, "\r\n")
			if errors.Is(err, io.EOF) {
				err = errLeft
			}
			return "", err
		}
	}
}

// typed gives the line editor what is typed, line by line, and ends it by the keys that it does not know.
type typed struct {
	k      *keyboard
	ctx    context.Context
	ahead  []byte
	last   []byte // of what was given, as much as a mark of a paste is long
	paste  bool   // what comes next is in a paste
	pasted bool   // the line break that was given last is a part of a paste, and not Enter
}

// What a terminal puts around a paste.
const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

func (t *typed) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, errLeft // the editor is full of a key that does not end
	}
	for n == 0 {
		if err := t.await(); err != nil {
			return 0, err
		}
		for n < len(p) && len(t.ahead) > 0 {
			c := t.ahead[0]
			if c == '\x1b' && t.paste && !bytes.HasPrefix(t.ahead, []byte(pasteEnds)) { // the editor would take it for a key's beginning
				if bytes.HasPrefix([]byte(pasteEnds), t.ahead) {
					break // its rest is still to come
				}
				t.ahead = t.ahead[1:]
				continue
			}
			p[n], t.ahead = c, t.ahead[1:]
			n++
			if t.given(c) {
				if c == '\r' && n < len(p) && len(t.ahead) > 0 && t.ahead[0] == '\n' { // both are one line break
					p[n], t.ahead = '\n', t.ahead[1:]
					n++
				}
				break
			}
		}
	}
	return n, nil
}

// await waits for keys when there are none, or only the beginning of a paste's end.
func (t *typed) await() error {
	if len(t.ahead) > 0 && !(t.paste && strings.HasPrefix(pasteEnds, string(t.ahead))) {
		return nil
	}
	b, err := t.k.next(t.ctx)
	switch {
	case err != nil:
		return err
	case string(b) == "\x1b" && !t.paste:
		return errLeft
	case string(b) == "\x03":
		return errInterrupt
	}
	t.ahead = append(t.ahead, b...)
	return nil
}

// given notes a byte that the editor gets, and reports whether it ends a line.
func (t *typed) given(c byte) bool {
	if t.last = append(t.last, c); len(t.last) > len(pasteBegins) {
		t.last = t.last[1:]
	}
	switch string(t.last) {
	case pasteBegins:
		t.paste = true
	case pasteEnds:
		t.paste = false
	}
	if c == '\r' || c == '\n' {
		t.pasted = t.paste
		return true
	}
	return false
}
