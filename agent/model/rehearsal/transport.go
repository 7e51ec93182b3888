package rehearsal

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Transport serves requests with h inside the process. It keeps what a connection has: the body streams, a client that
// ends its context or closes the body ends the handler's context, and a handler that panics with http.ErrAbortHandler
// breaks the body with io.ErrUnexpectedEOF. Close of the body returns when the handler has.
func Transport(h http.Handler) http.RoundTripper { return transport{h} }

type transport struct{ h http.Handler }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	pr, pw := io.Pipe()
	w := &writer{header: http.Header{}, pipe: pw, begun: make(chan struct{})}
	served := make(chan struct{})
	in := r.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	go func() { // ends when the handler does: closing the body and ending the context make it
		defer close(served)
		defer in.Body.Close()
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				panic(v)
			} else if v != nil {
				w.abort()
			}
			w.end()
		}()
		t.h.ServeHTTP(w, in)
	}()
	stop := context.AfterFunc(ctx, func() { _ = pr.CloseWithError(context.Cause(ctx)) }) // frees a handler that writes
	select {
	case <-w.begun:
		if w.status == 0 {
			cancel(context.Canceled)
			stop()
			<-served
			return nil, io.ErrUnexpectedEOF
		}
	case <-ctx.Done():
		cancel(context.Canceled)
		<-served
		return nil, context.Cause(ctx)
	}
	return &http.Response{
		Status:     strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode: w.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        w.sent,
		ContentLength: -1,
		Request:       r,
		Body: &body{PipeReader: pr, close: func() {
			cancel(context.Canceled)
			stop()
			_ = pr.Close()
			<-served
		}},
	}, nil
}

type body struct {
	*io.PipeReader
	once  sync.Once
	close func()
}

func (b *body) Close() error {
	b.once.Do(b.close)
	return nil
}

// writer is the handler's side. Only the handler's goroutine uses it; status and sent are fixed once begun is closed.
type writer struct {
	header http.Header
	sent   http.Header
	status int
	begun  chan struct{}
	pipe   *io.PipeWriter

	aborted bool
}

// abort breaks the connection; before the headers, status stays 0.
func (w *writer) abort() {
	w.aborted = true
	_ = w.pipe.CloseWithError(io.ErrUnexpectedEOF)
	if w.status == 0 {
		close(w.begun)
	}
}

func (w *writer) end() {
	if !w.aborted {
		w.WriteHeader(http.StatusOK)
		_ = w.pipe.Close()
	}
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(b)
}

// Flush sends the headers: a pipe holds nothing back.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }
