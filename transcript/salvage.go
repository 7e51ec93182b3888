package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Salvaged is what [Salvage] brought back.
type Salvaged struct {
	Sessions []SalvagedSession // in the order in which they were made
	Unread   int               // pages that could not be read at all
}

// SalvagedSession is what was found of one session.
type SalvagedSession struct {
	Session SessionID
	Title   string
	Entries int
	Missing int64 // entries before the last one found that are gone
	Changed int   // entries that are not what was written: they do not fit their hashes
	Lost    int64 // entries behind the last one found that the session is known to have had
	NoID    bool  // the id was lost, and with it the proof that the others are what was written; Session is a new one
}

// Whole reports whether everything that is known of the session was found as it was written.
func (s SalvagedSession) Whole() bool {
	return s.Missing == 0 && s.Changed == 0 && s.Lost == 0 && !s.NoID
}

// Salvage reads what can be read of the database at path from, with the write-ahead log beside it, into a new database at
// path to. It goes from page to page and needs neither the trees above the rows nor both of the files. What was written is
// copied as it is, with its hash: entries, fragments, blobs, and the journal of answers that were being said. Everything else
// follows from the entries. Sessions that were deleted stay so. from is only read; to must not exist.
//
// [Store.Verify] of the new database tells of each entry that is missing or changed; such a session opens all the same (C5),
// and the next turn in it begins a new epoch. Errors: [fs.ErrExist], [fs.ErrNotExist], and those of [Open] and of a write.
func Salvage(ctx context.Context, from, to string, o Options) (Salvaged, error) {
	const op = "salvage"
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return Salvaged{}, failAt(to, op, &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist})
	}
	p, err := openPages(from)
	if err != nil {
		return Salvaged{}, failAt(from, op, err)
	}
	defer p.close()
	o.ReadOnly = false
	s, err := Open(to, o)
	if err != nil {
		return Salvaged{}, err
	}
	v := &salvage{pages: p, found: map[int64]*salvagedSession{}, deleted: map[int64]int64{}, ended: map[RequestID]bool{}}
	// Rows come before those that they refer to.
	if _, err = s.w.conn.ExecContext(ctx, `PRAGMA foreign_keys = 0`); err == nil {
		err = s.w.do(ctx, op, func(t *tx) error { return v.all(ctx, t) })
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return Salvaged{}, failAt(to, op, err)
	}
	return v.out, nil
}

type salvage struct {
	*pages
	found   map[int64]*salvagedSession // by the number of the session
	deleted map[int64]int64
	ended   map[RequestID]bool
	out     Salvaged
}

type salvagedSession struct {
	id               SessionID
	workspace, title string
	parent           SessionID
	created, lastSeq int64
}

func (v *salvage) all(ctx context.Context, t *tx) error {
	for _, pass := range []func(*tx, row) error{v.names, v.entry, nil, v.rest} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if pass == nil {
			if err := v.derive(t); err != nil {
				return err
			}
			continue
		}
		unread, err := v.rows(func(r row) error { return pass(t, r) })
		if err != nil {
			return err
		}
		v.out.Unread = len(unread)
	}
	return nil
}

// shaped reports whether a row has these types: i an integer, t a text, b bytes, h a hash, n nothing.
func (r row) shaped(index bool, types string) bool {
	if r.index != index || len(r.values) != len(types) {
		return false
	}
	for i, v := range r.values {
		ok := false
		switch v := v.(type) {
		case nil:
			ok = types[i] == 'n'
		case int64:
			ok = types[i] == 'i'
		case string:
			ok = types[i] == 't'
		case []byte:
			ok = types[i] == 'b' || types[i] == 'h' && len(v) == sha256.Size
		}
		if !ok {
			return false
		}
	}
	return true
}

// names finds what sessions there are and which were deleted. Of a session's row, which is written over again and again, old
// versions can lie about: the newest counts.
func (v *salvage) names(_ *tx, r row) error {
	at := func(sid int64) *salvagedSession {
		if v.found[sid] == nil {
			v.found[sid] = &salvagedSession{}
		}
		return v.found[sid]
	}
	id := func(i int) (SessionID, bool) {
		s, _ := r.values[i].(string)
		return SessionID(s), strings.HasPrefix(s, "s_")
	}
	switch {
	case r.shaped(false, "nttttiiih"):
		if id, ok := id(1); ok {
			if s := at(r.rowid); s.lastSeq <= r.values[7].(int64) {
				*s = salvagedSession{id: id, workspace: r.values[2].(string), title: r.values[3].(string),
					parent: SessionID(r.values[4].(string)), created: r.values[5].(int64), lastSeq: r.values[7].(int64)}
			}
		}
	case r.shaped(true, "ti"): // the index of session.id
		if id, ok := id(0); ok {
			if s := at(r.values[1].(int64)); s.id == "" {
				s.id = id
			}
		}
	case r.shaped(false, "ni"):
		v.deleted[r.rowid] = r.values[1].(int64)
	}
	return nil
}

func (v *salvage) entry(t *tx, r row) error {
	if !r.shaped(false, "iiithb") || r.values[1].(int64) < 1 {
		return nil
	}
	sid := r.values[0].(int64)
	if _, gone := v.deleted[sid]; gone {
		return nil
	}
	if v.found[sid] == nil {
		v.found[sid] = &salvagedSession{}
	}
	_, err := t.exec(`INSERT OR IGNORE INTO entry (sid, seq, at, kind, hash, body) VALUES (?, ?, ?, ?, ?, ?)`, r.values...)
	return err
}

// rest copies what belongs to entries that were found.
func (v *salvage) rest(t *tx, r row) (err error) {
	switch {
	case r.shaped(true, "iiiiib"):
		_, err = t.exec(`INSERT OR IGNORE INTO fragment (sid, epoch, n, source, size, parts) SELECT ?1, ?2, ?3, ?4, ?5, ?6
			WHERE EXISTS (SELECT 1 FROM epoch WHERE sid = ?1 AND epoch = ?2) AND EXISTS (SELECT 1 FROM entry WHERE sid = ?1 AND seq = ?4)
			AND ?3 <= (SELECT max(n) FROM request WHERE sid = ?1 AND epoch = ?2)`, r.values...)
	case r.shaped(false, "nhb"):
		if sum := sha256.Sum256(r.values[2].([]byte)); bytes.Equal(sum[:], r.values[1].([]byte)) {
			_, err = t.exec(`INSERT OR IGNORE INTO blob (sha256, body) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM blob_use WHERE sha256 = ?1)`, r.values[1:]...)
		}
	case r.shaped(true, "ititt"):
		if request := RequestID(r.values[1].(string)); !v.ended[request] {
			_, err = t.exec(`INSERT OR IGNORE INTO journal (sid, request, n, part, text) SELECT ?1, ?2, ?3, ?4, ?5
				WHERE EXISTS (SELECT 1 FROM request WHERE sid = ?1 AND id = ?2)`, r.values...)
		}
	}
	return err
}

// derive makes the tables that follow from the entries.
func (v *salvage) derive(t *tx) error {
	var sids []int64
	for sid := range v.found {
		sids = append(sids, sid)
	}
	slices.Sort(sids)
	for sid, at := range v.deleted {
		if _, err := t.exec(`INSERT OR IGNORE INTO deleted (sid, at) VALUES (?, ?)`, sid, at); err != nil {
			return err
		}
	}
	for _, sid := range sids {
		if _, gone := v.deleted[sid]; gone {
			continue
		}
		if err := v.session(t, sid, v.found[sid]); err != nil {
			return err
		}
	}
	return nil
}

func (v *salvage) session(t *tx, sid int64, f *salvagedSession) error {
	d := derived{salvage: v, t: t, sid: sid, found: f}
	d.rep.NoID = f.id == ""
	if d.rep.NoID {
		f.id = NewSessionID()
	}
	d.rep.Session = f.id
	entries, err := d.entries()
	if err != nil {
		return err
	}
	if d.rep.Entries > 0 {
		for _, e := range entries {
			if err := d.take(e); err != nil {
				return err
			}
		}
		if err := d.finish(); err != nil {
			return err
		}
	}
	d.rep.Lost = max(0, f.lastSeq-d.seq)
	d.rep.Title = f.title
	v.out.Sessions = append(v.out.Sessions, d.rep)
	return nil
}

// derived is one session on its way into the new database.
type derived struct {
	*salvage
	t     *tx
	sid   int64
	found *salvagedSession
	rep   SalvagedSession

	seq, first, last int64 // of the last entry; times of the first and the last
	hash             [sha256.Size]byte
	open             *salvagedTurn
}

type salvagedTurn struct {
	id      TurnID
	seq     int64
	client  string
	ended   any // seq, or nil
	outcome Outcome
}

// entries reads the session's entries and checks their chain.
func (d *derived) entries() ([]Entry, error) {
	rows, err := d.t.rows(selectEntries, d.sid, 0)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Entry
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		if d.rep.Entries++; d.rep.Entries == 1 {
			d.first = r.at
		}
		want := entryHash(d.hash, d.found.id, r.seq, r.at, r.kind, r.body)
		switch {
		case r.seq != d.seq+1:
			d.rep.Missing += r.seq - d.seq - 1
		case !bytes.Equal(want[:], r.hash):
			d.rep.Changed++
		}
		d.seq, d.last = r.seq, r.at
		copy(d.hash[:], r.hash)
		if e := r.entry(d.found.id); derives(e.Kind()) {
			out = append(out, e)
		}
	}
	return out, rows.Err()
}

func derives(k Kind) bool {
	switch k {
	case KindSessionOpened, KindTurnStarted, KindTurnEnded, KindEpochOpened, KindRequestSent, KindRequestEnded, KindFileChanged, KindToolSettled, KindRevertStarted, KindMessageQueued:
		return true
	}
	return false
}

func (d *derived) take(e Entry) error {
	err := d.t.useBlobs(d.sid, seenBlobs(e.Body)...)
	if err != nil {
		return err
	}
	switch b := e.Body.(type) {
	case *SessionOpened:
		if d.found.workspace == "" {
			d.found.workspace, d.found.parent = b.Workspace, b.Parent
		}
		d.title(b.Title)
	case *TurnStarted:
		if d.open != nil {
			d.open.ended, d.open.outcome = e.Seq-1, TurnAbandoned // its end was lost
			err = d.turn()
		}
		d.open = &salvagedTurn{id: b.Turn, seq: e.Seq, client: b.ClientID}
		d.title(titleOf(b.PromptText()))
	case *TurnEnded:
		if d.open != nil && d.open.id == b.Turn {
			d.open.ended, d.open.outcome = e.Seq, b.Outcome
			err = d.turn()
		}
	case *EpochOpened:
		head, err1 := hex.DecodeString(b.Head)
		tail, err2 := hex.DecodeString(b.Tail)
		if errors.Join(err1, err2) != nil {
			return nil
		}
		_, err = d.t.exec(`INSERT OR IGNORE INTO epoch (sid, epoch, seq, head, tail) VALUES (?, ?, ?, ?, ?)`, d.sid, b.Epoch, e.Seq, head, tail)
		err = errors.Join(err, d.t.useBlobs(d.sid, b.Head, b.Tail))
	case *RequestSent:
		sum, bad := hex.DecodeString(b.SHA256)
		if bad != nil {
			return nil
		}
		// Without the state of the hash the next request hashes the one before again.
		_, err = d.t.exec(`INSERT OR IGNORE INTO request (id, sid, seq, turn, step, try, epoch, n, bytes, sha256, midstate)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, x'')`, string(b.Request), d.sid, e.Seq, string(b.Turn), b.Step, b.Try, b.Epoch, b.N, b.Bytes, sum)
	case *RequestEnded:
		d.ended[b.Request] = true
	case *FileChanged:
		err = d.t.useBlobs(d.sid, b.Before, b.After)
	case *RevertStarted:
		err = d.t.useBlobs(d.sid, b.blobs()...)
	case *ToolSettled:
		err = d.t.useBlobs(d.sid, b.Full)
	}
	return err
}

func (d *derived) title(s string) {
	if d.found.title == "" {
		d.found.title = s
	}
}

// turn writes the open turn, ended or not.
func (d *derived) turn() error {
	o := d.open
	d.open = nil
	_, err := d.t.exec(`INSERT OR IGNORE INTO turn (id, sid, seq, client_id, ended, outcome) VALUES (?, ?, ?, ?, ?, ?)`,
		string(o.id), d.sid, o.seq, o.client, o.ended, string(o.outcome))
	return err
}

func (d *derived) finish() error {
	if d.open != nil {
		if err := d.turn(); err != nil {
			return err
		}
	}
	if d.found.created == 0 {
		d.found.created = d.first
	}
	if _, err := d.t.exec(`INSERT INTO session (sid, id, workspace, title, parent, created, updated, last_seq, last_hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, d.sid, string(d.found.id), d.found.workspace, d.found.title, string(d.found.parent),
		d.found.created, d.last, d.seq, d.hash[:]); err != nil {
		return fmt.Errorf("session %s: %w", d.found.id, err)
	}
	return nil
}
