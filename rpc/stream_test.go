package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.lsp.dev/jsonrpc2"
)

// framed is a message with its header.
func framed(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// unframe splits what a stream wrote into its bodies.
func unframe(t *testing.T, out string) []string {
	t.Helper()
	var bodies []string
	for r := bufio.NewReader(strings.NewReader(out)); ; {
		var n int
		if _, err := fmt.Fscanf(r, "Content-Length: %d\r\n\r\n", &n); err != nil {
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				t.Fatalf("after %d messages: %v, rest %q", len(bodies), err, rest)
			}
			return bodies
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(body))
	}
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestWhatIsNoMessageIsAnsweredAndTheConnectionGoesOn(t *testing.T) {
	refusal := func(id string, code int) string { return fmt.Sprintf(`{"id":%s,"code":%d}`, id, code) }
	for name, tt := range map[string]struct {
		in   string
		want []string // id and code of each refusal
	}{
		"nothing before":                    {"", nil},
		"empty lines":                       {"\r\n\n\r\n", nil},
		"other fields and case":             {"X-A: b\r\ncontent-length:  40  \r\nContent-Type: x\r\n\r\n" + ping, nil},
		"lines that end with LF only":       {"Content-Length: 40\n\n" + ping, nil},
		"a length that is no number":        {"Content-Length: abc\r\n\r\n{}", []string{refusal("null", -32700)}},
		"a negative length":                 {"Content-Length: -5\r\n\r\n", []string{refusal("null", -32700)}},
		"a length with a plus":              {"Content-Length: +5\r\n\r\n12345", []string{refusal("null", -32700)}},
		"a length beyond 64 bits":           {"Content-Length: 99999999999999999999\r\n\r\nxx", []string{refusal("null", -32700)}},
		"a missing length":                  {"Content-Type: x\r\n\r\n" + ping + "\n", []string{refusal("null", -32700)}},
		"two different lengths":             {"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", []string{refusal("null", -32700)}},
		"a length of nothing":               {"Content-Length: 0\r\n\r\n", []string{refusal("null", -32700)}},
		"a message per line":                {ping + "\n" + ping + "\n", []string{refusal("null", -32700)}},
		"garbage without a line end":        {"@@@@", []string{refusal("null", -32700)}},
		"garbage right before the header":   {"1}", []string{refusal("null", -32700)}},
		"a header longer than 8 KiB":        {"X: " + strings.Repeat("a", 9<<10) + "\r\n\r\n", []string{refusal("null", -32700)}},
		"many short fields beyond 8 KiB":    {strings.Repeat("A: b\r\n", 2000) + "\r\n", []string{refusal("null", -32700)}},
		"a megabyte of garbage in one line": {strings.Repeat("\x00", 1<<20), []string{refusal("null", -32700)}},
		"a body cut short by its length":    {"Content-Length: 5\r\n\r\n" + ping, []string{refusal("null", -32700), refusal("null", -32700)}},
		"broken JSON":                       {framed(`{"jsonrpc":"2.0","id":7,"method":`), []string{refusal("null", -32700)}},
		"JSON broken within the params":     {framed(`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":}}`), []string{refusal("null", -32700)}},
		"two values in one message":         {framed(ping + ping), []string{refusal("null", -32700)}},
		"bytes that are not UTF-8":          {framed("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}"), []string{refusal("null", -32700)}},
		"a number":                          {framed(`42`), []string{refusal("null", -32600)}},
		"an empty object":                   {framed(`{}`), []string{refusal("null", -32600)}},
		"another version":                   {framed(`{"jsonrpc":"1.0","id":7,"method":"x"}`), []string{refusal("7", -32600)}},
		"a method that is no string":        {framed(`{"jsonrpc":"2.0","id":7,"method":7}`), []string{refusal("7", -32600)}},
		"an id that is an object":           {framed(`{"jsonrpc":"2.0","id":{},"method":"x"}`), []string{refusal("null", -32600)}},
		"an id that is null":                {framed(`{"jsonrpc":"2.0","id":null,"method":"x"}`), []string{refusal("null", -32600)}},
		"an id with a NUL":                  {framed(`{"jsonrpc":"2.0","id":"\u0000","method":"x"}`), []string{refusal("null", -32600)}},
		"an empty batch":                    {framed(`[]`), []string{refusal("null", -32600)}},
		"a batch":                           {framed(`[` + ping + `,{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":"b","method":"x"}]`), []string{refusal("1", -32600), refusal(`"b"`, -32600)}},
		"a batch of no requests":            {framed(`[1,2]`), []string{refusal("null", -32600)}},
		"a batch of very many":              {framed(`[` + strings.Repeat(ping+",", 200) + ping + `]`), []string{refusal("null", -32600)}},
		"a message longer than the limit":   {framed(`"` + strings.Repeat("x", 20<<10) + `"`), []string{refusal("null", -32600)}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := NewStream(strings.NewReader(tt.in+framed(`{"jsonrpc":"2.0","id":2,"method":"after"}`)), &out, StreamOptions{MaxMessage: 16 << 10})
			var methods []string
			for {
				msg, _, err := s.Read(t.Context())
				if err != nil {
					break
				}
				methods = append(methods, strings.Clone(msg.(jsonrpc2.RequestMessage).Method()))
			}
			if len(methods) == 0 || methods[len(methods)-1] != "after" {
				t.Errorf("the message after it was not read: %q", methods)
			}
			var got []string
			for _, body := range unframe(t, out.String()) {
				var r struct {
					ID    json.RawMessage
					Error struct{ Code int }
				}
				if err := json.Unmarshal([]byte(body), &r); err != nil {
					t.Fatal(err)
				}
				got = append(got, refusal(string(r.ID), r.Error.Code))
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("answered %q, want %q", got, tt.want)
			}
		})
	}
}

func TestIdsOfEveryKindComeBackAsTheyWere(t *testing.T) {
	for _, id := range []string{`"a"`, `""`, `"é\n\"\\"`, `0`, `-7`, `4294967296`, `9223372036854775807`, `9223372036854775808`,
		`-123456789012345678901234567890`, `1.5`, `1e3`, `"7"`} {
		var out bytes.Buffer
		s := NewStream(strings.NewReader(framed(`{"jsonrpc":"2.0","id":`+id+`,"method":"x","params":null}`)), &out, StreamOptions{})
		msg, _, err := s.Read(t.Context())
		if err != nil {
			t.Errorf("%s: %v: %s", id, err, out.String())
			continue
		}
		call := msg.(*jsonrpc2.Call)
		if named, err := ParseID(json.RawMessage(id)); err != nil || named != call.ID() {
			t.Errorf("%s: a cancel names %q, %v", id, named, err)
		}
		var written bool
		s.After(call.ID(), func() { written = true })
		for _, reply := range []*jsonrpc2.Response{
			jsonrpc2.NewResponse(call.ID(), []byte(`{"a":1}`), nil), jsonrpc2.NewResponse(call.ID(), nil, jsonrpc2.ErrInternal),
		} {
			out.Reset()
			if _, err := s.Write(t.Context(), reply); err != nil {
				t.Fatal(err)
			}
			var got struct{ ID, Result, Error json.RawMessage }
			if err := json.Unmarshal([]byte(unframe(t, out.String())[0]), &got); err != nil {
				t.Fatal(err)
			}
			if string(got.ID) != id || (got.Result == nil) == (got.Error == nil) {
				t.Errorf("%s came back as %s", id, got.ID)
			}
		}
		if !written {
			t.Errorf("%s: what was to follow the reply did not", id)
		}
	}
}

func TestMemoryGrowsWithWhatWasReceivedOnly(t *testing.T) {
	in := io.MultiReader(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n", int64(DefaultMaxMessage))),
		strings.NewReader(strings.Repeat(" ", 100<<10)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := NewStream(in, io.Discard, StreamOptions{})
	if _, _, err := s.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes were allocated for 100 KiB", got)
	}
}

func TestAMessageOfTheLimitIsReadAndOneByteMoreIsSkippedExactly(t *testing.T) {
	body := func(n int) string {
		head := `{"jsonrpc":"2.0","method":"m","params":{"a":"`
		return head + strings.Repeat("x", n-len(head)-3) + `"}}`
	}
	var out bytes.Buffer
	s := NewStream(strings.NewReader(framed(body(4097))+framed(body(4096))), &out, StreamOptions{MaxMessage: 4096})
	msg, n, err := s.Read(t.Context())
	if err != nil || n != 4096 {
		t.Fatalf("%v, %d bytes, %v", msg, n, err)
	}
	if !strings.Contains(out.String(), "the limit is 4096") {
		t.Errorf("answered %q", out.String())
	}
}

func TestTheEndOfInputIsReportedOnceBeforeReadReturns(t *testing.T) {
	for _, in := range []string{"", "Content-Le", "Content-Length: 10\r\n\r\n{", framed(`{`)} {
		n := 0
		s := NewStream(strings.NewReader(in), io.Discard, StreamOptions{Hangup: func(error) { n++ }})
		for range 2 {
			if _, _, err := s.Read(t.Context()); !errors.Is(err, io.EOF) || n != 1 {
				t.Errorf("%q: %v, %d reports", in, err, n)
			}
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAnOutputThatBreaksIsAHangup(t *testing.T) {
	hung := make(chan error, 1)
	s := NewStream(strings.NewReader(""), brokenWriter{}, StreamOptions{Hangup: func(err error) { hung <- err }})
	ended := false
	s.After(jsonrpc2.NewNumberID(1), func() { ended = true })
	if _, err := s.Write(t.Context(), jsonrpc2.NewResponse(jsonrpc2.NewNumberID(1), nil, nil)); err == nil || !ended {
		t.Errorf("%v, ended %v", err, ended)
	}
	if _, ok := errors.AsType[*OutputError](<-hung); !ok {
		t.Error("the hangup does not say that the output broke")
	}
}

// stuckWriter tells that a write has begun, and never ends it.
type stuckWriter chan struct{}

func (w stuckWriter) Write([]byte) (int, error) {
	close(w)
	select {}
}

// guards S13: the reading goroutine calls After for each request, also a stop. It once waited for the write.
func TestAfterDoesNotWaitForAClientThatDoesNotRead(t *testing.T) {
	w := make(stuckWriter)
	s := NewStream(strings.NewReader(""), w, StreamOptions{})
	go func() { _ = s.Notify("n", nil) }() // never ends
	<-w
	s.After(jsonrpc2.NewNumberID(1), func() {})
}

func TestMessagesWrittenAtTheSameTimeStayWhole(t *testing.T) {
	r, w := io.Pipe()
	s := NewStream(strings.NewReader(""), w, StreamOptions{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if err := s.Notify("n", []byte(`{"x":"`+strings.Repeat("y", i*100)+`"}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { wg.Wait(); w.Close() }()
	all, _ := io.ReadAll(r)
	bodies := unframe(t, string(all))
	for _, b := range bodies {
		if !json.Valid([]byte(b)) {
			t.Fatalf("%q", b)
		}
	}
	if len(bodies) != 400 {
		t.Errorf("%d messages", len(bodies))
	}
}

func TestANotificationAllocatesNothing(t *testing.T) {
	s := NewStream(strings.NewReader(""), io.Discard, StreamOptions{})
	params := []byte(`{"session":"s","kind":"delta"}`)
	if n := testing.AllocsPerRun(100, func() { _ = s.Notify("fermata/event", params) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzReadEndsWithTheInput(f *testing.F) {
	for _, seed := range []string{framed(ping), "Content-Length: 5\r\n\r\nhello" + framed(ping), "\r\n{", "content-length:1\n\n" + ping} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := NewStream(bytes.NewReader(in), io.Discard, StreamOptions{MaxMessage: 1 << 10})
		for {
			if _, _, err := s.Read(context.Background()); err != nil {
				return
			}
		}
	})
}
