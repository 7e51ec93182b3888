package chat

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"fermata/agent/model"
)

// maxMessage bounds a provider's words in an error, in bytes; maxBody what is read of a response to find them.
const (
	maxMessage = 2 << 10
	maxBody    = 64 << 10
)

// failure makes what Stream yields of any error below: the caller's cause, or an [*model.Error] without the key in any
// of its texts.
func (x *exchange) failure(err error) error {
	if x.outer.Err() != nil {
		return context.Cause(x.outer)
	}
	if context.Cause(x.ctx) == errIdle {
		return &model.Error{Class: model.Idle, Message: fmt.Sprintf("%s sent nothing for %v", x.p.shown, x.p.idle), Err: errIdle}
	}
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		e = connectionError(err, x.p.shown)
	}
	e.Message = clean(scrub(e.Message, x.key), "")
	if e.Err != nil && scrub(e.Err.Error(), x.key) != e.Err.Error() {
		e.Err = errors.New(scrub(e.Err.Error(), x.key)) // the cause's text holds the key: keep its words only
	}
	return e
}

// connectionError says what to do about a request that got no response, or a response that broke off.
func connectionError(err error, shown string) *model.Error {
	e := &model.Error{Class: model.Connection, Err: err}
	_, isDNS := errors.AsType[*net.DNSError](err)
	_, isCert := errors.AsType[*tls.CertificateVerificationError](err)
	urlErr, isURL := errors.AsType[*url.Error](err) // only before the response
	op, _ := errors.AsType[*net.OpError](err)
	switch {
	case op != nil && op.Op == "proxyconnect": // net/http's word for it
		e.Message = "the proxy on the way to " + shown + " cannot be reached: check HTTPS_PROXY, HTTP_PROXY and NO_PROXY: " + op.Err.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = "nothing answers at " + shown + ": start the server, or check base_url"
	case isDNS:
		e.Message = "the host of " + shown + " cannot be found: check base_url and the network"
	case isCert:
		e.Message = "the certificate of " + shown + " is not trusted: check base_url and the system's certificates: " + err.Error()
	case isURL:
		e.Err = urlErr.Err // without the URL: its query could be secret
		e.Message = "no connection to " + shown + ": " + urlErr.Err.Error()
	default:
		e.Message = "the connection to " + shown + " broke within the answer: " + err.Error()
	}
	return e
}

// statusError makes the error of a response whose status is not 200.
func statusError(resp *http.Response, shown, key string) *model.Error {
	e := &model.Error{Class: classOf(resp.StatusCode), Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header, time.Now())}
	if encoded(resp) == "" {
		e.Message = message(readSome(resp.Body, key), key)
	}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		to := "nowhere"
		if u, err := resp.Location(); err == nil {
			to = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
		}
		e.Message = shown + " redirects to " + to + ", which is not followed: set base_url to the address that answers"
	case resp.StatusCode == http.StatusNotFound:
		e.Message = strings.TrimSpace(e.Message + " (check base_url " + shown + " and the model's name)")
	case e.Message == "":
		e.Message = http.StatusText(resp.StatusCode)
	}
	if e.RetryAfter > 0 { // a long one is why it is not tried again
		e.Message += fmt.Sprintf("; it asks to wait %v", max(e.RetryAfter, time.Second).Round(time.Second))
	}
	return e
}

// encoded is how a body is compressed; "" for not at all, which is what every request asks for.
func encoded(resp *http.Response) string {
	if coding := resp.Header.Get("Content-Encoding"); !strings.EqualFold(coding, "identity") {
		return coding
	}
	return ""
}

func classOf(status int) model.Class {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return model.Auth
	case status == http.StatusTooManyRequests:
		return model.RateLimited
	case status == http.StatusRequestTimeout || status >= 500:
		return model.Overloaded
	case status >= 300:
		return model.Rejected
	}
	return model.Malformed // 1xx and 2xx are no answer to a completion
}

// notAStream makes the error of a 200 that is no event stream.
func notAStream(resp *http.Response, contentType, shown, key string) *model.Error {
	body := readSome(resp.Body, key)
	if contentType == "application/json" {
		var c chunk
		if json.Unmarshal(body, &c) == nil && (isSet(c.Error) || c.Object == "error") {
			e := eventError(body, c.Error, key)
			e.Status = resp.StatusCode
			return e
		}
	}
	return &model.Error{Class: model.Malformed, Status: resp.StatusCode, Message: fmt.Sprintf(
		"%s answered with %s instead of an event stream: check that base_url is the API's address (it often ends in /v1)", shown, contentType)}
}

// eventError makes the error of an error event: {"error": {"message", "code", "type"}}, {"error": "text"}, or old vLLM's
// {"object": "error", "message", "code"}.
func eventError(data, inner json.RawMessage, key string) *model.Error {
	body := struct {
		Code json.RawMessage `json:"code"`
		Type string          `json:"type"`
	}{}
	if isSet(inner) {
		_ = json.Unmarshal(inner, &body) // a bare string has neither
	} else {
		_ = json.Unmarshal(data, &body)
	}
	e := &model.Error{Class: model.Overloaded, Message: message(data, key)}
	code := strings.Trim(string(body.Code), `"`)
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		e.Class = classOf(n)
		return e
	}
	for _, word := range []string{code, body.Type} {
		switch {
		case strings.HasPrefix(word, "rate_limit"):
			e.Class = model.RateLimited
		case strings.Contains(word, "api_key"), strings.HasPrefix(word, "authentication"), strings.HasPrefix(word, "permission"):
			e.Class = model.Auth
		case strings.HasPrefix(word, "invalid_"), strings.HasPrefix(word, "context_length"), strings.HasPrefix(word, "content_"),
			strings.HasPrefix(word, "model_not_found"), strings.HasPrefix(word, "exceed_context"), strings.HasPrefix(word, "insufficient_quota"),
			strings.HasPrefix(word, "BadRequest"):
			e.Class = model.Rejected
		default:
			continue
		}
		break
	}
	return e
}

// message finds a provider's words in a response body: the message of a JSON error, or its text without mark-up.
func message(body []byte, key string) string {
	var in struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"` // FastAPI
	}
	if json.Unmarshal(body, &in) != nil {
		return clean(plain(string(body)), key)
	}
	var inner struct {
		Message string `json:"message"`
	}
	var text string
	switch {
	case json.Unmarshal(in.Error, &text) == nil && text != "":
		return clean(text, key)
	case json.Unmarshal(in.Error, &inner) == nil && inner.Message != "":
		return clean(inner.Message, key)
	case in.Message != "":
		return clean(in.Message, key)
	case json.Unmarshal(in.Detail, &text) == nil && text != "":
		return clean(text, key)
	}
	return clean(string(body), key)
}

// plain drops the tags of HTML, roughly: it is read by people, never by a browser.
func plain(s string) string {
	if !strings.HasPrefix(strings.TrimSpace(s), "<") {
		return s
	}
	var b strings.Builder
	for s != "" {
		before, rest, found := strings.Cut(s, "<")
		b.WriteString(before)
		b.WriteString(" ")
		if !found {
			break
		}
		for _, hidden := range []string{"style", "script"} {
			if strings.HasPrefix(strings.ToLower(rest), hidden) {
				if i := strings.Index(strings.ToLower(rest), "</"+hidden); i >= 0 {
					rest = rest[i:]
				}
			}
		}
		_, s, _ = strings.Cut(rest, ">")
	}
	return b.String()
}

// clean takes the key, control characters and runs of white space out of a text and bounds it to maxMessage. The key goes
// first: a bound could leave half of it.
func clean(s, key string) string {
	s = scrub(s, key)
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage-len("…")], "") + "…"
	}
	return s
}

// scrub replaces the key wherever a server, a proxy or an error below repeats it. Words of up to three letters are no key.
func scrub(s, key string) string {
	if len(key) < 4 {
		return s
	}
	s = strings.ReplaceAll(s, key, "[key]")
	return strings.ReplaceAll(s, url.QueryEscape(key), "[key]")
}

func excerpt(data []byte, key string) string {
	const most = 200
	s := scrub(string(data[:min(len(data), maxBody)]), key)
	if len(s) > most {
		s = s[:most] + "…"
	}
	return clean(s, "")
}

// readSome reads a response body for its message, without the key; it can break off, then what came is enough.
func readSome(r io.Reader, key string) []byte {
	b, _ := io.ReadAll(io.LimitReader(r, maxBody))
	s := scrub(string(b), key)
	if len(b) == maxBody {
		s = s[:max(0, len(s)-len(key))] // the bound could have left the first half of one
	}
	return []byte(s)
}

// retryAfter reads Retry-After: seconds or a date (RFC 9110, 10.2.3). 0 when it is absent, past or neither.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if secs, err := strconv.ParseFloat(v, 64); err == nil && secs > 0 && secs < 1e6 {
		return time.Duration(secs * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
