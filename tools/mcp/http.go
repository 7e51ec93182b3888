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
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpWire speaks to an address over streamable HTTP.
type httpWire struct {
	sdk.StreamableClientTransport
	rounds *rounds
}

func (s *server) newHTTP() (*httpWire, error) {
	r := &rounds{next: http.DefaultTransport.(*http.Transport).Clone(), headers: http.Header{}, bound: s.o.message}
	for name, value := range s.c.Headers {
		v, err := expand(value, variable)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		r.headers.Set(name, v)
	}
	w := &httpWire{rounds: r}
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
		go func() { // ends when the server answers, at the latest with the SDK's own patience
			defer close(parted)
			_ = session.Close()
		}()
		select {
		case <-parted:
		case <-time.After(partingTime):
		}
	}
	w.rounds.next.CloseIdleConnections()
	return ""
}

func (w *httpWire) lastWords() string { return "" }

// rounds adds the configured headers to each request, and bounds the answers.
type rounds struct {
	next    *http.Transport
	headers http.Header
	bound   int // bytes of an answer
}

// RoundTrip implements http.RoundTripper. A request that starts a call learns how the call can be cancelled: by another
// request with the same headers.
func (r *rounds) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	maps.Copy(out.Header, r.headers)
	if call := sentOf(req.Context()); call != nil && req.Method == http.MethodPost && req.GetBody != nil {
		if id, ok := callID(req); ok {
			call.as(func(ctx context.Context, reason string) error { return r.cancel(ctx, out, cancelled(id, reason)) })
		}
	}
	resp, err := r.next.RoundTrip(out)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &bounded{resp.Body, r.bound, r.bound}
	}
	return resp, err
}

// callID is the id of the tool call that a request makes.
func callID(req *http.Request) (id any, ok bool) {
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	defer body.Close()
	var msg struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
	}
	err = json.NewDecoder(body).Decode(&msg)
	return msg.ID, err == nil && msg.ID != nil && msg.Method == "tools/call"
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

// bounded is a body that is an error when it is longer than bound.
type bounded struct {
	io.ReadCloser
	bound, left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("it sent a message of more than %d KiB", b.bound>>10)
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	return n, err
}
