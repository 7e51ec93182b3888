package tools

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of a command's output, in bytes.
const (
	sinkHead = 16 << 10
	sinkTail = 16 << 10
	sinkFull = 4 << 20
	sinkLive = 1 << 20 // passed to people as it comes
)

// sink takes a command's output: it cleans it, passes it on as it comes, and keeps its beginning and its end. Memory is
// bounded whatever the command says.
type sink struct {
	progress func(string) // may be nil

	mu     sync.Mutex
	clean  cleaner
	closed bool
	total  int64
	full   []byte // the first sinkFull bytes
	tail   []byte // the last of all, at least sinkTail bytes once there are as many
	live   int
}

func newSink(progress func(string)) *sink { return &sink{progress: progress} }

// copy reads r to its end, or until it is closed.
func (s *sink) copy(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		s.mu.Lock()
		if !s.closed {
			s.add(s.clean.write(buf[:n]))
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// close ends it: nothing is taken or passed on afterwards.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.add(s.clean.end())
		s.closed = true
	}
}

func (s *sink) add(text string) {
	if text == "" {
		return
	}
	s.total += int64(len(text))
	s.full = append(s.full, text[:min(len(text), sinkFull-len(s.full))]...)
	s.tail = append(s.tail, text...)
	if len(s.tail) > 4*sinkTail {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-sinkTail:]...)
	}
	if s.progress == nil || s.live >= sinkLive {
		return
	}
	if s.live += len(text); s.live >= sinkLive {
		text += "\n(the output goes on, but is not shown live any more)\n"
	}
	s.progress(text)
}

// output is what the model reads, and the whole, up to sinkFull bytes, when that is a cut of it.
func (s *sink) output() (text string, full []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total <= sinkHead+sinkTail {
		return strings.TrimSuffix(string(s.full), "\n"), nil
	}
	head, _ := clip(string(s.full), sinkHead)
	tail := string(s.tail[len(s.tail)-sinkTail:])
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	left := s.total - int64(len(head)+len(tail))
	whole := string(s.full)
	if s.total > sinkFull {
		whole, _ = clip(whole, sinkFull-utf8.UTFMax)
		whole += fmt.Sprintf("\n(%d bytes more were not kept)\n", s.total-int64(len(whole)))
	}
	return fmt.Sprintf("%s\n(… %d bytes left out …)\n%s", strings.TrimSuffix(head, "\n"), left, strings.TrimSuffix(tail, "\n")), []byte(whole)
}
