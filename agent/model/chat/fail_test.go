package chat_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fermata/agent/model"
	"fermata/agent/model/chat"
	"fermata/agent/model/rehearsal"
)

// guards F1, F2
func TestFailuresAreSortedByWhatMayHelp(t *testing.T) {
	for _, c := range []struct {
		name, scenario string
		class          model.Class
		status         int
		says           string
		after          time.Duration
		told           string // before it failed
	}{
		{name: "no terminal event", scenario: "reply\nsay Hello\ntruncate", class: model.Truncated, status: 200, says: "ended before", told: "text \"Hello\"\n"},
		{name: "no terminal event after a finish reason", scenario: `reply` + "\n" + `event {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\ntruncate", class: model.Truncated, status: 200, told: "text \"x\"\n"},
		{name: "no terminal event after half a call", scenario: "reply\ncutcall f {\"path\":\"x\"}\ntruncate", class: model.Truncated, status: 200},
		{name: "[DONE] without its empty line", scenario: "reply\nraw \"data: [DONE]\\n\"\ntruncate", class: model.Truncated, status: 200},
		{name: "an empty stream", scenario: "reply\ntruncate", class: model.Truncated, status: 200},
		{name: "the connection breaks", scenario: "reply\nsay Hello\ndrop", class: model.Connection, says: "broke within the answer", told: "text \"Hello\"\n"},
		{name: "the connection breaks before the headers", scenario: "reply\ndrop", class: model.Connection, says: "no connection to"},
		{name: "an error event", scenario: "reply\nsay Hel\nevent {\"error\":{\"message\":\"Server   overloaded\",\"type\":\"server_error\"}}", class: model.Overloaded, says: "Server overloaded", told: "text \"Hel\"\n"},
		{name: "an error event with a code", scenario: "reply\nevent {\"error\":{\"message\":\"Slow down\",\"code\":429}}", class: model.RateLimited, says: "Slow down"},
		{name: "an error event about the request", scenario: "reply\nevent {\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}", class: model.Rejected, says: "too long"},
		{name: "an error event that is a string", scenario: "reply\nevent {\"error\":\"it broke\"}", class: model.Overloaded, says: "it broke"},
		{name: "an error event of old vLLM", scenario: "reply\nevent {\"object\":\"error\",\"message\":\"bad\",\"code\":400}", class: model.Rejected, says: "bad"},
		{name: "an error event beside choices", scenario: "reply\nevent {\"error\":{\"code\":502,\"message\":\"upstream\"},\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}", class: model.Overloaded, says: "upstream"},
		{name: "an answer that finishes with an error", scenario: "reply\nsay x\nfinish error", class: model.Overloaded, status: 200, told: "text \"x\"\n"},
		{name: "HTML with status 200", scenario: "reply\nhtml <html><title>Sign in</title></html>", class: model.Malformed, status: 200, says: "base_url"},
		{name: "a stream that is compressed", scenario: "reply\nheader Content-Type: text/event-stream\nheader Content-Encoding: gzip\nbody \x1f\x8b", class: model.Malformed, status: 200, says: "in the encoding gzip, which was not asked for"},
		{name: "an error that is compressed", scenario: "reply\nstatus 400\nheader Content-Encoding: br\nbody \x1f\x8b", class: model.Rejected, status: 400, says: "Bad Request"},
		{name: "JSON with status 200", scenario: "reply\nheader Content-Type: application/json\nbody {\"object\":\"list\"}", class: model.Malformed, status: 200, says: "application/json"},
		{name: "a JSON error with status 200", scenario: "reply\nheader Content-Type: application/json\nbody {\"error\":{\"message\":\"no\",\"code\":\"invalid_model\"}}", class: model.Rejected, status: 200, says: "no"},
		{name: "an event that is not JSON", scenario: "reply\nevent {\"choices\":[", class: model.Malformed, says: "not a chat completion chunk"},
		{name: "a text that is no string", scenario: "reply\nevent {\"choices\":[{\"delta\":{\"content\":[1]}}]}", class: model.Malformed, says: "not a string"},
		{name: "arguments that are no string", scenario: "reply\nevent {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":7}}]}}]}", class: model.Malformed, says: "not a string"},
		{name: "401", scenario: "reply\nstatus 401\nbody {\"error\":{\"message\":\"Incorrect API key\"}}", class: model.Auth, status: 401, says: "Incorrect API key"},
		{name: "400", scenario: "reply\nstatus 400\nbody {\"error\":{\"message\":\"bad\\nrequest\\u0007\"}}", class: model.Rejected, status: 400, says: "bad request"},
		{name: "422 of FastAPI", scenario: "reply\nstatus 422\nbody {\"detail\":\"no such field\"}", class: model.Rejected, status: 422, says: "no such field"},
		{name: "404", scenario: "reply\nstatus 404\nbody not found", class: model.Rejected, status: 404, says: "check base_url"},
		{name: "429 with seconds", scenario: "reply\nstatus 429\nheader Retry-After: 7\nbody {\"error\":\"slow\"}", class: model.RateLimited, status: 429, says: "slow; it asks to wait 7s", after: 7 * time.Second},
		{name: "429 that has nothing to say", scenario: "reply\nstatus 429\nheader Retry-After: 3600", class: model.RateLimited, status: 429, says: "Too Many Requests; it asks to wait 1h0m0s", after: time.Hour},
		{name: "408", scenario: "reply\nstatus 408", class: model.Overloaded, status: 408, says: "Request Timeout"},
		{name: "503 in HTML", scenario: "reply\nstatus 503\nheader Retry-After: soon\nbody <html><style>b{}</style><h1>Down</h1><p>for&nbsp;now</html>", class: model.Overloaded, status: 503, says: "Down for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, chat.Options{}, c.scenario)
			told, err := told(t, t.Context(), p, request("{}"))
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %q, %v", told, err)
			}
			if e.Class != c.class || e.Status != c.status || !strings.Contains(e.Message, c.says) || e.RetryAfter != c.after || told != c.told {
				t.Errorf("got %q then %s, status %d, retry after %v: %s", told, e.Class, e.Status, e.RetryAfter, e.Message)
			}
		})
	}
}

func TestRetryAfterCanBeADate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	_, err := told(t, t.Context(), provider(t, chat.Options{BaseURL: server.URL}), request("{}"))
	var e *model.Error
	if !errors.As(err, &e) || e.RetryAfter < 59*time.Minute || e.RetryAfter > time.Hour {
		t.Errorf("got %v", err)
	}
}

const secret = "sk-very-secret-0123456789"

func withKey(o chat.Options) chat.Options {
	o.Key = func(context.Context) (string, error) { return secret + "\n", nil }
	return o
}

// holds says whether an error shows the key anywhere: in its text, or in a cause's.
func holds(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), secret[:12]) {
			return true
		}
	}
	return false
}

// guards M6
func TestTheKeyIsInNoErrorWhateverEchoesIt(t *testing.T) {
	long := strings.Repeat("x", 2040)
	for _, scenario := range []string{
		"reply\nstatus 401\nbody {\"error\":{\"message\":\"Incorrect API key " + secret + "\"}}",
		"reply\nstatus 401\nbody {\"error\":{\"message\":\"" + long + secret + "\"}}",
		"reply\nstatus 500\nbody <pre>Authorization: Bearer " + secret + "</pre>",
		"reply\nstatus 500\nbody " + strings.Repeat(" ", 64<<10-18) + secret,
		"reply\nstatus 307\nheader Location: http://other.invalid/" + secret + "\nbody x",
		"reply\nevent {\"error\":\"key " + secret + "\"}",
		"reply\nevent {" + strings.Repeat("x", 190) + secret,
		"reply\nevent {\"choices\":[{\"delta\":{\"content\":[\"" + strings.Repeat("x", 180) + secret + "\"]}}]}",
		"reply\nheader Content-Type: application/json\nbody {\"error\":\"key " + secret + "\"}",
		"reply\nheader Content-Type: text/" + secret + "\nbody x",
		"reply\nheader Transfer-Encoding: " + secret + "\nbody x",
	} {
		p, s := playServer(t, withKey(chat.Options{}), scenario)
		_, err := told(t, t.Context(), p, request("{}"))
		if err == nil || holds(err) {
			t.Errorf("%.60q: %v", scenario, err)
		}
		if got := s.Requests()[0].Header.Get("Authorization"); got != "Bearer "+secret {
			t.Errorf("the server was sent %q", got)
		}
	}
}

func TestTheRouteHoldsNoSecretOfTheAddress(t *testing.T) {
	p := provider(t, chat.Options{Name: "work", BaseURL: "https://user:" + secret + "@example.com:8443/v1/?key=" + secret})
	if got := p.Route(); got != "work https://example.com:8443/v1" {
		t.Errorf("got %s", got)
	}
}

// guards M6
func TestARedirectToAnotherHostIsNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host was sent %v", r.Header)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/v1/chat/completions", status)
		}))
		_, err := told(t, t.Context(), provider(t, withKey(chat.Options{BaseURL: server.URL})), request("{}"))
		server.Close()
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.Rejected || !strings.Contains(e.Message, other.URL) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// guards M2
func TestARedirectWithinTheHostSendsTheSameBytes(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, string(b)+r.Header.Get("Authorization"))
		if len(got) == 1 {
			http.Redirect(w, r, "/v1/chat/completions", http.StatusPermanentRedirect)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, done)
	}))
	defer server.Close()
	if _, err := told(t, t.Context(), provider(t, withKey(chat.Options{BaseURL: server.URL})), request("{ }")); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != "{ }Bearer "+secret || got[1] != got[0] {
		t.Errorf("got %q", got)
	}
}

// guards M6
func TestAKeyThatIsNoneEndsTheRequestWithoutShowingIt(t *testing.T) {
	p, s := playServer(t, chat.Options{Key: func(context.Context) (string, error) { return secret + "\nX-Evil: 1", nil }}, "reply\nsay x")
	_, err := told(t, t.Context(), p, request("{}"))
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Auth || holds(err) || len(s.Requests()) > 0 {
		t.Errorf("got %v after %d requests", err, len(s.Requests()))
	}
}

func TestAKeyThatCannotBeHadEndsTheRequestBeforeItIsSent(t *testing.T) {
	p, s := playServer(t, chat.Options{Key: func(context.Context) (string, error) { return "", errors.New("the keyring is locked") }}, "reply\nsay x")
	_, err := told(t, t.Context(), p, request("{}"))
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Auth || !strings.Contains(e.Message, "keyring is locked") || len(s.Requests()) > 0 {
		t.Errorf("got %v after %d requests", err, len(s.Requests()))
	}
}

func TestARefusedConnectionSaysWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = told(t, t.Context(), provider(t, withKey(chat.Options{BaseURL: "http://" + address + "/v1"})), request("{}"))
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Connection || !strings.Contains(e.Message, address+"/v1: start the server") {
		t.Errorf("got %v", err)
	}

	// What does not answer can be a proxy: the address is not to blame then.
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", User: url.UserPassword("me", secret), Host: address})}}
	for _, base := range []string{"http://models.invalid/v1", "https://models.invalid/v1"} {
		_, err = told(t, t.Context(), provider(t, chat.Options{BaseURL: base, Client: client}), request("{}"))
		if !errors.As(err, &e) || e.Class != model.Connection || !strings.Contains(e.Message, "the proxy on the way to "+base+" cannot be reached: check HTTPS_PROXY") || holds(err) {
			t.Errorf("got %v", err)
		}
	}
}

// inProcess plays a scenario without a network, so that time can be the test's.
func inProcess(t *testing.T, o chat.Options, scenario string) *chat.Provider {
	t.Helper()
	sc, err := rehearsal.Parse(scenario)
	if err != nil {
		t.Fatal(err)
	}
	o.BaseURL = "http://scenario.invalid/v1"
	o.Client = &http.Client{Transport: rehearsal.Transport(rehearsal.NewServer(sc))}
	return provider(t, o)
}

// guards F1
func TestASilentProviderIsIdleAfterTheTimeout(t *testing.T) {
	for _, c := range []struct {
		scenario string
		after    time.Duration
		idle     bool
	}{
		{"reply\nheaders hang", 120 * time.Second, true},
		{"reply\nheaders 119s\nsay x", 119 * time.Second, false},
		{"reply\nsay x\nwait 100s\nsay y\nhang", 220 * time.Second, true},
		{"reply\nwait 100s\ncomment ping\nwait 100s\nsay x", 200 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := told(t, t.Context(), inProcess(t, chat.Options{}, c.scenario), request("{}"))
			var e *model.Error
			if errors.As(err, &e); c.idle != (e != nil && e.Class == model.Idle) || !c.idle && err != nil {
				t.Errorf("%q: %v", c.scenario, err)
			}
			if took := time.Since(began); took != c.after {
				t.Errorf("%q: after %v", c.scenario, took)
			}
		})
	}
}

func TestASlowConsumerIsNoSilentProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inProcess(t, chat.Options{}, "reply\nwords 3")
		n := 0
		for d, err := range p.Stream(t.Context(), request("{}")) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind == model.Text {
				n++
				<-time.After(time.Hour) // the test's time, not real
			}
		}
		if n != 3 {
			t.Errorf("%d deltas", n)
		}
	})
}
