package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

func frame(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// Each case is bytes that an editor's broken side might write. Each is answered with the right code and words that say
// what was wrong, and the very next message is served.
//
// guards the protocol's bounds
func TestBytesThatAreNoMessageAreAnsweredAndTheNextOneIsServed(t *testing.T) {
	t.Parallel()
	const stop = `{"jsonrpc":"2.0","id":%s,"method":"fermata/turn/stop"}`
	id := func(raw string) string { return frame(fmt.Sprintf(stop, raw)) }
	b := newBadInput(t, "", peer.Options{})
	for _, c := range []struct {
		name, in string
		id       string // of the answer
		code     int
		says     string
	}{
		{"a header block over 8 KiB", "X-Long: " + strings.Repeat("a", 9<<10) + "\r\n\r\n", "null", -32700, "longer than 8192 bytes"},
		{"many short fields over 8 KiB", strings.Repeat("X-A: b\r\n", 2000) + "\r\n", "null", -32700, "longer than 8192 bytes"},
		{"a length that is no number", "Content-Length: many\r\n\r\n{}\r\n", "null", -32700, `Content-Length "many" is no number`},
		{"a negative length", "Content-Length: -7\r\n\r\n", "null", -32700, `"-7" is no number of bytes`},
		{"a length of 20 digits", "Content-Length: 99999999999999999999\r\n\r\n", "null", -32700, "is no number of bytes"},
		{"no length", "Content-Type: application/json\r\n\r\n" + `{"jsonrpc":"2.0"}` + "\n", "null", -32700, "no Content-Length"},
		{"two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}\n", "null", -32700, "two Content-Lengths"},
		{"a garbage line", "GET / HTTP/1.1\r\n", "null", -32700, "should be a header"},
		{"a message on a line", fmt.Sprintf(stop, "1") + "\n", "null", -32700, "one message per line is not LSP's framing"},
		{"a megabyte of zeros", strings.Repeat("\x00", 1<<20) + "\n", "null", -32700, "8192 bytes"},
		{"broken JSON", frame(`{"jsonrpc":"2.0","id":7,"method":`), "null", -32700, "not JSON"},
		{"bytes that are not UTF-8", frame("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}"), "null", -32700, "not UTF-8"},
		{"nothing", frame(""), "null", -32700, "empty"},
		{"ten thousand nested arrays", frame(strings.Repeat("[", 20_000)), "null", -32700, "not JSON"},
		{"a batch", frame("[" + fmt.Sprintf(stop, `"in a batch"`) + "]"), `"in a batch"`, -32600, "send each request as its own message"},
		{"an empty batch", frame("[]"), "null", -32600, "batches are not supported"},
		{"a number", frame("42"), "null", -32600, "no JSON-RPC request"},
		{"another version", frame(`{"jsonrpc":"1.0","id":701,"method":"x"}`), "701", -32600, `must be "2.0"`},
		{"a method that is a number", frame(`{"jsonrpc":"2.0","id":702,"method":7}`), "702", -32600, "no JSON-RPC request"},
		{"an id that is an array", frame(`{"jsonrpc":"2.0","id":[1],"method":"x"}`), "null", -32600, "no JSON-RPC request"},
		{"an id that is a string", id(`"ünï\"\\"`), `"ünï\"\\"`, -31003, "no turn is running"},
		{"an id that is empty", id(`""`), `""`, -31003, "no turn is running"},
		{"an id that is negative", id("-7"), "-7", -31003, "no turn is running"},
		{"an id over 32 bits", id("4294967297"), "4294967297", -31003, "no turn is running"},
		{"an id over 64 bits", id("123456789012345678901"), "123456789012345678901", -31003, "no turn is running"},
		{"an id with a fraction", id("1.5"), "1.5", -31003, "no turn is running"},
		{"an id that is null", id("null"), "null", -32600, "the id is null"},
		{"a message of 65 MiB", frame(strings.Repeat(" ", 65<<20)), "null", -32600, "68157440 bytes and the limit is 67108864"},
		{"an answer to nothing", frame(`{"jsonrpc":"2.0","id":703,"result":{}}`), "", 0, ""},
		{"a notification that nobody knows", frame(`{"jsonrpc":"2.0","method":"x/y","params":[1,{}]}`), "", 0, ""},
		{"a cancel of nothing", frame(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":{}}}`), "", 0, ""},
		{"a change of a document that is not open", frame(`{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":7}}}`), "", 0, ""},
	} {
		before := b.refusals()
		b.Write([]byte(c.in))
		b.Must("fermata/session/list", nil, nil) // the next message is served
		m, refused := peer.Message{}, b.refusals()-before
		if c.id != "" {
			m = b.Reply(c.id)
		}
		switch {
		case (c.id == "null") != (refused == 1) || refused > 1:
			t.Errorf("%s was answered %d times without an id", c.name, refused)
		case c.id != "" && (m.Error == nil || m.Error.Code != c.code || !strings.Contains(m.Error.Message, c.says)):
			t.Errorf("%s: answered %+v, want %d with %q", c.name, m.Error, c.code, c.says)
		}
	}
	b.goesOn(b.session)
	b.quit()
}

// refusals counts the answers to what had no id. They are written before the next message is read.
func (b *badInput) refusals() (n int) {
	for _, what := range b.Order() {
		if what == "reply null" {
			n++
		}
	}
	return n
}

// guards the protocol's bounds, S3, P4
func TestAnAnnouncedMessageThatDoesNotComeCostsNoMemory(t *testing.T) {
	t.Parallel()
	b := newBadInput(t, "", peer.Options{})
	before := b.residentBytes()
	const sent = 2 << 20
	// More than a pipe holds: when this is written, all but the end of it was read.
	b.Write([]byte("Content-Length: 60000000\r\n\r\n" + strings.Repeat(" ", sent)))
	if grown := b.residentBytes() - before; grown > 24<<20 {
		t.Errorf("%d bytes more are resident for a message of which %d came", grown, sent)
	}
	b.CloseStdin()
	if code := b.Exit(); code != 1 {
		t.Errorf("the daemon exited with %d", code)
	}
	b.start(peer.Options{})
	b.Initialize(b.root, nil)
	b.goesOn(b.session)
	b.quit()
}

// residentBytes is what the daemon holds in memory, 0 where that cannot be read.
func (b *badInput) residentBytes() int {
	b.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Pid()))
	if runtime.GOOS != "linux" {
		return 0
	}
	if err != nil {
		b.t.Fatal(err)
	}
	kib, err := strconv.Atoi(string(regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)[1]))
	if err != nil {
		b.t.Fatal(err)
	}
	return kib << 10
}

// files are the contents of all files below the test's home: configuration, database, state and workspace.
func (b *badInput) files() map[string][]byte {
	b.t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(b.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return files
}
