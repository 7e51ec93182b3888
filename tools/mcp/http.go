package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// standTime is how long an address may take to say whether it will speak unasked. Until it does, nothing else is asked.
const standTime = 2 * time.Second

// httpWire speaks to an address over streamable HTTP.
type httpWire struct {
	sdk.StreamableClientTransport
	rounds *rounds
	end    context.CancelFunc
}

func (s *server) newHTTP() (*httpWire, error) {
	r := &rounds{next: http.DefaultTransport.(*http.Transport).Clone(), headers: http.Header{}, bound: s.o.message, stand: min(standTime, s.c.Start/2)}
	for name, value := range s.c.Headers {
		v, err := expand(value, variable)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		r.headers.Set(name, v)
	}
	w := &httpWire{rounds: r}
	r.life, w.end = context.WithCancel(context.Background())
	w.Endpoint = s.c.URL
	w.HTTPClient = &http.Client{
		Transport: r,
		// What is sent there may hold a key: it goes to no other address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.MaxEventSize = s.o.message
	return w, nil
}

// part says good-bye, but does not wait long for an answer.
func (w *httpWire) part(session *sdk.ClientSession) string {
	if session != nil {
		parted := make(chan struct{})
		go func() { // ends when the server answers, at the latest with the requests' life
			defer close(parted)
			_ = session.Close()
		}()
		select {
		case <-parted:
		case <-time.After(partingTime):
		}
	}
	w.end()
	w.rounds.next.CloseIdleConnections()
	return ""
}

func (w *httpWire) lastWords() string { return "" }

func (w *httpWire) broken() bool { return false }

func (w *httpWire) unheard() bool { return w.rounds.unheard.Load() }

// rounds adds the configured headers to each request, bounds the answers, and ends them all with its life.
type rounds struct {
	next    *http.Transport
	headers http.Header
	bound   int // bytes of an answer
	life    context.Context
	stand   time.Duration // as standTime
	unheard atomic.Bool   // the stream by which the server spoke unasked has ended
}

// RoundTrip implements http.RoundTripper. A request that starts a call learns how the call can be cancelled: by another
// request with the same headers.
func (r *rounds) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.life, cancel)
	end := func() {
		stop()
		cancel()
	}
	out := req.Clone(ctx)
	maps.Copy(out.Header, r.headers)
	if req.Method == http.MethodGet && req.Header.Get("Last-Event-Id") == "" {
		return r.listen(out, end)
	}
	call, id := callOf(req)
	if !call.leaves(func(ctx context.Context, reason string) error { return r.cancel(ctx, out, cancelled(id, reason)) }) {
		end()
		return nil, req.Context().Err()
	}
	resp, err := r.next.RoundTrip(out)
	if err != nil {
		end()
		return nil, err
	}
	b := &body{ReadCloser: resp.Body, end: end}
	if resp.Body = b; !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b.bound, b.left = r.bound, r.bound
	}
	switch {
	case call == nil || resp.StatusCode < 300:
	case resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "":
		call.unsent() // the session has expired, and nobody has taken the call
	default:
		refuse(resp, id)
	}
	return resp, nil
}

// listen asks for the stream by which a server speaks unasked. A server that is slow to answer is taken to have none: the SDK
// waits for it without end. And the stream has no end but ours: the SDK would take that for the end of the session, and of all
// calls that run.
func (r *rounds) listen(req *http.Request, end func()) (*http.Response, error) {
	timer := time.AfterFunc(r.stand, end)
	resp, err := r.next.RoundTrip(req)
	switch late := !timer.Stop(); {
	case late && r.life.Err() == nil:
		if err == nil {
			resp.Body.Close()
		}
		r.unheard.Store(true)
		return &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	case err != nil:
		end()
		return nil, err
	}
	b := &body{ReadCloser: resp.Body, end: end, bound: r.bound, left: r.bound}
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b.bound, b.over = 0, func() {
			r.unheard.Store(true)
			<-req.Context().Done()
		}
	}
	resp.Body = b
	return resp, nil
}

// callOf is the tool call that a request makes, and its id; nil when it makes none.
func callOf(req *http.Request) (call *sent, id any) {
	if call = sentOf(req.Context()); call == nil || req.Method != http.MethodPost || req.GetBody == nil {
		return nil, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, nil
	}
	defer body.Close()
	var msg struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
	}
	if err := json.NewDecoder(body).Decode(&msg); err != nil || msg.ID == nil || msg.Method != "tools/call" {
		return nil, nil
	}
	return call, msg.ID
}

// refuse makes the answer to a call that is an error of HTTP one of the protocol: the SDK takes many of them for the end of the
// session, and of other calls. What the server says beside the status is left out unless it is of the protocol: it can hold
// what it was sent.
func refuse(resp *http.Response, id any) {
	said, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if m, err := jsonrpc.DecodeMessage(said); err == nil {
		if r, ok := m.(*jsonrpc.Response); ok && r.Error != nil {
			resp.Body = io.NopCloser(bytes.NewReader(said))
			return
		}
	}
	text := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if resp.StatusCode >= 500 {
		text += "; the call may have taken effect"
	}
	b, _ := json.Marshal(map[string]any{ // an id and a text can be encoded
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": resp.StatusCode, "message": text},
	})
	resp.Body, resp.StatusCode = io.NopCloser(bytes.NewReader(b)), http.StatusBadRequest
}

func (r *rounds) cancel(ctx context.Context, call *http.Request, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range call.Header {
		if !strings.HasPrefix(strings.ToLower(name), "mcp-param") && name != "Mcp-Method" && name != "Mcp-Name" {
			req.Header[name] = values
		}
	}
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// body is an answer's, which is an error when it is longer than bound, unless that is 0.
type body struct {
	io.ReadCloser
	bound, left int
	end         func() // of the request
	over        func() // nil, or called instead of telling of the body's end: it comes back when nobody reads any more
}

func (b *body) Read(p []byte) (int, error) {
	if b.bound > 0 && b.left <= 0 {
		return 0, fmt.Errorf("it sent a message of more than %d KiB", b.bound>>10)
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	if err == nil || b.over == nil {
		return n, err
	}
	if n == 0 {
		b.over()
		return 0, err
	}
	return n, nil
}

func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
