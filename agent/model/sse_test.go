package model_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"fermata/agent/model"
)

func events(r io.Reader) (string, error) {
	var b strings.Builder
	er := model.NewEventReader(r)
	for {
		ev, err := er.Next()
		if err == io.EOF {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
		fmt.Fprintf(&b, "%s|%s|%q\n", ev.Type, ev.ID, ev.Data)
	}
}

var streams = []struct{ name, in, want string }{
	{"lines end in LF", "data: a\n\ndata: b\n\n", "||\"a\"\n||\"b\"\n"},
	{"lines end in CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "||\"a\"\n||\"b\"\n"},
	{"lines end in CR", "data: a\r\rdata: b\r\r", "||\"a\"\n||\"b\"\n"},
	{"line ends are mixed", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", "||\"a\"\n||\"b\"\n||\"c\"\n"},
	{"data in several lines is joined", "data: a\ndata:b\ndata\ndata:  c\n\n", "||\"a\\nb\\n\\n c\"\n"},
	{"comments are ignored", ": hello\n\n:\ndata: a\n: in between\ndata: b\n\n", "||\"a\\nb\"\n"},
	{"a type belongs to its event only", "event: x\ndata: 1\n\ndata: 2\n\nevent: x\ndata: 3\n\n", "x||\"1\"\n||\"2\"\nx||\"3\"\n"},
	{"an event without data is none and its type is gone", "event: ping\n\ndata: 1\n\n", "||\"1\"\n"},
	{"an id lasts", "id: 7\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n", "|7|\"1\"\n|7|\"2\"\n||\"3\"\n"},
	{"an id with NUL is ignored", "id: 7\x00\ndata: 1\n\n", "||\"1\"\n"},
	{"a byte order mark at the start is skipped", "\ufeffdata: 1\n\n\ufeffdata: 2\n\n", "||\"1\"\n"},
	{"only one space is taken off", "data:  two\n\n", "||\" two\"\n"},
	{"unknown fields are ignored", "retry: 10\nfoo: bar\n data: x\ndata: 1\n\n", "||\"1\"\n"},
	{"empty data is an event", "data:\n\n", "||\"\"\n"},
	{"an unfinished event is not dispatched", "data: 1\n\ndata: 2\n", "||\"1\"\n"},
	{"an unfinished line is not dispatched", "data: 1\n\ndata: 2", "||\"1\"\n"},
	{"bytes are not decoded", "data: \xe2\x82\n\ndata: \xac\n\n", "||\"\\xe2\\x82\"\n||\"\\xac\"\n"},
}

// guards F1
func TestEventsAreTheSameHoweverTheBytesAreSplit(t *testing.T) {
	for _, s := range streams {
		t.Run(s.name, func(t *testing.T) {
			for at := range len(s.in) + 1 {
				two := io.MultiReader(strings.NewReader(s.in[:at]), strings.NewReader(s.in[at:]))
				if got, err := events(two); err != nil || got != s.want {
					t.Fatalf("split at %d: got %q, %v; want %q", at, got, err, s.want)
				}
			}
			if got, err := events(iotest.OneByteReader(strings.NewReader(s.in))); err != nil || got != s.want {
				t.Fatalf("byte by byte: got %q, %v; want %q", got, err, s.want)
			}
			if got, err := events(iotest.DataErrReader(strings.NewReader(s.in))); err != nil || got != s.want {
				t.Fatalf("error with the last bytes: got %q, %v; want %q", got, err, s.want)
			}
		})
	}
}

func TestAnEventIsHandedOutBeforeTheNextByteComes(t *testing.T) {
	for _, in := range []string{"data: 1\n\n", "data: 1\r\n\r", "data: 1\r\r"} {
		stop := errors.New("asked for more")
		r := model.NewEventReader(io.MultiReader(strings.NewReader(in), iotest.ErrReader(stop)))
		if ev, err := r.Next(); err != nil || string(ev.Data) != "1" {
			t.Errorf("%q: got %q, %v", in, ev.Data, err)
		}
		if _, err := r.Next(); !errors.Is(err, stop) {
			t.Errorf("%q: got %v, want the source's error", in, err)
		}
	}
}

func TestALineOfFiveMegabytesPasses(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 5<<20)
	in := io.MultiReader(strings.NewReader("data: "), bytes.NewReader(long), strings.NewReader("\n\ndata: after\n\n"))
	r := model.NewEventReader(in)
	ev, err := r.Next()
	if err != nil || !bytes.Equal(ev.Data, long) {
		t.Fatalf("got %d bytes, %v", len(ev.Data), err)
	}
	if ev, err = r.Next(); err != nil || string(ev.Data) != "after" {
		t.Fatalf("got %q, %v", ev.Data, err)
	}
}

type endless struct{ line string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e.line) <= len(p) {
		n += copy(p[n:], e.line)
	}
	return n, nil
}

func TestALineOrEventOverTheBoundIsMalformed(t *testing.T) {
	for _, src := range []io.Reader{endless{strings.Repeat("x", 1024)}, endless{"data: " + strings.Repeat("x", 1000) + "\n"}} {
		_, err := model.NewEventReader(src).Next()
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.Malformed {
			t.Errorf("got %v, want malformed", err)
		}
	}
}

func TestReadingAnEventAllocatesNothing(t *testing.T) {
	r := model.NewEventReader(endless{"event: x\ndata: {\"choices\":[{\"delta\":{\"content\":\"word \"}}]}\n\n"})
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations per event", n)
	}
}
