package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolVersion is the newest that begins with the handshake that all servers know.
const protocolVersion = "2025-11-25"

// Bounds of what a server can have us read.
const (
	messageBytes  = 16 << 20 // of one message; less in tests
	listed        = 2000     // tools of a list, of those that are wanted: the first by name (M4)
	listedAll     = 20_000   // tools of a list that are looked at
	partingTime   = 3 * time.Second
	progressBytes = 64 << 10               // of what is told of a call while it runs
	comingTime    = 100 * time.Millisecond // for answers that have come to be taken, when a connection is closed
)

// conn is a connection to a server that has greeted.
type conn struct {
	begun   time.Time
	session *sdk.ClientSession
	wire    wire
	changed atomic.Bool   // the server says that its list has changed
	gone    chan struct{} // closed when nothing more comes
	cause   error         // of that, once gone is closed; nil where none is known

	calls  context.Context // of every call: ends with close
	cancel context.CancelFunc
	once   sync.Once
	how    string // it had ended before it was closed; "" when it had not
	first  error  // why it was closed; nil: by us

	running sync.WaitGroup // calls

	mu       sync.Mutex
	closing  bool // no call begins any more
	token    int
	progress map[string]*follower // of running calls, by their token
}

// follower is told what the server says of a call.
type follower struct {
	tell func(string)
	told int // bytes
}

// wire is how messages get to a server and back.
type wire interface {
	sdk.Transport
	// part ends it, and the session on it unless there is none. how says how it had ended before that, "" when it had not. Once
	// it is back, nothing that uses the wire waits any more.
	part(session *sdk.ClientSession) (how string)
	broken() bool      // it is known that nothing more comes of it
	unheard() bool     // the server cannot say any more that its list has changed
	lastWords() string // what it complained of last, to be put behind an error; "" for nothing
}

// dial makes a connection.
func (s *server) dial(ctx context.Context) (*conn, error) {
	w, err := s.wire()
	if err != nil {
		return nil, err
	}
	c := &conn{begun: time.Now(), wire: w, gone: make(chan struct{}), progress: map[string]*follower{}}
	c.calls, c.cancel = context.WithCancel(context.Background())
	client := sdk.NewClient(&sdk.Implementation{Name: "fermata", Version: s.o.Version}, &sdk.ClientOptions{
		//lint:ignore SA1019 a later protocol does without roots; the servers of this one learn of the workspace by them
		Capabilities:                &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true}, // it makes a call again, which was asked about once
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.changed.Store(true) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progressed(r.Params) },
	})
	client.AddReceivingMiddleware(heard)
	if s.root != "" {
		//lint:ignore SA1019 as above
		client.AddRoots(&sdk.Root{URI: fileURI(s.root), Name: filepath.Base(s.root)})
	}
	if c.session, err = connect(ctx, client, w); err != nil {
		c.cancel()
		how := w.part(nil)
		if how == "" {
			how = err.Error()
		}
		return c, fmt.Errorf("%s%s", readable(how, 300), w.lastWords())
	}
	go func() { // ends when the connection does, which close sees to
		c.cause = c.session.Wait()
		close(c.gone)
	}()
	return c, nil
}

// connect greets the server. The SDK waits for the end of one that has not answered in time, which may never come: it is
// brought about.
func connect(ctx context.Context, client *sdk.Client, w wire) (session *sdk.ClientSession, err error) {
	done := make(chan struct{})
	go func() { // ends with the greeting, at the latest when the wire is parted
		defer close(done)
		session, err = client.Connect(ctx, w, &sdk.ClientSessionOptions{ProtocolVersion: protocolVersion})
	}()
	select {
	case <-done:
		return session, err
	case <-ctx.Done():
	}
	w.part(nil)
	<-done
	if err == nil {
		err = ctx.Err()
	}
	return nil, err
}

// heard lets through what a server may say to us. All else is refused before the SDK reads it: some of its handlers take for
// granted what a message need not hold, and end this process. Tested by TestNoMessageOfAServerEndsUs.
func heard(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "ping", "roots/list", "notifications/progress", "notifications/tools/list_changed":
			return next(ctx, method, req)
		}
		if strings.HasPrefix(method, "notifications/") {
			return nil, nil
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "fermata does not do " + readable(method, 100)}
	}
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
		c.first = cause
		c.settle()
		c.cancel()
		c.how = c.wire.part(c.session)
	})
	switch {
	case c.how != "":
		return fmt.Errorf("%s%s", c.how, c.wire.lastWords())
	case cause != nil:
		return fmt.Errorf("%s%s", readable(cmp.Or(c.first, cause).Error(), 300), c.wire.lastWords())
	}
	return nil
}

// begin takes note that a call runs, until end is called; nil when no call begins any more.
func (c *conn) begin() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil
	}
	c.running.Add(1)
	return c.running.Done
}

// settle ends the time in which calls begin, and lets those come back that have their answer: of an answer and a context that
// has ended the SDK may take either (S7).
func (c *conn) settle() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	back := make(chan struct{})
	go func() { // ends with the calls, which end when they are cancelled
		c.running.Wait()
		close(back)
	}()
	select {
	case <-back:
	case <-time.After(comingTime):
	}
}

// lost reports whether an error of a call is the end of the connection, and not of that call alone.
func (c *conn) lost(err error) bool {
	return c.over() || c.calls.Err() != nil || c.wire.broken() || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, sdk.ErrSessionMissing)
}

// tools are those of the server's list that are wanted; nil: all. In whatever order it lists more than are taken, the
// same ones are.
func (c *conn) tools(ctx context.Context, wanted []string) (some []*sdk.Tool, err error) {
	first := func() {
		slices.SortStableFunc(some, byName)
		some = some[:min(len(some), listed)]
	}
	seen := 0
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if wanted == nil || slices.Contains(wanted, t.Name) {
			some = append(some, t)
		}
		if len(some) == 2*listed {
			first()
		}
		if seen++; seen == listedAll {
			break
		}
	}
	first()
	return some, nil
}

// follow has progress told what the server says of a call while it runs. It gives the call's token.
func (c *conn) follow(progress func(string)) (token string, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token++
	token = "call-" + strconv.Itoa(c.token)
	c.progress[token] = &follower{tell: progress}
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.progress, token)
	}
}

// progressed holds the lock while it tells: nothing is told of a call that is over.
func (c *conn) progressed(p *sdk.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.progress[token]
	if f == nil || f.told >= progressBytes {
		return
	}
	text := readable(p.Message, 500)
	switch {
	case text == "" && p.Total > 0:
		text = fmt.Sprintf("%.0f of %.0f", p.Progress, p.Total)
	case text == "":
		return
	}
	if f.told += len(text) + 1; f.told >= progressBytes {
		text += "\n(it goes on, but is not shown any more)"
	}
	f.tell(text + "\n")
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
