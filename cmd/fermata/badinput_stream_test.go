package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

// theKey is what a provider must never see anywhere but in its header, and nobody else at all.
const theKey = "sk-fermata-0123456789abcdef"

// chunk is an event with a delta, as most providers write it.
func chunk(delta string) string {
	return `data: {"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
}

func content(text string) string { return chunk(`{"content":"` + text + `"}`) }

const doneEvents = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

// bytewise sends each byte by itself.
func bytewise(s string) (steps []string) {
	for i := range len(s) {
		steps = append(steps, raw(s[i:i+1]))
	}
	return steps
}

// streamCase is what a model sends and what has to come of it. Steps end the stream where they end it: none of a case adds
// the terminal event that it does not name.
type streamCase struct {
	name    string
	steps   []string
	outcome string
	class   string
	says    string // in the turn's error
	shown   string // and in the transcript
	next    string // the message before "Go on." in the next request: the role, "user" when no answer was admitted
}

// long is 5 MiB.
var long = strings.Repeat("0123456789abcdef", 5<<16/shorter)

func streamCases() []streamCase {
	good := func(name, shown string, steps ...string) streamCase {
		return streamCase{name: name, steps: append(steps, "truncate"), outcome: "completed", shown: shown, next: "assistant"}
	}
	bad := func(name, class, says, shown string, steps ...string) streamCase {
		return streamCase{name: name, steps: steps, outcome: "failed", class: class, says: says, shown: shown, next: "user"}
	}
	fail := func(status, class, says, body string) streamCase {
		return bad("status "+status, class, says, "", "status "+status, "body "+strconv.Quote(body))
	}
	event := func(data string) string { return raw("data: " + data + "\n\n") }
	return []streamCase{
		good("every byte by itself", "Good, über 😀!", bytewise(content("Good, ")+content("über 😀!")+doneEvents)...),
		good("lines that end in CRLF, byte by byte", "Good, 😀!", bytewise(strings.ReplaceAll(content("Good, 😀!")+doneEvents, "\n", "\r\n"))...),
		good("lines that end in CR", "Good!", raw(strings.ReplaceAll(content("Good!")+doneEvents, "\n", "\r"))),
		good("a byte order mark", "Good!", raw("\ufeff"+content("Good!")+doneEvents)),
		good("comments and unknown fields", "Good!", raw(": ping\n\n: ping\nevent: message\nid: 7\nretry: 10\nfoo\n"+content("Good")+":\n\n"+content("!")+": bye\n\n"+doneEvents)),
		good("data on several lines", "Good!", raw("data: {\"choices\":\ndata:[{\"index\":0,\ndata: \"delta\":{\"content\":\"Good!\"}}]}\n\n"+doneEvents)),
		good("halves of a surrogate pair in two deltas", "a😀b", raw(content(`a\ud83d`)+content(`\ude00b`)+doneEvents)),
		good("bytes of a character in two deltas", "a😀b", raw(content("a\xf0\x9f")+content("\x98\x80b")+doneEvents)),
		good("half a character at the end", "a\ufffd", raw(content(`a\ud83d`)+doneEvents)),
		good("bytes that are no character", "a\ufffdb", raw(content("a\xffb")+doneEvents)),
		good("escapes and NUL", "a\x00\"\\\n\u2028b", raw(content(`a\u0000\"\\\n\u2028b`)+doneEvents)),
		good("a line of 5 MiB", long, "raw "+strings.TrimSpace(content(long)), raw("\n\n"+doneEvents)),
		good("deltas that are empty or null", "Good!", raw(chunk("{}")+content("")+chunk(`{"content":null,"tool_calls":null}`)+`data: {"choices":[]}`+"\n\n"+content("Good!")+doneEvents)),
		good("other choices than the first", "Good!", raw(`data: {"choices":[{"index":1,"delta":{"content":"Bad."}}]}`+"\n\n"+content("Good!")+doneEvents)),
		good("text behind the terminal event", "Good!", raw(content("Good!")+doneEvents+content(" Bad."))),

		bad("no terminal event", "truncated", "ended before the answer was complete", "Half an ans", raw(content("Half an ans")), "truncate"),
		bad("no terminal event and no last line end", "truncated", "ended before", "Half ", raw(content("Half ")+`data: [DONE]`), "truncate"),
		bad("a half event", "truncated", "ended before", "Half ", raw(content("Half ")+content("an ans")[:30]), "truncate"),
		bad("half a character where it ends", "truncated", "ended before", "Half", raw(content(`Half\ud83d`)), "truncate"),
		bad("nothing", "truncated", "ended before", "", "truncate"),
		bad("a connection that breaks", "connection", "broke within the answer", "Half ", raw(content("Half ")), "drop"),
		bad("a connection that breaks before the headers", "connection", "", "", "drop"),
		bad("an error event", "overloaded", "the engine is on fire", "Half ", raw(content("Half ")), event(`{"error":{"message":"the engine is on fire","code":"engine_error"}}`), "truncate"),
		bad("an error event that is a string", "overloaded", "on fire", "Half ", raw(content("Half ")), event(`{"error":"on fire"}`), "truncate"),
		bad("an error event with the key", "auth", "the key [key] is bad", "", event(`{"error":{"message":"the key `+theKey+` is bad","code":401}}`), "truncate"),
		bad("an event that is not JSON", "malformed", "not a chat completion chunk", "Half ", raw(content("Half ")), event("<oops "+theKey+">"), "truncate"),
		bad("a text that is a number", "malformed", "not a string", "Half ", raw(content("Half ")+chunk(`{"content":7}`)), "truncate"),
		bad("choices that are an object", "malformed", "not a chat completion chunk", "Half ", raw(content("Half ")), event(`{"choices":{"a":1}}`), "truncate"),
		bad("a line over the bound", "malformed", "16 MiB", "Half ", raw(content("Half ")), "raw data: "+strings.Repeat("x", 17<<20), "truncate"),
		bad("HTML with status 200", "malformed", "text/html instead of an event stream: check that base_url", "", `html "<html><h1>Hello</h1></html>"`),
		bad("HTML as an event stream", "truncated", "ended before", "", raw("<!doctype html>\n<html><h1>Hello</h1></html>\n"), "truncate"),
		bad("JSON instead of a stream", "overloaded", "no capacity", "", "header Content-Type: application/json", `body "{\"error\":{\"message\":\"no capacity\"}}"`),
		fail("401", "auth", "the key [key] is not valid", `{"error":{"message":"the key `+theKey+` is not valid"}}`),
		fail("403", "auth", "[key]", "<html><p>Forbidden: Bearer "+theKey+"</html>"),
		fail("400", "rejected", "too many tokens", `{"error":{"message":"too many tokens"}}`),
		fail("404", "rejected", "check base_url", ``),
		fail("429", "rate_limited", "slow down", `{"error":{"message":"slow down"}}`),
		fail("500", "overloaded", "Internal Server Error", ""),
		fail("503", "overloaded", "no way", "no\x00 way"),
		fail("307", "rejected", "set base_url to the address that answers", ""),
	}
}

// Each case is an answer of a model. What the client is shown is what the transcript has; an answer that is whole is in
// the next request word for word, one that broke off is in none; each next request is one that providers take; and the key
// is nowhere.
//
// guards P1, P2, P4, F1, M6
func TestWhateverAModelSendsIsShownKeptOrNamedAndTheSessionGoesOn(t *testing.T) {
	t.Parallel()
	var scenario strings.Builder
	cases := streamCases()
	for i, c := range cases {
		scenario.WriteString(script(fmt.Sprintf("Case %d.", i), c.steps...))
	}
	b := newBadInput(t, scenario.String(), peer.Options{})
	b.restart(fmt.Sprintf("model = \"scripted/model\"\n[providers.scripted]\nkind = \"deepseek\"\nkey_env = \"THE_KEY\"\nbase_url = %q\n[limits]\ntries = 1\n", b.model.URL),
		peer.Options{Env: []string{"THE_KEY=" + theKey}})
	for i, c := range cases {
		session := b.NewSession(b.root)
		r := b.turn(b.ask(session, fmt.Sprintf("Case %d.", i)))
		if r.Outcome != c.outcome || r.Cause != c.class || !strings.Contains(r.Error, c.says) {
			t.Errorf("%s: the turn ended %s %s %q, want %s %s %q", c.name, r.Outcome, r.Cause, r.Error, c.outcome, c.class, c.says)
		}
		shown := b.Shown(r.Turn, 1, "text")
		if shown != c.shown {
			t.Errorf("%s: shown were %d bytes %.80q, want %d %.80q", c.name, len(shown), shown, len(c.shown), c.shown)
		}
		if kept, _ := b.answers(session, r.Turn); kept != shown {
			t.Errorf("%s: shown was %.80q, the transcript has %.80q", c.name, shown, kept)
		}
		got := b.goesOn(session)
		before := got[len(got)-2]
		if before.Role != c.next || c.next == "assistant" && before.text() != shown {
			t.Errorf("%s: the next request has %s %.80q before its question", c.name, before.Role, before.text())
		}
	}
	if got := b.model.Requests()[1].Header.Get("Authorization"); got != "Bearer "+theKey {
		t.Errorf("the model was sent %q", got)
	}
	b.quit()
	for _, ev := range b.Events() {
		if strings.Contains(ev.Text+string(ev.Entry), theKey) {
			t.Errorf("the key is in the event %s", ev.Entry)
		}
	}
	if strings.Contains(b.Stderr(), theKey) {
		t.Errorf("the key is in the log: %s", b.Stderr())
	}
	if files := b.contains(theKey); files != nil {
		t.Errorf("the key is in the files %v", files)
	}
}

// guards P1, P3, M2, S3, S11
func TestAPromptOfTenMegabytesIsSentExactlyAndCanBeStopped(t *testing.T) {
	t.Parallel()
	const line = "0123456789 äöü\n"
	prompt := "Count. " + strings.Repeat(line, 10<<20/shorter/len(line)) + "The end."
	b := newBadInput(t, script("The end.", `say "One, "`, "hang"), peer.Options{})
	start := b.ask(b.session, prompt)
	b.Event("a delta", func(ev peer.Event) bool { return ev.Kind == "delta" })
	stop := b.Go("fermata/turn/stop", nil)
	if m := b.Reply(stop); m.Error != nil {
		t.Error(m.Error)
	}
	if r := b.turn(start); r.Outcome != "stopped" || r.Kept == nil || r.Kept.Bytes != int64(len("One, ")) {
		t.Errorf("the turn ended %s %s and kept %+v", r.Outcome, r.Cause, r.Kept)
	}
	if got := legal(t, b.model.Requests()[0].Body); len(got) != 2 || got[1].text() != prompt {
		t.Errorf("the model was sent %d messages, the last of %d bytes, want %d", len(got), len(got[len(got)-1].text()), len(prompt))
	}
	got := b.goesOn(b.session)
	if len(got) != 4 || got[1].text() != prompt || got[2].text() != "One, " || !strings.Contains(got[3].text(), "Go on.") {
		t.Errorf("the next request has %d messages", len(got))
	}
	b.quit()
}
