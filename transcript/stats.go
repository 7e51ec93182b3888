package transcript

import (
	"context"
	"database/sql"
	"time"
)

// StatsQuery selects what to compute statistics over.
type StatsQuery struct {
	Workspace string    // "" means all
	Now       time.Time // what counts as now; zero means the present
}

// Stats are the metrics X1 to X4, computed from the log alone. Its JSON is that of fermata/stats. Definitions says for each
// field by its JSON name what was counted; whoever shows a figure shows that beside it.
type Stats struct {
	Workspace string          `json:"workspace"` // "" for all
	At        time.Time       `json:"at"`
	Sessions  int             `json:"sessions"` // that hold a turn
	Turns     int             `json:"turns"`
	Outcomes  map[Outcome]int `json:"outcomes"` // of the turns that have ended
	Damaged   int             `json:"damaged"`  // entries that could not be read and are in no figure (C5)

	RedirectRate RedirectRate `json:"redirectRate"`
	FollowUps    FollowUps    `json:"followUps"`
	Returns      Returns      `json:"returns"`
	StopLatency  StopLatency  `json:"stopLatency"`
	Kept         KeptStats    `json:"kept"`
	Tools        []ToolStats  `json:"tools"` // the most used first
	Tokens       TokenStats   `json:"tokens"`

	MinCases    int               `json:"minCases"` // below so many cases a share or a median tells nothing
	Definitions map[string]string `json:"definitions"`
}

// MinCases is how many cases a share or a median needs to be told at all.
const MinCases = 20

// Share is how many of a number of cases something holds for.
type Share struct {
	Part int `json:"part"`
	Of   int `json:"of"`
}

// Few reports that the cases are too few to tell anything.
func (s Share) Few() bool { return s.Of < MinCases }

// Percent is the share in percent, rounded; 0 when there are no cases.
func (s Share) Percent() int {
	if s.Of == 0 {
		return 0
	}
	return (200*s.Part + s.Of) / (2 * s.Of)
}

func (s *Share) count(holds bool) {
	s.Of++
	if holds {
		s.Part++
	}
}

// RedirectRate is X1. Of counts the turns that the user stopped and whose 60 s are over or were used.
type RedirectRate struct {
	Share
	Undecided int `json:"undecided"` // stopped less than 60 s ago, and nothing said yet: not counted
	Others    int `json:"others"`    // stopped by a client that went away or a daemon that was shut down: not counted
}

// FollowUps is X2: what was said within 60 s of a stop. A message is counted once, as the first that it is of linked,
// quoting, goingOn and new topic.
type FollowUps struct {
	Redirects Share `json:"redirects"` // linked, quoting and going on, of all
	Linked    int   `json:"linked"`    // by D2
	Quoting   int   `json:"quoting"`   // see refersTo
	GoingOn   int   `json:"goingOn"`
	NewTopics int   `json:"newTopics"`
}

// Returns is X3.
type Returns struct {
	StopAndLeft   Share `json:"stopAndLeft"`
	StopAndWentOn Share `json:"stopAndWentOn"`
	NeverStopped  Share `json:"neverStopped"`
	Young         int   `json:"young"` // sessions whose first sitting ended less than 7 days ago: not counted
}

// StopLatency is X4's first figure, in milliseconds. Median and P95 are 0 without cases.
type StopLatency struct {
	N       int             `json:"n"`
	Median  int64           `json:"medianMs"`
	P95     int64           `json:"p95Ms"`
	Max     int64           `json:"maxMs"`
	Buckets []LatencyBucket `json:"buckets"` // in order; together they are N
}

// LatencyBucket counts the stops that took at most UpTo milliseconds and longer than the bucket before; 0 has no bound.
type LatencyBucket struct {
	UpTo int64 `json:"upToMs,omitzero"`
	N    int   `json:"n"`
}

// KeptStats is what the stops kept.
type KeptStats struct {
	Answers int   `json:"answers"` // stopped answers that were kept
	Bytes   int64 `json:"bytes"`   // of all of them, reasoning and text
	Median  int64 `json:"medianBytes"`
	Silent  int   `json:"silent"` // stopped turns in which nothing had been said (S6)
}

// ToolStats is what became of the calls of one tool. Name is "" for all calls of tools that do not exist, and of those
// beyond the first hundred names.
type ToolStats struct {
	Name   string            `json:"name"`
	Calls  int               `json:"calls"`
	States map[ToolState]int `json:"states"` // together they are Calls
	Late   int               `json:"late"`   // results that came after `unknown` was told (S7)
}

// TokenStats are the providers' counts.
type TokenStats struct {
	Requests  int   `json:"requests"` // that have ended
	Counted   int   `json:"counted"`  // of those, with a count by the provider: the rest is in no figure here
	Input     int64 `json:"input"`
	Cached    int64 `json:"cached"` // of Input
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"` // of Output
	Triangle  int64 `json:"triangle"`
}

// The times that the definitions name.
const (
	followWithin = time.Minute
	sittingPause = 30 * time.Minute
	returnWithin = 7 * 24 * time.Hour
)

// definitions are by the JSON names of the fields of Stats. They are written for the people who read the figures.
var definitions = map[string]string{
	"outcomes": "How the turns ended.",
	"redirectRate": "Of the turns that the user stopped, the share after which the user said something in the same session within 60 s. " +
		"Stops less than 60 s old, and turns that ended because a client went away or fermata was shut down, are not counted.",
	"followUps": "What was said within those 60 s. Linked: sent as a redirect (or a retry) of the stopped turn. Quoting: repeats four " +
		"or more words (and 20 or more letters) in a row of the stopped answer that the question did not have. Going on: nothing " +
		"but \"go on\", \"continue\" or the like. All else is a new topic, also what nobody can tell: the share of redirects is rather " +
		"too low than too high.",
	"returns": "A session's first sitting is its turns up to the first pause of 30 min. Stopped and left: the sitting's last turn was " +
		"stopped by the user. Stopped and went on: another one was. Back: the user said something in the same workspace, in any " +
		"session, from 30 min to 7 days after the sitting. Sessions whose first sitting ended less than 7 days ago are not counted.",
	"stopLatency": "From the stop's arrival until the turn's end is recorded, in whole milliseconds rounded up. Nothing more is shown, and " +
		"the connection to the model is closed, before that: running tools have 5 s to come back, and checks of the stopped " +
		"answer run to their end. Turns stopped by a client that went away or by a shutdown are counted; turns of versions that " +
		"did not measure it are not.",
	"kept": "Stopped answers, text and reasoning word for word as they were shown. Silent: nothing had been said yet.",
	"tools": "What became of each tool call; not_started is a receipt for a call that never ran (denied, stopped while it waited, no " +
		"such tool, wrong arguments), unknown for one that did not come back in time.",
	"tokens": "As the providers counted them; what a request resends is in \"in\" again each time, and \"cached\" is the part of it that " +
		"the provider read from its cache. Requests that it did not count (stopped and broken ones, mostly) are in no figure here.",
	"triangle": "Triangle: T*n(n+1)/2, summed over the sessions: what the inputs would cost without any cache if each of a session's n requests " +
		"added the same T tokens and resent everything before it. n are the requests that were counted, T is the largest input " +
		"divided by n. Compare it with \"in\" less \"cached\".",
}

// Stats computes the metrics X1 to X4. It reads session by session, so that it never holds the log up, and needs a few bytes
// for each turn; nothing is stored and nothing leaves the machine. Errors are those of a read.
func (s *Store) Stats(ctx context.Context, q StatsQuery) (Stats, error) {
	if q.Now.IsZero() {
		q.Now = time.Now()
	}
	f := newStatsFold(q)
	if err := s.foldStats(ctx, f); err != nil {
		return Stats{}, s.fail("compute stats", err)
	}
	return f.result(), nil
}

func (s *Store) foldStats(ctx context.Context, f *statsFold) error {
	sessions, err := s.sessionsByWorkspace(ctx, f.stats.Workspace)
	if err != nil {
		return err
	}
	// What is not asked for is not read out of the file.
	entries, err := s.reads.PrepareContext(ctx, `SELECT seq, at, kind, body FROM entry WHERE sid = ? AND seq > ?
		AND kind IN ('turn.started', 'turn.ended', 'answer', 'tool.settled', 'request.ended') ORDER BY seq`)
	if err != nil {
		return err
	}
	defer entries.Close()
	for _, o := range sessions {
		f.open(o.workspace)
		rows, err := entries.QueryContext(ctx, o.sid, o.inherited)
		if err != nil {
			return err
		}
		for rows.Next() {
			var r rawEntry
			if err := rows.Scan(&r.seq, &r.at, &r.kind, &r.body); err != nil {
				rows.Close()
				return err
			}
			f.add(r)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		f.close()
	}
	return nil
}

// statsSession is where a session's own entries are.
type statsSession struct {
	sid       int64
	workspace string
	inherited int64 // seq of the last entry that is a copy of its parent's: a fork's history is counted once, in the parent
}

func (s *Store) sessionsByWorkspace(ctx context.Context, workspace string) ([]statsSession, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT s.sid, s.workspace, coalesce(e.kind, ''), e.body FROM session s
		LEFT JOIN entry e ON s.parent <> '' AND e.sid = s.sid AND e.seq = 1
		WHERE (?1 = '' OR s.workspace = ?1) ORDER BY s.workspace, s.sid`, workspace)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []statsSession
	for rows.Next() {
		var o statsSession
		var kind Kind
		var body sql.RawBytes
		if err := rows.Scan(&o.sid, &o.workspace, &kind, &body); err != nil {
			return nil, err
		}
		if b, err := decodeBody(kind, body); err == nil && kind == KindSessionOpened {
			o.inherited = b.(*SessionOpened).Copied
		}
		out = append(out, o)
	}
	return out, rows.Err()
}
