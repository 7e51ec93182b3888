// Package rehearsal is the model that is there when no other is: a server of chat completions that runs inside the
// process, without network and without key. It is no AI and says so. What it answers is a pure function of the request's
// body and the seed: it plans by simple rules on the user's last message, calls the tools that the request offers, and
// tells what came back. It exists so that stopping and redirecting can be tried, and so that everything above
// [model.Provider] runs over the very encoder and reader that real providers get.
//
// The package also has the scripted models of tests and benchmarks: see [Scenario] and [Server].
//
// Handlers may serve any number of requests at once. They end as soon as their client is gone.
package rehearsal

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"fermata/agent/model"
	"fermata/agent/model/chat"
	"fermata/transcript"
)

// DefaultRate is the pace of a person who talks briskly, in words per second.
const DefaultRate = 25

// Options say how it speaks. The zero value speaks at DefaultRate.
type Options struct {
	Rate float64 // words per second; 0 means DefaultRate, negative means as fast as possible
	Seed uint64  // chooses among phrasings; equal seeds give equal answers
}

// BaseURL is where [Provider] seems to be. The name is reserved (RFC 2606): nothing is ever sent there.
const BaseURL = "http://rehearsal.invalid/v1"

// Provider is the built-in model. It speaks the dialect "chat-reasoning_content/3".
func Provider(o Options) (model.Provider, error) {
	return chat.New(chat.Options{
		Name:      "rehearsal",
		BaseURL:   BaseURL,
		Reasoning: chat.ReasoningContent,
		Client:    &http.Client{Transport: Transport(New(o))},
	})
}

// New returns the model as a server: POST …/chat/completions and GET …/models.
func New(o Options) http.Handler {
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, o) })
}

func serve(w http.ResponseWriter, r *http.Request, o Options) {
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"rehearsal","object":"model","owned_by":"fermata"}]}`)
		return
	case r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions"):
		refuse(w, http.StatusNotFound, "the rehearsal model serves POST /v1/chat/completions")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	q, err := readRequest(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	a := plan(q, o.Seed)
	s := newStream(r.Context(), w, o.Rate)
	s.head(http.StatusOK, "text/event-stream")
	s.text("reasoning_content", a.reasoning)
	s.text("content", a.text)
	words := len(strings.Fields(a.reasoning)) + len(strings.Fields(a.text))
	for i, c := range a.calls {
		s.call(i, fmt.Sprintf("call_%d_%d", q.steps, i+1), c.tool, c.args)
		words += len(strings.Fields(c.args)) + 1
	}
	s.end(finishOf(a), &transcript.Usage{
		Input:     int64(q.words),
		Cached:    int64(q.cached),
		Output:    int64(words),
		Reasoning: int64(len(strings.Fields(a.reasoning))),
	})
}

func finishOf(a answer) string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error"}})
	_, _ = w.Write(b)
}

// epoch anchors [Stamp]: the wall clock at the start of the process, advanced by the monotonic clock.
var epoch = time.Now()

// Stamp is now in nanoseconds since 1970, never going backwards within a process. It is comparable between the processes
// of one machine as far as its wall clock was not set meanwhile.
func Stamp() int64 { return epoch.UnixNano() + int64(time.Since(epoch)) }
