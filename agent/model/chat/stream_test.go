package chat_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fermata/agent/model"
	"fermata/agent/model/chat"
	"fermata/agent/model/rehearsal"
	"fermata/transcript"
)

// request makes a request whose body can be read again for each connection.
func request(body string) model.Request {
	return model.Request{
		ID:    "r_1",
		Body:  func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
		Bytes: int64(len(body)),
	}
}

func provider(t *testing.T, o chat.Options) *chat.Provider {
	t.Helper()
	p, err := chat.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told writes deltas and parts, one a line. Pieces of calls are counted with the part, not listed.
func told(t *testing.T, ctx context.Context, p model.Provider, r model.Request) (string, error) {
	t.Helper()
	var b strings.Builder
	said := map[model.DeltaKind]string{}
	for d, err := range p.Stream(ctx, r) {
		if err != nil {
			return b.String(), err
		}
		switch d.Kind {
		case model.Headers:
			if d.Status != 200 {
				t.Errorf("headers with status %d", d.Status)
			}
		case model.Text, model.Reasoning:
			if d.Text == "" {
				t.Error("an empty delta")
			}
			said[d.Kind] += d.Text
			fmt.Fprintf(&b, "%s %q\n", map[model.DeltaKind]string{model.Text: "text", model.Reasoning: "reasoning"}[d.Kind], d.Text)
		case model.End:
			a := &transcript.Answer{Parts: d.Parts}
			if a.Text() != said[model.Text] || a.Reasoning() != said[model.Reasoning] {
				t.Errorf("P1: the parts hold %q and %q, the deltas said %q and %q", a.Text(), a.Reasoning(), said[model.Text], said[model.Reasoning])
			}
			for _, part := range d.Parts {
				if part.Call != nil {
					fmt.Fprintf(&b, "call %s %s %q", part.Call.ID, part.Call.Name, part.Call.Args)
					if part.Extra != nil {
						fmt.Fprintf(&b, " %s", part.Extra)
					}
					b.WriteString("\n")
				}
			}
			fmt.Fprintf(&b, "end %s", d.Finish)
			if d.Usage != nil {
				fmt.Fprintf(&b, " %+v", *d.Usage)
			}
			b.WriteString("\n")
		}
	}
	return b.String(), nil
}

func chunk(delta string) string {
	return `data: {"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
}

func finish(reason string) string {
	return `data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n"
}

const done = "data: [DONE]\n\n"

var streams = []struct{ name, in, want string }{
	{"a plain answer",
		chunk(`{"role":"assistant","content":""}`) + chunk(`{"content":"Hello"}`) + chunk(`{"content":", world"}`) + finish("stop") + done,
		"text \"Hello\"\ntext \", world\"\nend stop\n"},
	{"lines end in CRLF",
		strings.ReplaceAll(chunk(`{"content":"Hi"}`)+finish("stop")+done, "\n", "\r\n"),
		"text \"Hi\"\nend stop\n"},
	{"comments keep the connection alive",
		": OPENROUTER PROCESSING\n\n" + chunk(`{"content":"Hi"}`) + ": ping\n" + finish("stop") + done,
		"text \"Hi\"\nend stop\n"},
	{"an event in several data lines",
		"data: {\"choices\":[\ndata: {\"delta\":{\"content\":\"Hi\"}}\ndata: ]}\n\n" + done,
		"text \"Hi\"\nend \n"},
	{"reasoning in either field",
		chunk(`{"reasoning_content":"Hm"}`) + chunk(`{"reasoning":", so"}`) + chunk(`{"content":"Yes","reasoning_content":null}`) + finish("stop") + done,
		"reasoning \"Hm\"\nreasoning \", so\"\ntext \"Yes\"\nend stop\n"},
	{"reasoning in both fields is said once",
		chunk(`{"reasoning_content":"Hm","reasoning":"Hm"}`) + done, "reasoning \"Hm\"\nend \n"},
	{"a surrogate pair over two deltas",
		chunk(`{"content":"a\ud83d"}`) + chunk(`{"content":"\ude00b"}`) + done,
		"text \"a\"\ntext \"😀b\"\nend \n"},
	{"a surrogate pair with reasoning between its halves",
		chunk(`{"content":"\ud83d"}`) + chunk(`{"reasoning_content":"r"}`) + chunk(`{"content":"\uDE00"}`) + done,
		"reasoning \"r\"\ntext \"😀\"\nend \n"},
	{"UTF-8 bytes over three deltas",
		chunk("{\"content\":\"\xe2\"}") + chunk("{\"content\":\"\x82\"}") + chunk("{\"content\":\"\xac!\"}") + done,
		"text \"€!\"\nend \n"},
	{"half a character that nothing completes",
		chunk(`{"content":"a\ud83d"}`) + chunk(`{"content":"b"}`) + chunk("{\"content\":\"\xe2\x82\"}") + finish("stop") + done,
		"text \"a\"\ntext \"�b\"\ntext \"�\"\nend stop\n"},
	{"a surrogate pair in the arguments of interleaved calls",
		chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"\"\ud83d"}},{"index":1,"id":"b","function":{"name":"y","arguments":"\"\ud83d"}}]}`) +
			chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"\ude01\""}},{"index":0,"function":{"arguments":"\ude00\""}}]}`) + finish("tool_calls") + done,
		"call a x \"\\\"😀\\\"\"\ncall b y \"\\\"😁\\\"\"\nend tool_calls\n"},
	{"a call in pieces, its name too",
		chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read_","arguments":""}}]}`) +
			chunk(`{"tool_calls":[{"index":0,"function":{"name":"file","arguments":"{\"pa"}}]}`) +
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"th\":1}"}}]}`) + finish("tool_calls") + done,
		"call c1 read_file \"{\\\"path\\\":1}\"\nend tool_calls\n"},
	{"a name repeated with every piece",
		chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{"}}]}`) +
			chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"}"}}]}`) + done,
		"call c1 f \"{}\"\nend \n"},
	{"whole calls without index",
		chunk(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}`) + done,
		"call a f \"{}\"\ncall b g \"{}\"\nend \n"},
	{"whole calls that all have index 0",
		chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`) +
			chunk(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}`) + done,
		"call a f \"{}\"\ncall b f \"{}\"\nend \n"},
	{"calls without ids, and with an id that is taken",
		chunk(`{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}},{"id":"call_1","function":{"name":"g","arguments":"{}"}},{"id":"call_1","function":{"name":"h","arguments":"{}"}}]}`) + done,
		"call call_2 f \"{}\"\ncall call_3 f \"{}\"\ncall call_1 g \"{}\"\ncall call_4 h \"{}\"\nend \n"},
	{"arguments that are an object",
		chunk(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`) + done,
		"call a f \"{\\\"x\\\":1}\"\nend \n"},
	{"arguments empty, null, cut and malformed are kept as they came",
		chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"f","arguments":null}},{"index":2,"id":"c","function":{"name":"f","arguments":"{\"x\":"}},{"index":3,"id":"d","function":{"name":"no_such_tool","arguments":"not JSON"}}]}`) + finish("length") + done,
		"call a f \"\"\ncall b f \"\"\ncall c f \"{\\\"x\\\":\"\ncall d no_such_tool \"not JSON\"\nend length\n"},
	{"the thought signature of a call",
		chunk(`{"tool_calls":[{"index":0,"id":"a","extra_content":{"google": {"thought_signature":"A/<b>=="}},"function":{"name":"f","arguments":"{}"}}]}`) + done,
		"call a f \"{}\" {\"google\":{\"thought_signature\":\"A/<b>==\"}}\nend \n"},
	{"text, a call, and text again",
		chunk(`{"content":"I look."}`) + chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`) + chunk(`{"content":"Done."}`) + done,
		"text \"I look.\"\ntext \"Done.\"\ncall a f \"{}\"\nend \n"},
	{"a refusal is text", chunk(`{"content":null,"refusal":"No."}`) + finish("stop") + done, "text \"No.\"\nend stop\n"},
	{"usage in the last chunk",
		chunk(`{"content":"x"}`) + finish("stop") + `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3}}}` + "\n\n" + done,
		"text \"x\"\nend stop {Input:9 Cached:8 Output:4 Reasoning:3}\n"},
	{"usage as DeepSeek counts, and null before",
		`data: {"choices":[{"delta":{"content":"x"}}],"usage":null}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_cache_hit_tokens":7,"prompt_tokens_details":null}}` + "\n\n" + done,
		"text \"x\"\nend  {Input:9 Cached:7 Output:4 Reasoning:0}\n"},
	{"other choices are not ours", `data: {"choices":[{"index":1,"delta":{"content":"no"}}]}` + "\n\n" + done, "end \n"},
	{"what comes after [DONE] is not read", chunk(`{"content":"x"}`) + done + "data: {not JSON\n\n", "text \"x\"\nend \n"},
}

// guards F1, P1, T1
func TestAStreamMeansTheSameHoweverItIsSplit(t *testing.T) {
	for _, s := range streams {
		t.Run(s.name, func(t *testing.T) {
			for _, size := range []int{1, 7, 1 << 20} {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
					for at := 0; at < len(s.in); at += size {
						_, _ = io.WriteString(w, s.in[at:min(at+size, len(s.in))])
						w.(http.Flusher).Flush()
					}
				}))
				got, err := told(t, t.Context(), provider(t, chat.Options{BaseURL: server.URL}), request("{}"))
				server.Close()
				if err != nil || got != s.want {
					t.Errorf("in pieces of %d: got\n%s%v\nwant\n%s", size, got, err, s.want)
				}
			}
		})
	}
}

func TestALineOfFiveMegabytesIsOneDelta(t *testing.T) {
	long := strings.Repeat("long ", 1<<20)
	p := play(t, chat.Options{}, "reply\nsize 100000000\nsay "+long+"x")
	var got string
	for d, err := range p.Stream(t.Context(), request("{}")) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind == model.Text {
			got = d.Text
		}
	}
	if got != long+"x" {
		t.Errorf("got %d bytes", len(got))
	}
}

// play starts a scenario and a provider for it.
func play(t *testing.T, o chat.Options, scenario string) *chat.Provider {
	p, _ := playServer(t, o, scenario)
	return p
}

func playServer(t *testing.T, o chat.Options, scenario string) (*chat.Provider, *rehearsal.Server) {
	t.Helper()
	s, err := rehearsal.Start(scenario)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	o.BaseURL = s.URL
	return provider(t, o), s
}

// guards M2: what leaves are the stored bytes
func TestTheBodyLeavesByteForByte(t *testing.T) {
	p, s := playServer(t, chat.Options{}, "reply\nsay hi")
	body := "{\"messages\" : [\"<&>\u2028\"] }\n"
	if _, err := told(t, t.Context(), p, request(body)); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if string(got.Body) != body || got.Path != "/v1/chat/completions" || got.Header.Get("Accept") != "text/event-stream" {
		t.Errorf("got %q at %s with %v", got.Body, got.Path, got.Header)
	}
	if got.Header.Get("Authorization") != "" || got.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
		t.Errorf("headers %v", got.Header)
	}
}

// guards S3, S12: a stop closes the connection, also before the response headers and while the model is silent
func TestCancellingClosesTheConnectionAtOnce(t *testing.T) {
	stopped := errors.New("stopped by the user")
	for _, scenario := range []string{"reply\nheaders hang", "reply\nsay Hello\nhang", "reply\nthink Hm\nhang"} {
		p, s := playServer(t, chat.Options{}, scenario)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if strings.Contains(scenario, "headers") {
			go func() { // ends when the request is there
				_, err := s.Await(t.Context(), 1)
				cancel(errors.Join(err, stopped))
			}()
		}
		var last error
		for d, err := range p.Stream(ctx, request("{}")) {
			if last = err; d.Kind == model.Text || d.Kind == model.Reasoning {
				cancel(stopped)
			}
		}
		if !errors.Is(last, stopped) {
			t.Errorf("%q: the stream ended with %v, not the cause", scenario, last)
		}
		<-s.Requests()[0].Closed()
	}
}

// guards S3
func TestCancellingReachesAServerOverHTTP2(t *testing.T) {
	came, gone := make(chan string, 1), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- r.Proto
		<-r.Context().Done()
		close(gone)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	p := provider(t, chat.Options{BaseURL: server.URL, Client: server.Client()})
	go func() { // ends when it is cancelled
		_, err := told(t, ctx, p, request("{}"))
		ended <- err
	}()
	if proto := <-came; proto != "HTTP/2.0" {
		t.Errorf("it came over %s", proto)
	}
	cancel()
	<-gone
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestBreakingOffTheLoopClosesTheConnection(t *testing.T) {
	p, s := playServer(t, chat.Options{}, "reply\nsay Hello\nhang")
	for d := range p.Stream(t.Context(), request("{}")) {
		if d.Kind == model.Text {
			break
		}
	}
	<-s.Requests()[0].Closed()
}

func TestAFinishedAnswerLeavesTheConnectionForTheNext(t *testing.T) {
	remote := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote <- r.RemoteAddr
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, done)
	}))
	defer server.Close()
	p := provider(t, chat.Options{BaseURL: server.URL})
	for range 2 {
		if _, err := told(t, t.Context(), p, request("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := <-remote, <-remote; a != b {
		t.Errorf("two connections: %s and %s", a, b)
	}
}

func BenchmarkDelta(b *testing.B) {
	word := []byte(`data: {"id":"chatcmpl-9x8y7z","object":"chat.completion.chunk","created":1769000000,"model":"deepseek-chat","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	stream := append(bytes.Repeat(word, b.N), done...)
	p, err := chat.New(chat.Options{BaseURL: "http://x.invalid", Client: &http.Client{Transport: canned(stream)}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, err := range p.Stream(b.Context(), request("{}")) {
		if err != nil {
			b.Fatal(err)
		}
	}
}

type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c)), Request: r}, nil
}
