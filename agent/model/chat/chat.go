// Package chat speaks OpenAI chat completions, and what DeepSeek, Ollama, llama.cpp, vLLM and OpenRouter make of it. It
// promises three things. What it encodes is a pure function of the entry and the dialect's name, so that any later
// version can make the same bytes again (P3). An answer is complete only when the stream's [DONE] came (F1). And the key
// goes to the configured host only, and into no log, error or route (M6).
//
// A [Provider] may be used from any goroutine; it holds no state of conversations.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"fermata/agent/model"
)

// DefaultIdleTimeout is how long a provider may be silent, before the response headers as well as within the stream.
const DefaultIdleTimeout = 120 * time.Second

// Options say which service a [Provider] talks to. BaseURL must be set; the rest has useful zero values.
type Options struct {
	Name    string // the provider's name in the config and in the log's route; "" means the kind
	Kind    string // what serves, which chooses the dialect: a key of kinds; "" means "openai-compatible"
	BaseURL string // what stands before "/chat/completions", e.g. "http://127.0.0.1:11434/v1"

	// Reasoning overrides the kind's field for reasoning: ReasoningContent, ReasoningPlain, or "none".
	Reasoning string

	// Key is asked for the API key before every request; nil, or a key that is "", sends no Authorization header. An
	// error ends the request with class Auth.
	Key func(ctx context.Context) (string, error)

	// Client sends the requests; nil means one of the provider's own, with the environment's proxies. Its CheckRedirect
	// is replaced: a redirect to another host is never followed.
	Client *http.Client

	// IdleTimeout is how long no byte may come, comments included, until the request fails as Idle; 0 means
	// DefaultIdleTimeout, negative means forever.
	IdleTimeout time.Duration
}

// kinds are the kinds of providers that this package speaks to, with the field in which each carries reasoning.
var kinds = map[string]string{
	"openai":            ReasoningNone,
	"openai-compatible": ReasoningNone, // strict servers refuse fields they do not know; Options.Reasoning says better
	"deepseek":          ReasoningContent,
	"llamacpp":          ReasoningContent,
	"vllm":              ReasoningContent,
	"ollama":            ReasoningPlain,
	"openrouter":        ReasoningPlain,
}

// Provider is one configured service.
type Provider struct {
	dialect dialect
	name    string
	url     string // of the completions
	shown   string // of the base, without user, password and query: for the log and for people
	key     func(ctx context.Context) (string, error)
	client  *http.Client
	idle    time.Duration
}

var _ model.Provider = (*Provider)(nil)

// New makes a provider. A base URL that is not http or https, a kind that is not known and a reasoning field that is not
// known are errors.
func New(o Options) (*Provider, error) {
	kind := o.Kind
	if kind == "" {
		kind = "openai-compatible"
	}
	field, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("chat: no kind of provider %q", kind)
	}
	switch o.Reasoning {
	case "":
	case "none":
		field = ReasoningNone
	case ReasoningContent, ReasoningPlain:
		field = o.Reasoning
	default:
		return nil, fmt.Errorf("chat: no reasoning field %q: it is %q, %q or \"none\"", o.Reasoning, ReasoningContent, ReasoningPlain)
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("chat: base_url of %s is not an http or https URL", cmpOr(o.Name, kind))
	}
	shown := url.URL{Scheme: base.Scheme, Host: base.Host, Path: strings.TrimRight(base.Path, "/")}
	p := &Provider{
		dialect: dialect{field, newest},
		name:    cmpOr(o.Name, kind),
		url:     base.JoinPath("chat", "completions").String(),
		shown:   shown.String(),
		key:     o.Key,
		client:  client(o.Client),
		idle:    o.IdleTimeout,
	}
	if p.idle == 0 {
		p.idle = DefaultIdleTimeout
	}
	return p, nil
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func client(given *http.Client) *http.Client {
	c := http.Client{}
	if given != nil {
		c = *given
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true // a compressed stream comes in blocks, not in deltas
		c.Transport = t
	}
	c.Timeout = 0 // an answer may take hours; silence is bounded by the idle timeout
	c.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		from := via[0].URL
		if len(via) > 3 || to.Method != http.MethodPost || to.URL.Host != from.Host || to.URL.Scheme != from.Scheme {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &c
}

// Dialect encodes what this provider is sent.
func (p *Provider) Dialect() model.Dialect { return p.dialect }

// Route is the name and the base URL without what could be secret in it.
func (p *Provider) Route() string { return p.name + " " + p.shown }

var errIdle = errors.New("idle")

// Stream implements [model.Provider]. What [DONE] was not seen after is no complete answer, also after a finish reason.
// A character that the provider did not complete is held back until it is certain: it is U+FFFD before End, and no part
// of a stream that broke.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		x := exchange{p: p, outer: ctx}
		x.ctx, x.cancel = context.WithCancelCause(ctx)
		defer x.cancel(context.Canceled) // closes the connection, unless the body was read to its end
		if err := x.run(r, func(d model.Delta) bool { return yield(d, nil) }); err != nil {
			yield(model.Delta{}, x.failure(err))
		}
	}
}

// exchange is one request and its response. It fails with its own context's cause or an [*model.Error].
type exchange struct {
	p      *Provider
	outer  context.Context // the caller's
	ctx    context.Context // ended by the caller's, the idle timeout or the end of the exchange
	cancel context.CancelCauseFunc
	key    string
}

// run returns nil after End and when yield gave false.
func (x *exchange) run(r model.Request, yield func(model.Delta) bool) error {
	resp, err := x.send(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return statusError(resp, x.p.shown, x.key)
	}
	if ct, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); ct != "text/event-stream" && ct != "" {
		return notAStream(resp, ct, x.p.shown, x.key)
	}
	if coding := encoded(resp); coding != "" {
		return &model.Error{Class: model.Malformed, Status: resp.StatusCode, Message: fmt.Sprintf(
			"%s answered with a stream in the encoding %s, which was not asked for: set base_url to an address behind no proxy that compresses", x.p.shown, coding)}
	}
	if !yield(model.Delta{Kind: model.Headers, Status: resp.StatusCode}) {
		return nil
	}
	body := &watched{src: resp.Body, x: x}
	events := model.NewEventReader(body)
	a := assembler{key: x.key, details: x.p.dialect.hasDetails()}
	for {
		ev, err := events.Next()
		switch {
		case err == io.EOF:
			return &model.Error{Class: model.Truncated, Status: resp.StatusCode, Message: "the stream ended before the answer was complete"}
		case err != nil:
			return err
		case len(ev.Data) == 0:
			continue
		case string(ev.Data) == "[DONE]":
			if a.finish == "error" { // OpenRouter's way to say that the model behind it failed
				return &model.Error{Class: model.Overloaded, Status: resp.StatusCode, Message: "the provider ended the answer with an error"}
			}
			if a.end(yield) {
				x.drain(body)
			}
			return nil
		}
		more, err := a.add(ev.Data, yield)
		if err != nil || !more {
			return err
		}
	}
}

// drain reads to the end of the body for a moment, so that the connection can serve the next request.
func (x *exchange) drain(body io.Reader) {
	t := time.AfterFunc(50*time.Millisecond, func() { x.cancel(context.Canceled) })
	defer t.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(body, 64<<10))
}

func (x *exchange) send(r model.Request) (*http.Response, error) {
	if x.p.key != nil {
		key, err := x.p.key(x.ctx)
		if err != nil {
			return nil, &model.Error{Class: model.Auth, Message: "no key for " + x.p.name + ": " + clean(err.Error(), ""), Err: err}
		}
		x.key = strings.TrimSpace(key)
		if strings.ContainsFunc(x.key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, &model.Error{Class: model.Auth, Message: "the key for " + x.p.name + " holds a space or a character that no key has: check where it comes from"}
		}
	}
	body, err := r.Body()
	if err != nil {
		return nil, &model.Error{Class: model.Rejected, Message: "the stored body of request " + string(r.ID) + " cannot be read: " + err.Error(), Err: err}
	}
	req, err := http.NewRequestWithContext(x.ctx, http.MethodPost, x.p.url, body)
	if err != nil {
		_ = body.Close()
		return nil, &model.Error{Class: model.Rejected, Err: err}
	}
	req.ContentLength = r.Bytes
	req.GetBody = r.Body
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "fermata")
	if x.key != "" {
		req.Header.Set("Authorization", "Bearer "+x.key)
	}
	defer x.watch()()
	return x.p.client.Do(req)
}

// watch fails the exchange as idle when the function it returns is not called within the idle timeout.
func (x *exchange) watch() (done func() bool) {
	if x.p.idle < 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(x.p.idle, func() { x.cancel(errIdle) }).Stop
}

// watched is a response body under the idle timeout. The timer runs only while a read waits: a slow consumer of deltas
// is not a silent provider.
type watched struct {
	src   io.Reader
	x     *exchange
	timer *time.Timer
}

func (w *watched) Read(b []byte) (int, error) {
	if w.x.p.idle >= 0 {
		if w.timer == nil {
			w.timer = time.AfterFunc(w.x.p.idle, func() { w.x.cancel(errIdle) })
		} else {
			w.timer.Reset(w.x.p.idle)
		}
		defer w.timer.Stop()
	}
	return w.src.Read(b)
}
