package mcp

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolVersion is the newest that begins with the handshake that all servers know.
const protocolVersion = "2025-11-25"

// Bounds of what a server can have us read.
const (
	messageBytes = 16 << 20 // of one message; less in tests
	listed       = 512      // tools of a list
	partingTime  = 3 * time.Second
)

// conn is a connection to a server that has greeted.
type conn struct {
	begun   time.Time
	session *sdk.ClientSession
	wire    wire
	changed atomic.Bool   // the server says that its list has changed
	gone    chan struct{} // closed when nothing more comes

	calls  context.Context // of every call: ends with close
	cancel context.CancelFunc
	once   sync.Once
	how    string // it had ended before it was closed; "" when it had not

	mu       sync.Mutex
	token    int
	progress map[string]func(string) // of running calls, by their token
}

// wire is how messages get to a server and back.
type wire interface {
	sdk.Transport
	// part ends it, and the session on it unless there is none. how says how it had ended before that, "" when it had not.
	part(session *sdk.ClientSession) (how string)
	lastWords() string // what it complained of last, to be put behind an error; "" for nothing
}

// dial makes a connection.
func (s *server) dial(ctx context.Context) (*conn, error) {
	w, err := s.wire()
	if err != nil {
		return nil, err
	}
	c := &conn{begun: time.Now(), wire: w, gone: make(chan struct{}), progress: map[string]func(string){}}
	c.calls, c.cancel = context.WithCancel(context.Background())
	client := sdk.NewClient(&sdk.Implementation{Name: "fermata", Version: s.o.Version}, &sdk.ClientOptions{
		//lint:ignore SA1019 a later protocol does without roots; the servers of this one learn of the workspace by them
		Capabilities:                &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.changed.Store(true) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progressed(r.Params) },
	})
	if s.root != "" {
		//lint:ignore SA1019 as above
		client.AddRoots(&sdk.Root{URI: fileURI(s.root), Name: filepath.Base(s.root)})
	}
	c.session, err = client.Connect(ctx, w, &sdk.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err != nil {
		c.cancel()
		how := w.part(nil)
		if how == "" {
			how = err.Error()
		}
		return c, fmt.Errorf("%s%s", readable(how, 300), w.lastWords())
	}
	go func() { // ends when the connection does, which close sees to
		_ = c.session.Wait()
		close(c.gone)
	}()
	return c, nil
}

func (s *server) wire() (wire, error) {
	if s.c.URL != "" {
		return s.newHTTP()
	}
	return s.newStdio()
}

func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if path[0] != '/' { // C:/…
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// over reports whether nothing more comes.
func (c *conn) over() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (c *conn) lastWords() string {
	if c == nil {
		return ""
	}
	return c.wire.lastWords()
}

// close ends the connection and the server's processes. Later calls wait for the first.
func (c *conn) close() { c.ended(nil) }

// ended closes the connection and says how it came to its end: by itself, else by cause.
func (c *conn) ended(cause error) error {
	c.once.Do(func() {
		c.cancel()
		c.how = c.wire.part(c.session)
	})
	switch {
	case c.how != "":
		return fmt.Errorf("%s%s", c.how, c.wire.lastWords())
	case cause != nil:
		return fmt.Errorf("%s%s", readable(cause.Error(), 300), c.wire.lastWords())
	}
	return nil
}

// tools is the server's list.
func (c *conn) tools(ctx context.Context) (all []*sdk.Tool, err error) {
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if all = append(all, t); len(all) == listed {
			break
		}
	}
	return all, nil
}

// follow has progress told what the server says of a call while it runs. It gives the call's token.
func (c *conn) follow(progress func(string)) (token string, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token++
	token = "call-" + strconv.Itoa(c.token)
	c.progress[token] = progress
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.progress, token)
	}
}

// progressed holds the lock while it tells: nothing is told of a call that is over.
func (c *conn) progressed(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	tell := c.progress[token]
	if tell == nil {
		return
	}
	text := readable(p.Message, 500)
	switch {
	case text == "" && p.Total > 0:
		text = fmt.Sprintf("%.0f of %.0f", p.Progress, p.Total)
	case text == "":
		return
	}
	tell(text + "\n")
}

// readable is a text from a server as one line, at most about max bytes, without what a terminal would act on.
func readable(s string, max int) string {
	s = strings.Join(strings.Fields(plain(s[:min(len(s), 2*max)])), " ")
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max], "") + "…"
}

// plain takes control characters, and those that change the direction of text, out of it.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
