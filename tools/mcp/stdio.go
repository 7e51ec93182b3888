package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tools/process"
)

const (
	patience   = time.Second // for a server to end when its input does
	unread     = 1000        // messages that wait for a server to read them; behind them it is not heard any more
	nonsense   = 200         // lines that are no message, in a row; behind them a server is not heard any more
	wordsBytes = 600         // of what it complained of last
	givenBytes = 6           // shorter values of variables are no keys
	logBytes   = 64 << 10    // of its complaints go to the log
)

// stdio speaks to a program over its stdin and stdout, a message a line. It is the transport and its only connection.
type stdio struct {
	service *process.Service
	given   *strings.Replacer // names what it was given in place of keys, in what it complains of
	out     *bufio.Reader
	log     *slog.Logger
	bound   int // bytes of a message

	lines   chan outgoing
	waiting atomic.Int32  // of them
	parted  chan struct{} // closed by part
	once    sync.Once

	mu    sync.Mutex
	words []byte // the last of stderr
	wrong error  // why it is not heard any more; io.EOF: it says no more
	full  bool   // its input has ended
}

// outgoing is a line on its way to the program.
type outgoing struct {
	line    []byte
	call    *sent                                          // nil: it is none
	cancel  func(ctx context.Context, reason string) error // of the call
	written chan error
}

// newStdio starts a server's program, in the user's home folder: nothing in a workspace decides what it does.
func (s *server) newStdio() (*stdio, error) {
	path, err := exec.LookPath(s.c.Command[0])
	if err != nil {
		return nil, fmt.Errorf("its program cannot be found: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if s.root != "" && inside(s.root, path) {
		return nil, fmt.Errorf("its program %s lies in the workspace and is not run", path)
	}
	var extra, given []string
	get := func(name string) (string, bool) {
		v, ok := variable(name)
		if len(v) >= givenBytes {
			given = append(given, v, "(the value of "+name+")")
		}
		return v, ok
	}
	for _, name := range slices.Sorted(maps.Keys(s.c.Env)) {
		value, err := expand(s.c.Env[name], get)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", name, err)
		}
		extra = append(extra, name+"="+value)
	}
	cmd := exec.Command(path, s.c.Command[1:]...)
	if cmd.Dir, err = os.UserHomeDir(); err != nil {
		return nil, err
	}
	w := &stdio{given: strings.NewReplacer(given...), log: s.log, bound: s.o.message, lines: make(chan outgoing), parted: make(chan struct{})}
	if w.service, err = process.Serve(cmd, s.o.Secrets, extra, w.complaints); err != nil {
		return nil, fmt.Errorf("its program cannot be started: %w", err)
	}
	w.out = bufio.NewReaderSize(w.service.Stdout, 64<<10)
	go w.feed()  // ends with part
	go w.watch() // ends with the program
	return w, nil
}

// feed writes the lines, each whole: whoever waits for one may leave before.
func (w *stdio) feed() {
	for {
		select {
		case l := <-w.lines:
			if !l.call.leaves(l.cancel) {
				l.written <- context.Canceled
				continue
			}
			_, err := w.service.Stdin.Write(l.line)
			if err != nil {
				w.mu.Lock()
				w.full = true
				w.mu.Unlock()
			}
			l.written <- err
		case <-w.parted:
			return
		}
	}
}

// watch ends what is left of a program that has ended: what it has started may hold its pipes, and would keep us waiting for
// answers.
func (w *stdio) watch() {
	<-w.service.Exited
	select {
	case <-w.parted:
		return
	case <-time.After(process.Grace): // for what it has said last
	}
	w.mu.Lock()
	if w.wrong == nil {
		w.wrong = io.EOF
	}
	w.mu.Unlock()
	w.service.Close(0)
}

// inside reports whether a path, links followed, lies in a folder.
func inside(root, path string) bool {
	for _, p := range []*string{&root, &path} {
		if real, err := filepath.EvalSymlinks(*p); err == nil {
			*p = real
		}
	}
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// Connect implements the SDK's Transport.
func (w *stdio) Connect(context.Context) (sdk.Connection, error) { return w, nil }

// SessionID implements the SDK's Connection.
func (w *stdio) SessionID() string { return "" }

// Read gives the next message. Lines that are none are logged and skipped: programs greet, and libraries complain.
func (w *stdio) Read(context.Context) (jsonrpc.Message, error) {
	for range nonsense {
		if w.waiting.Load() > unread {
			return nil, w.stop(fmt.Errorf("it does not read what it is answered"))
		}
		line, err := w.line()
		if err != nil {
			return nil, w.stop(err)
		}
		msg, err := jsonrpc.DecodeMessage(line)
		if err == nil {
			return msg, nil
		}
		w.log.Debug("a line on stdout is no message", "line", readable(string(line), 200))
	}
	return nil, w.stop(fmt.Errorf("it said %d lines in a row on its stdout that are no messages of the protocol", nonsense))
}

// line gives the next line that is not empty, in memory bounded by bound.
func (w *stdio) line() ([]byte, error) {
	var line []byte
	for {
		part, err := w.out.ReadSlice('\n')
		if len(line)+len(part) > w.bound {
			return nil, fmt.Errorf("it sent a message of more than %d KiB", w.bound>>10)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		default:
			line = line[:0]
		}
	}
}

func (w *stdio) stop(err error) error {
	if !errors.Is(err, os.ErrClosed) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wrong = err
	}
	return err
}

// Write sends a message. One that starts a call learns how it can be cancelled.
func (w *stdio) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	l := outgoing{line: line}
	if r, ok := msg.(*jsonrpc.Request); ok && r.IsCall() {
		l.call, l.cancel = sentOf(ctx), func(ctx context.Context, reason string) error {
			return w.write(ctx, outgoing{line: cancelled(r.ID.Raw(), reason)})
		}
	}
	return w.write(ctx, l)
}

// write sends a line. It waits for the program to read it, but not longer than ctx; one that nobody has begun to write then
// is not sent.
func (w *stdio) write(ctx context.Context, l outgoing) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	l.line, l.written = append(l.line, '\n'), make(chan error, 1)
	select {
	case w.lines <- l:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.parted:
		return os.ErrClosed
	}
	select {
	case err := <-l.written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-w.parted:
		return os.ErrClosed
	}
}

func (w *stdio) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong != nil || w.full
}

func (w *stdio) unheard() bool { return false }

// Close implements the SDK's Connection: it asks the program to end by closing its input. part sees to it that it does.
func (w *stdio) Close() error { return w.service.Stdin.Close() }

// part ends the program and all that it started.
func (w *stdio) part(session *sdk.ClientSession) (how string) {
	w.mu.Lock()
	wrong := w.wrong
	w.mu.Unlock()
	alone := false
	if wrong != nil { // what says no more is about to exit, as a rule
		select {
		case <-w.service.Exited:
			alone = true
		case <-time.After(process.Grace):
		}
	}
	end := w.service.Close(patience)
	w.once.Do(func() { close(w.parted) })
	if session != nil {
		_ = session.Close()
	}
	switch {
	case wrong != nil && !errors.Is(wrong, io.EOF):
		return wrong.Error()
	case alone && end.Signal != "":
		return "it was ended by the signal: " + end.Signal
	case alone:
		return fmt.Sprintf("it ended with exit status %d", end.Exit)
	case wrong != nil:
		return "it closed its stdout"
	}
	return ""
}

// complaints takes what the program says on stderr: to the log, bounded, and the last of it to be told when it fails.
func (w *stdio) complaints(r io.Reader) {
	lines := bufio.NewReaderSize(r, 4<<10)
	logged := 0
	for {
		line, err := lines.ReadSlice('\n')
		w.mu.Lock()
		w.words = append(w.words, line...)
		w.words = w.words[max(0, len(w.words)-2*wordsBytes):]
		w.mu.Unlock()
		if len(bytes.TrimSpace(line)) > 0 && logged < logBytes {
			logged += len(line)
			w.log.Debug("stderr", "line", readable(w.given.Replace(string(line)), 500))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (w *stdio) lastWords() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	words := w.given.Replace(string(w.words))
	if words = readable(words[max(0, len(words)-wordsBytes):], wordsBytes); words == "" {
		return ""
	}
	return ". It complained: " + words
}
