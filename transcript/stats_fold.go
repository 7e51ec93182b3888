package transcript

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// statsFold counts. Feed it the sessions in the order of their workspaces, and the entries of each in order.
type statsFold struct {
	stats   Stats
	now     int64 // milliseconds, as all times here
	tools   map[string]*ToolStats
	latency []int64
	kept    []int64

	workspace string
	spoken    []int64   // when turns of the workspace were started, in any order
	sittings  []sitting // first ones, of the workspace's sessions

	session sessionFold
}

// sitting is how a session's first sitting ended.
type sitting struct {
	end           int64
	stopped, left bool // a turn was stopped by the user; its last one was
}

// sessionFold is what is known in the middle of a session.
type sessionFold struct {
	turns    int
	first    sitting
	over     bool  // the first sitting
	last     int64 // when the last turn started or ended
	started  []byte
	answer   []byte // the stopped answer of the turn, nil when there is none
	stopped  TurnID // the turn before was stopped by the user at stopAt, and nothing was said since
	stopAt   int64
	requests int64 // with a count
	largest  int64 // input of them
}

var latencyBounds = []int64{10, 30, 100, 300, 1000, 3000, 0}

func newStatsFold(q StatsQuery) *statsFold {
	return &statsFold{
		stats: Stats{
			Workspace: q.Workspace, At: q.Now.UTC().Truncate(time.Second), Outcomes: map[Outcome]int{}, MinCases: MinCases,
			Definitions: maps.Clone(definitions),
		},
		now: millis(q.Now), tools: map[string]*ToolStats{},
	}
}

// open begins a session.
func (f *statsFold) open(workspace string) {
	if workspace != f.workspace {
		f.closeWorkspace()
		f.workspace = workspace
	}
	f.session = sessionFold{started: f.session.started[:0]}
}

// add counts an entry. Of what it is given it keeps copies only.
func (f *statsFold) add(r rawEntry) {
	switch r.kind {
	case KindTurnStarted:
		f.turnStarted(r)
	case KindAnswer:
		var state string
		if readMembers(r.body, map[string]*string{"state": &state}) && state == string(Stopped) {
			f.session.answer = bytes.Clone(r.body)
		}
	case KindToolSettled:
		f.toolSettled(r)
	case KindRequestEnded:
		if b, ok := decode[*RequestEnded](f, r); ok {
			f.requestEnded(b)
		}
	case KindTurnEnded:
		if b, ok := decode[*TurnEnded](f, r); ok {
			f.turnEnded(b, r.at)
		}
	}
}

func decode[T Body](f *statsFold, r rawEntry) (b T, ok bool) {
	body, err := decodeBody(r.kind, r.body)
	if err == nil {
		b, ok = body.(T)
	}
	if !ok {
		f.stats.Damaged++
	}
	return b, ok
}

func (f *statsFold) turnStarted(r rawEntry) {
	s := &f.session
	if s.turns++; s.turns == 1 {
		f.stats.Sessions++
	}
	f.stats.Turns++
	f.spoken = append(f.spoken, r.at)
	if !s.over && s.last != 0 && r.at-s.last >= sittingPause.Milliseconds() {
		s.over = true
	}
	if !s.over {
		s.first.end, s.first.left = r.at, false
	}
	s.last = r.at
	if s.stopped != "" {
		f.followed(r)
		s.stopped = ""
	}
	s.started, s.answer = append(s.started[:0], r.body...), nil
}

// followed counts a message that came after a stop (X1, X2).
func (f *statsFold) followed(r rawEntry) {
	s := &f.session
	soon := r.at-s.stopAt <= followWithin.Milliseconds() // also when the clock was set back
	f.stats.RedirectRate.count(soon)
	if !soon {
		return
	}
	next, ok := decode[*TurnStarted](f, r)
	if !ok {
		next = &TurnStarted{}
	}
	x2 := &f.stats.FollowUps
	kind := &x2.NewTopics
	switch said := next.PromptText(); {
	case next.Redirects == s.stopped || next.Retries == s.stopped:
		kind = &x2.Linked
	case f.quotes(said):
		kind = &x2.Quoting
	case goesOn(said):
		kind = &x2.GoingOn
	}
	*kind++
	x2.Redirects.count(kind != &x2.NewTopics)
}

func (f *statsFold) quotes(said string) bool {
	if f.session.answer == nil {
		return false
	}
	body, err := decodeBody(KindAnswer, f.session.answer)
	if err != nil {
		return false
	}
	question := ""
	if b, err := decodeBody(KindTurnStarted, f.session.started); err == nil {
		question = b.(*TurnStarted).UserText()
	}
	answer := body.(*Answer)
	return quotes(said, answer.Text(), question) || quotes(said, answer.Reasoning(), question)
}

func (f *statsFold) turnEnded(b *TurnEnded, at int64) {
	s := &f.session
	f.stats.Outcomes[b.Outcome]++
	byUser := b.Outcome == TurnStopped && b.Cause == "user"
	if !s.over {
		s.first.end, s.first.left = at, byUser
		s.first.stopped = s.first.stopped || byUser
	}
	s.last = at
	if b.Outcome != TurnStopped {
		return
	}
	if byUser {
		s.stopped, s.stopAt = b.Turn, at
	} else {
		f.stats.RedirectRate.Others++
	}
	if b.StopMillis > 0 {
		f.latency = append(f.latency, b.StopMillis)
	}
	if b.Kept != nil {
		f.kept = append(f.kept, b.Kept.Bytes)
		f.stats.Kept.Bytes += b.Kept.Bytes
	}
	if b.Silent {
		f.stats.Kept.Silent++
	}
}

// maxTools bounds how many names are told apart: a model can invent any number of them.
const maxTools = 100

func (f *statsFold) toolSettled(r rawEntry) {
	var name, state, cause, late string
	if !readMembers(r.body, map[string]*string{"name": &name, "state": &state, "cause": &cause, "late": &late}) || state == "" {
		f.stats.Damaged++
		return
	}
	if cause == CauseUnknownTool {
		name = ""
	}
	t := f.tools[name]
	if t == nil && len(f.tools) >= maxTools {
		name = ""
		t = f.tools[name]
	}
	if t == nil {
		t = &ToolStats{Name: name, States: map[ToolState]int{}}
		f.tools[name] = t
	}
	if late == "true" {
		t.Late++
		return
	}
	t.Calls++
	t.States[ToolState(state)]++
}

func (f *statsFold) requestEnded(b *RequestEnded) {
	t := &f.stats.Tokens
	t.Requests++
	if b.Usage == nil {
		return
	}
	t.Counted++
	t.Input += b.Usage.Input
	t.Cached += b.Usage.Cached
	t.Output += b.Usage.Output
	t.Reasoning += b.Usage.Reasoning
	f.session.requests++
	f.session.largest = max(f.session.largest, b.Usage.Input)
}

// close ends a session.
func (f *statsFold) close() {
	s := &f.session
	if s.stopped != "" {
		if f.now-s.stopAt < followWithin.Milliseconds() {
			f.stats.RedirectRate.Undecided++
		} else {
			f.stats.RedirectRate.count(false)
		}
	}
	if s.turns > 0 {
		f.sittings = append(f.sittings, s.first)
	}
	f.stats.Tokens.Triangle += s.largest * (s.requests + 1) / 2 // T*n(n+1)/2 with T = largest/n
}

// closeWorkspace counts who came back (X3).
func (f *statsFold) closeWorkspace() {
	slices.Sort(f.spoken)
	for _, s := range f.sittings {
		if f.now-s.end < returnWithin.Milliseconds() {
			f.stats.Returns.Young++
			continue
		}
		group := &f.stats.Returns.NeverStopped
		switch {
		case s.left:
			group = &f.stats.Returns.StopAndLeft
		case s.stopped:
			group = &f.stats.Returns.StopAndWentOn
		}
		i, _ := slices.BinarySearch(f.spoken, s.end+sittingPause.Milliseconds())
		group.count(i < len(f.spoken) && f.spoken[i] <= s.end+returnWithin.Milliseconds())
	}
	f.spoken, f.sittings = f.spoken[:0], f.sittings[:0]
}

func (f *statsFold) result() Stats {
	f.closeWorkspace()
	st := f.stats
	st.StopLatency = latencyOf(f.latency)
	st.Kept.Answers, st.Kept.Median = len(f.kept), quantile(f.kept, 50)
	st.Tools = []ToolStats{}
	for _, t := range f.tools {
		st.Tools = append(st.Tools, *t)
	}
	slices.SortFunc(st.Tools, func(a, b ToolStats) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Name, b.Name))
	})
	return st
}

func latencyOf(all []int64) StopLatency {
	l := StopLatency{N: len(all), Median: quantile(all, 50), P95: quantile(all, 95), Max: quantile(all, 100)}
	i := 0 // all is sorted now
	for _, bound := range latencyBounds {
		b := LatencyBucket{UpTo: bound}
		for ; i < len(all) && (bound == 0 || all[i] <= bound); i++ {
			b.N++
		}
		l.Buckets = append(l.Buckets, b)
	}
	return l
}

// quantile sorts all and is the smallest value that percent of them do not exceed; 0 without values.
func quantile(all []int64, percent int) int64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[max(0, (len(all)*percent+99)/100-1)]
}
