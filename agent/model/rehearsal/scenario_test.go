package rehearsal_test

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fermata/agent/model/rehearsal"
)

func start(t *testing.T, scenario string) *rehearsal.Server {
	t.Helper()
	s, err := rehearsal.Start(scenario)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// post gets a whole response; the error is the body's.
func post(t *testing.T, client *http.Client, url, body string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func ask(words string) string {
	return `{"stream":true,"messages":[{"role":"user","content":"` + words + `"}]}`
}

var content = regexp.MustCompile(`"(?:content|reasoning_content)":"([^"]*)"`)

func contents(stream string) string {
	var out []string
	for _, m := range content.FindAllStringSubmatch(stream, -1) {
		out = append(out, m[1])
	}
	return strings.Join(out, "|")
}

func TestRepliesAreTakenInOrderOrByTheUsersWords(t *testing.T) {
	for _, c := range []struct{ name, scenario, asked, want string }{
		{"the last repeats", "reply\nsay one\nreply\nsay two", "a b c", "one two two"},
		{"a loop begins again", "loop\nreply\nsay one\nreply\nsay two", "a b c", "one two one"},
		{"a match waits for its words", "reply \"x y\"\nsay matched\nreply\nsay any", "a x_y x_y", "any matched matched"},
		{"comments and indentation mean nothing", "# a comment\n\n  reply\n\n\t say one\n", "a", "one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, c.scenario)
			var got []string
			for words := range strings.FieldsSeq(c.asked) {
				_, b, err := post(t, http.DefaultClient, s.URL, ask(strings.ReplaceAll(words, "_", " ")))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, contents(b))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestStepsAreWhatTheClientGets(t *testing.T) {
	for _, c := range []struct{ name, steps, want string }{
		{"words are deltas", "say Hello you  there", "Hello |you  |there"},
		{"size cuts at whole characters", "size 2\nsay a€bc", "a€|bc"},
		{"numbered words go on", "musing 1\nwords 2\nwords 1", "m1 |w2 |w3 |w4 "},
		{"quotes are Go strings", `say "a\tb "`, `a\t|b `},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, b, err := post(t, http.DefaultClient, start(t, "reply\n"+c.steps).URL, ask("x"))
			if got := contents(b); err != nil || got != c.want || !strings.HasSuffix(b, "data: [DONE]\n\n") {
				t.Errorf("got %q, %v in %s", got, err, b)
			}
		})
	}
}

func TestAReplyCanBeAnythingThatServersDo(t *testing.T) {
	for _, c := range []struct {
		name, steps string
		status      int
		header      string // "Name: value" that must be there
		body        string // that must be in it
		broken      bool
	}{
		{name: "a status with header and body", steps: "status 429\nheader Retry-After: 3\nbody {\"error\":\"slow\"}", status: 429, header: "Retry-After: 3", body: `{"error":"slow"}`},
		{name: "HTML", steps: "html <p>hi", status: 200, header: "Content-Type: text/html; charset=utf-8", body: "<p>hi"},
		{name: "an error event and a comment", steps: "comment hm\nevent {\"error\":{}}", status: 200, body: ": hm\n\ndata: {\"error\":{}}\n\n"},
		{name: "raw bytes", steps: `raw "data: \xe2\r\n\r\n"`, status: 200, body: "data: \xe2\r\n\r\n"},
		{name: "a call with an id of its own", steps: `call id=x f {"a":1}`, status: 200, body: `"id":"x","type":"function","function":{"name":"f"`},
		{name: "a call ends with its reason", steps: `call f {}`, status: 200, body: `"finish_reason":"tool_calls"`},
		{name: "half a call", steps: "cutcall f 1234\ntruncate", status: 200, body: `"arguments":"12"`},
		{name: "usage", steps: "usage 1 2 3 4", status: 200, body: `"prompt_tokens":1,"completion_tokens":3,"total_tokens":4,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":4}`},
		{name: "a broken connection", steps: "say x\ndrop", status: 200, body: `"x"`, broken: true},
		{name: "a reason of its own", steps: "finish length", status: 200, body: `"finish_reason":"length"`},
	} {
		inside, err := rehearsal.Parse("reply\n" + c.steps)
		if err != nil {
			t.Fatal(err)
		}
		for how, client := range map[string]*http.Client{
			"over HTTP":          http.DefaultClient,
			"inside the process": {Transport: rehearsal.Transport(rehearsal.NewServer(inside))},
		} {
			t.Run(c.name+" "+how, func(t *testing.T) {
				resp, b, err := post(t, client, start(t, "reply\n"+c.steps).URL, ask("x"))
				if c.broken != errors.Is(err, io.ErrUnexpectedEOF) || !c.broken && err != nil {
					t.Fatal(err)
				}
				name, value, _ := strings.Cut(c.header, ": ")
				if resp.StatusCode != c.status || !strings.Contains(b, c.body) || resp.Header.Get(name) != value {
					t.Errorf("%d %v\n%s", resp.StatusCode, resp.Header, b)
				}
			})
		}
	}
}

func TestAMistakeInAScenarioIsNamedByItsLine(t *testing.T) {
	for text, says := range map[string]string{
		"":                          "no reply",
		"say x":                     "line 1: say before the first reply",
		"reply\n\nsings x":          `line 3: no step "sings"`,
		"reply\nwait long":          "line 2: ",
		"reply\nwords many":         "line 2: ",
		"reply\nstatus 7":           "line 2: 7 is out of range",
		"reply\nsay \"open":         "is not a Go string",
		"reply\ncall":               "call without a name",
		"reply\nheader X":           "NAME: VALUE",
		"reply\nusage":              "usage is IN",
		"reply\nusage 1 two":        "not a number",
		"reply \"x\nsay y":          "line 1: ",
		"reply\nrate fast\nsay yes": "line 2: ",
	} {
		if _, err := rehearsal.Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

func TestAServerRecordsBodiesAndWhenTheClientLeft(t *testing.T) {
	s := start(t, "reply\nsay x\nreply\nsay y\nhang")
	body := ask("exactly \u2028 this") + "\n"
	if _, _, err := post(t, http.DefaultClient, s.URL, body); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := s.Await(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	<-second.Closed()
	<-second.Ended()
	if second.ClosedAt().Before(before) || string(second.Body) != body || second.N != 2 {
		t.Errorf("%+v", second)
	}
	first := s.Requests()[0]
	<-first.Ended()
	select {
	case <-first.Closed():
		t.Error("the first reply came to its end: nobody left")
	default:
	}
}

func TestStampsAreTheTimesOfSending(t *testing.T) {
	before := rehearsal.Stamp()
	_, b, err := post(t, http.DefaultClient, start(t, "reply\nstamp\nwords 2").URL, ask("x"))
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`"@(\d+) w\d "`).FindAllStringSubmatch(b, -1)
	if len(got) != 2 || got[0][1] > got[1][1] || len(got[0][1]) != 19 || before > rehearsal.Stamp() {
		t.Errorf("%q", got)
	}
}

func TestRatesAndWaitsTakeTheirTime(t *testing.T) {
	for scenario, want := range map[string]time.Duration{
		"reply\nheaders 2s\nwait 3s\nsay x":          5 * time.Second,
		"reply\nrate 10\nwords 11":                   time.Second,
		"reply\nrate 10\nwords 11\nrate 0\nwords 50": time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			sc, err := rehearsal.Parse(scenario)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			client := &http.Client{Transport: rehearsal.Transport(rehearsal.NewServer(sc))}
			if _, _, err := post(t, client, "http://scenario.invalid/v1", ask("x")); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("%q took %v", scenario, took)
			}
		})
	}
}
