package transcript

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// story writes a log from lines, by the clock of a synctest bubble:
//
//	session [WORKSPACE]        a new session, of /w if none is named
//	ask TEXT                   starts a turn
//	redirect TEXT, retry TEXT  starts one that redirects, or retries, the turn before
//	usage IN CACHED OUT        a request with a count, and an answer without one
//	tool NAME STATE [late]     a settled call
//	stopped TEXT [MILLIS]      the turn ends, stopped by the user, with what was said
//	completed, failed, client_gone, shutdown   the turn ends
//	wait DURATION
//	fork                       goes on in a fork of the session
type story struct {
	t    *testing.T
	s    *Store
	l    *Log
	turn TurnID
	sent *Sent // without an end
	step int
}

func (st *story) tell(line string) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	f := strings.Fields(rest)
	switch word {
	case "session":
		workspace := "/w"
		if len(f) > 0 {
			workspace = f[0]
		}
		l, err := st.s.NewSession(st.t.Context(), SessionOpened{Workspace: workspace})
		if err != nil {
			st.t.Fatal(err)
		}
		st.l = l
	case "ask", "redirect", "retry":
		p := prompt(NewTurnID(), rest)
		switch word {
		case "redirect":
			p.Redirects = st.turn
		case "retry":
			p.Retries = st.turn
		}
		st.turn, st.step = p.Turn, 1
		sent := send(st.t, st.l, sendOf(p.Turn, 1, p))
		st.sent = &sent
	case "usage":
		if st.sent == nil {
			st.step++
			sent := send(st.t, st.l, sendOf(st.turn, st.step, nil))
			st.sent = &sent
		}
		u := &Usage{Input: number(st.t, f[0]), Cached: number(st.t, f[1]), Output: number(st.t, f[2])}
		st.conclude(Conclusion{Ended: RequestEnded{Outcome: "complete", Usage: u}})
	case "tool":
		add(st.t, st.l, &ToolSettled{Turn: st.turn, Step: 1, Call: "c", Name: f[0], State: ToolState(f[1]), Output: "o", Late: len(f) > 2})
	case "stopped":
		text, ms := rest, int64(0)
		if n := len(f) - 1; n > 0 {
			if v, err := strconv.ParseInt(f[n], 10, 64); err == nil {
				text, ms = strings.TrimSpace(strings.TrimSuffix(rest, f[n])), v
			}
		}
		ended := &TurnEnded{Turn: st.turn, Outcome: TurnStopped, Cause: "user", StopMillis: ms, Silent: text == ""}
		c := Conclusion{Ended: RequestEnded{Outcome: "stopped"}, TurnEnded: ended}
		if text != "" {
			c.Answer = &Answer{Turn: st.turn, Step: st.step, State: Stopped, Parts: []Part{{Type: PartText, Text: text}}}
			ended.Kept = &Kept{Bytes: int64(len(text))}
		}
		st.conclude(c)
	case "completed", "failed":
		st.conclude(Conclusion{Ended: RequestEnded{Outcome: word}, TurnEnded: &TurnEnded{Turn: st.turn, Outcome: Outcome(word)}})
	case "client_gone", "shutdown":
		st.conclude(Conclusion{Ended: RequestEnded{Outcome: "stopped"}, TurnEnded: &TurnEnded{Turn: st.turn, Outcome: TurnStopped, Cause: word}})
	case "fork":
		l, err := st.s.Fork(st.t.Context(), st.l.Session(), "")
		if err != nil {
			st.t.Fatal(err)
		}
		st.l = l
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			st.t.Fatal(err)
		}
		<-time.After(d)
	default:
		st.t.Fatalf("what is %q", line)
	}
}

// conclude ends the request that runs, if one does, and what c says beside it.
func (st *story) conclude(c Conclusion) {
	st.t.Helper()
	if st.sent == nil {
		if c.TurnEnded != nil {
			add(st.t, st.l, c.TurnEnded)
		}
		return
	}
	c.Ended.Request = st.sent.Request
	if c.Answer != nil {
		c.Answer.Request = st.sent.Request
	}
	st.sent = nil
	if _, err := st.l.Conclude(st.t.Context(), c); err != nil {
		st.t.Fatal(err)
	}
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// figure is a number of the stats by its path in their JSON.
func figure(t *testing.T, st Stats, path string) string {
	t.Helper()
	b, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	for key := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i := number(t, key)
			if int(i) >= len(at) {
				return "none"
			}
			v = at[i]
		default:
			t.Fatalf("there is no %s in %s", path, b)
		}
	}
	if v == nil {
		return "none"
	}
	return fmt.Sprint(v)
}

const longAnswer = "The loop counts every word twice because the index is never reset"

// guards X1, X2, X3, X4
func TestStatsAreWhatTheLogSays(t *testing.T) {
	cases := map[string]struct {
		story     string
		workspace string
		want      string // figures, as path=value
	}{
		"nothing was recorded": {
			want: "turns=0 sessions=0 redirectRate.of=0 stopLatency.n=0 tokens.triangle=0",
		},
		"a message within a minute, one just at its end, and one after it": { // X1
			story: `session
				ask a
				stopped x
				wait 10s
				ask b
				stopped x
				wait 60s
				ask c
				stopped x
				wait 60001ms
				ask d
				completed`,
			want: "redirectRate.part=2 redirectRate.of=3 redirectRate.undecided=0 outcomes.stopped=3 outcomes.completed=1 turns=4 sessions=1",
		},
		"a stop that was a moment ago is not decided": { // X1
			story: `session
				ask a
				stopped x
				wait 59s`,
			want: "redirectRate.part=0 redirectRate.of=0 redirectRate.undecided=1",
		},
		"a stop that nothing followed": { // X1
			story: `session
				ask a
				stopped x
				wait 60s`,
			want: "redirectRate.part=0 redirectRate.of=1 redirectRate.undecided=0",
		},
		"only the user's stops count": { // X1
			story: `session
				ask a
				client_gone
				ask b
				shutdown
				ask c
				failed
				ask d
				completed
				wait 2m`,
			want: "redirectRate.of=0 redirectRate.others=2 followUps.redirects.of=0 outcomes.stopped=2 outcomes.failed=1",
		},
		"a message in another session is no follow-up": { // X1
			story: `session
				ask a
				stopped x
				session
				ask b
				completed
				wait 2m`,
			want: "redirectRate.part=0 redirectRate.of=1",
		},
		"kinds of follow-ups": { // X2
			story: `session
				ask why is it slow
				stopped ` + longAnswer + `
				redirect shorter
				stopped ` + longAnswer + `
				retry why is it slow
				stopped ` + longAnswer + `
				ask You say "counts every WORD, twice", is that so?
				stopped ` + longAnswer + `
				ask please, continue!
				stopped ` + longAnswer + `
				ask because the index is never what
				stopped ` + longAnswer + `
				ask what is the weather like
				completed`,
			want: "followUps.linked=2 followUps.quoting=2 followUps.goingOn=1 followUps.newTopics=1 followUps.redirects.part=5 followUps.redirects.of=6",
		},
		"what the question said already is no quotation, nor are a few words": { // X2
			story: `session
				ask why do you claim it counts every word twice
				stopped ` + longAnswer + `
				ask no, it counts every word twice
				stopped ` + longAnswer + `
				ask the index is never, and every word twice
				stopped
				ask ` + longAnswer + `
				stopped continue
				ask continue to the next file
				completed`,
			want: "followUps.newTopics=4 followUps.redirects.part=0 followUps.redirects.of=4",
		},
		"a redirect after more than a minute is no follow-up": { // X1, X2
			story: `session
				ask a
				stopped x
				wait 61s
				redirect b
				completed`,
			want: "redirectRate.part=0 redirectRate.of=1 followUps.redirects.of=0",
		},
		"who came back": { // X3
			story: `session /left
				ask a
				stopped x
				wait 167h
				session /left
				ask again, and never stopped
				completed
				wait 200h
				session /on
				ask a
				stopped x
				ask b
				completed
				wait 29m
				ask still the first sitting
				completed
				wait 169h
				ask too late
				completed
				session /never
				ask a
				completed
				wait 30m
				ask back in the same session
				stopped x
				wait 169h`,
			want: "returns.stopAndLeft.part=1 returns.stopAndLeft.of=1 returns.stopAndWentOn.part=0 returns.stopAndWentOn.of=1 " +
				"returns.neverStopped.part=1 returns.neverStopped.of=2 returns.young=0 sessions=4",
		},
		"another workspace is not where one left": { // X3
			story: `session /b
				ask a
				stopped x
				wait 1h
				session /a
				ask b
				completed
				wait 168h`,
			want: "returns.stopAndLeft.part=0 returns.stopAndLeft.of=1 returns.neverStopped.of=1",
		},
		"to go on at once in another session is not to come back": { // X3
			story: `session
				ask a
				stopped x
				session
				ask b
				completed
				wait 169h`,
			want: "returns.stopAndLeft.part=0 returns.stopAndLeft.of=1",
		},
		"young sessions are not counted": { // X3
			story: `session
				ask a
				stopped x
				wait 1h
				ask b
				completed
				wait 166h`,
			want: "returns.stopAndLeft.of=0 returns.young=1",
		},
		"latency and what was kept": { // X4
			story: `session
				ask a
				stopped 12345 1
				ask b
				stopped 123 12
				ask c
				stopped 1234567 4000
				ask d
				stopped
				ask e
				stopped of an old version
				wait 1m`,
			want: "stopLatency.n=3 stopLatency.medianMs=12 stopLatency.p95Ms=4000 stopLatency.maxMs=4000 stopLatency.buckets.0.n=1 " +
				"stopLatency.buckets.1.n=1 stopLatency.buckets.6.n=1 kept.answers=4 kept.bytes=32 kept.medianBytes=5 kept.silent=1",
		},
		"tools": { // X4
			story: `session
				ask a
				tool run done
				tool run failed
				tool run unknown
				tool grep done
				completed
				tool run done late`,
			want: "tools.0.name=run tools.0.calls=3 tools.0.states.done=1 tools.0.states.failed=1 tools.0.states.unknown=1 tools.0.late=1 " +
				"tools.1.name=grep tools.1.calls=1 tools.2=none",
		},
		"tokens and the triangle": { // X4
			story: `session
				ask a
				usage 100 0 10
				usage 200 100 10
				usage 300 200 10
				completed
				ask not counted
				stopped x
				session
				ask b
				usage 50 0 7
				completed`,
			// 100·3·4/2 and 50·1·2/2
			want: "tokens.requests=5 tokens.counted=4 tokens.input=650 tokens.cached=300 tokens.output=37 tokens.triangle=650",
		},
		"what a fork has from its parent is counted once": {
			story: `session
				ask a
				usage 100 0 1
				stopped x 5
				wait 2m
				fork
				ask b
				completed`,
			want: "turns=2 sessions=2 outcomes.stopped=1 redirectRate.of=1 stopLatency.n=1 tokens.counted=1",
		},
		"one workspace": {
			workspace: "/b",
			story: `session /a
				ask a
				stopped x
				session /b
				ask b
				completed
				session /a
				ask c
				completed`,
			want: "turns=1 sessions=1 outcomes.completed=1 outcomes.stopped=none redirectRate.of=0",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &story{t: t, s: openStore(t, Options{})}
				for line := range strings.SplitSeq(c.story, "\n") {
					if line != "" {
						st.tell(line)
					}
				}
				got, err := st.s.Stats(t.Context(), StatsQuery{Workspace: c.workspace})
				if err != nil {
					t.Fatal(err)
				}
				for want := range strings.FieldsSeq(c.want) {
					path, value, _ := strings.Cut(want, "=")
					if have := figure(t, got, path); have != value {
						t.Errorf("%s is %s, want %s", path, have, value)
					}
				}
				wantClean(t, st.s)
			})
		})
	}
}

// guards C5
func TestADamagedEntryIsInNoFigureAndSpoilsNone(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	for _, kind := range []Kind{KindTurnStarted, KindAnswer, KindToolSettled, KindRequestEnded, KindTurnEnded} {
		for i, body := range []string{``, `{`, `{"`, `{"turn"`, `{"turn":`, `{"turn":}`, `{"turn":"a"`, `[]`, `{"state":7,"name":[1,{"a":"}"}]`, `{"state":"\u12"}`} {
			tamper(t, s, fmt.Sprintf(`INSERT INTO entry (sid, seq, at, kind, hash, body) VALUES (%d, (SELECT max(seq) + 1 FROM entry), %d, '%s', x'', '%s')`,
				l.sid, i, kind, body))
		}
	}
	exchangeIn := newSession(t, s)
	exchange(t, exchangeIn, "q", "a")
	got, err := s.Stats(t.Context(), StatsQuery{})
	if err != nil || got.Outcomes[TurnCompleted] != 1 || got.Damaged == 0 || len(got.Tools) > 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMembersAreReadAsTheDecoderReadsThem(t *testing.T) {
	for _, b := range []*ToolSettled{
		{Name: "run", State: ToolDone, Output: "plain"},
		{Name: "a \"quoted\" näme\n", State: ToolFailed, Output: `{"state":"unknown","late":true}`, Exit: new(7), Millis: 12, Late: true},
		{Name: "", State: ToolNotStarted, Cause: CauseUnknownTool, Output: strings.Repeat(`\"}],`, 100)},
	} {
		data, err := encodeBody(b)
		if err != nil {
			t.Fatal(err)
		}
		var name, state, cause, late string
		ok := readMembers(data, map[string]*string{"name": &name, "state": &state, "cause": &cause, "late": &late})
		if !ok || name != b.Name || state != string(b.State) || cause != b.Cause || (late == "true") != b.Late {
			t.Errorf("%s: %v %q %q %q %q", data, ok, name, state, cause, late)
		}
	}
}

func TestAModelThatInventsToolsDoesNotFillTheStats(t *testing.T) {
	f := newStatsFold(StatsQuery{Now: time.Now()})
	for i := range 10 * maxTools {
		data, err := encodeBody(&ToolSettled{Name: fmt.Sprint("tool", i), State: ToolDone})
		if err != nil {
			t.Fatal(err)
		}
		f.add(rawEntry{kind: KindToolSettled, body: data})
	}
	if got := f.result().Tools; len(got) > maxTools+1 || got[0].Name != "" || got[0].Calls != 9*maxTools {
		t.Errorf("%d tools, the first %+v", len(got), got[0])
	}
}

func TestEveryFigureHasItsDefinition(t *testing.T) {
	for _, name := range []string{"outcomes", "redirectRate", "followUps", "returns", "stopLatency", "kept", "tools", "tokens", "triangle"} {
		if len(definitions[name]) < 20 {
			t.Errorf("%s has no definition", name)
		}
	}
	if s := (Share{Part: 1, Of: 3}); s.Percent() != 33 || !s.Few() || (Share{Of: MinCases}).Few() || (Share{}).Percent() != 0 {
		t.Errorf("%+v", s)
	}
}
