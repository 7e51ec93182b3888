package transcript

import (
	"crypto/sha256"
	"database/sql"
	"encoding"
	"errors"
	"fmt"
	"hash"
)

// view is where a session's last request ended: what the next one goes on from. It holds no text of any message that was
// encoded, so that a Log stays small however long its session grows, and it can always be made again from the database.
//
// It is changed within a transaction, ahead of the commit; [Log.write] throws it away when the transaction fails.
type view struct {
	request int64 // seq of the session's newest request.sent; when the database has another, the view is out of date

	epoch EpochOpened
	n     int       // fragments of the epoch stored
	size  int64     // bytes of head + fragments joined
	mid   hash.Hash // SHA-256 over them; goes on with the next fragment

	fold   Fold
	folded int64   // seq of the last entry fed to fold
	skip   []int64 // sources of the messages that fold is still to yield and that are stored already
}

// begin starts an epoch's body with its head.
func (v *view) begin(head []byte) {
	v.n, v.size, v.mid = 0, int64(len(head)), sha256.New()
	v.mid.Write(head)
}

// add puts a fragment behind the others.
func (v *view) add(fragment []byte) {
	if v.n > 0 && len(fragment) > 0 { // as storedFragment.comma
		v.mid.Write([]byte{','})
		v.size++
	}
	v.mid.Write(fragment)
	v.size += int64(len(fragment))
	v.n++
}

// sum is the length and the SHA-256 of the body with this tail.
func (v *view) sum(tail []byte) (int64, []byte, error) {
	c, err := v.mid.(hash.Cloner).Clone()
	if err != nil {
		return 0, nil, err
	}
	c.Write(tail)
	return v.size + int64(len(tail)), c.Sum(nil), nil
}

// midstate is v.mid in a form that can be stored; loadView goes on from it.
func (v *view) midstate() ([]byte, error) { return v.mid.(encoding.BinaryMarshaler).MarshalBinary() }

// errNoEpoch: the session has no epoch, or none that can be gone on with.
var errNoEpoch = errors.New("no epoch")

// loadView makes the view of a session's newest epoch. The fold starts at the newest turn whose first request was of this
// epoch, not at the session's start: before a turn every answer is decided and every call settled, so a fold that starts
// there yields the same messages, and that request says how many came before.
func (t *tx) loadView(h *head) (*view, error) {
	v := &view{}
	var body, mid []byte
	var bytes int64
	err := t.row(`SELECT n.body, r.seq, r.n, r.bytes, r.midstate FROM request r
		JOIN epoch e ON e.sid = r.sid AND e.epoch = r.epoch LEFT JOIN entry n ON n.sid = e.sid AND n.seq = e.seq
		WHERE r.sid = ? ORDER BY r.seq DESC LIMIT 1`, []any{h.sid}, &body, &v.request, &v.n, &bytes, &mid)
	if errors.Is(err, sql.ErrNoRows) {
		return v, errNoEpoch
	}
	if err != nil {
		return nil, err
	}
	b, err := decodeBody(KindEpochOpened, body)
	if err != nil {
		return v, errNoEpoch
	}
	v.epoch = *b.(*EpochOpened)
	v.fold.origin = v.epoch.origin() // where the fold starts behind epoch.opened

	tail, err := t.blob(v.epoch.Tail)
	if err != nil {
		return v, damagedEpoch(err)
	}
	v.size = bytes - int64(len(tail))
	v.mid = sha256.New()
	if err := v.mid.(encoding.BinaryUnmarshaler).UnmarshalBinary(mid); err != nil {
		// A later Go may not read the states of an earlier one.
		if err := t.rehash(h, v); err != nil {
			return v, damagedEpoch(err)
		}
	}

	var start int64
	var n int
	err = t.row(`SELECT t.seq, r.n FROM request r JOIN turn t ON t.id = r.turn
		WHERE r.sid = ? AND r.epoch = ? AND r.step = 1 AND r.try = 1 ORDER BY r.seq DESC LIMIT 1`,
		[]any{h.sid, v.epoch.Epoch}, &start, &n)
	switch {
	case errors.Is(err, sql.ErrNoRows): // the epoch began within the running turn
		start, n = 1, 1
	case err != nil:
		return nil, err
	}
	v.folded = start - 1
	rows, err := t.rows(`SELECT source FROM fragment WHERE sid = ? AND epoch = ? AND n >= ? AND n <= ? ORDER BY n`,
		h.sid, v.epoch.Epoch, n, v.n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var source int64
		if err := rows.Scan(&source); err != nil {
			return nil, err
		}
		v.skip = append(v.skip, source)
	}
	return v, rows.Err()
}

// damagedEpoch turns damage into errNoEpoch: the session goes on in a new epoch (C5). Other errors stay.
func damagedEpoch(err error) error {
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoBlob) {
		return errNoEpoch
	}
	return err
}

// rehash hashes head and fragments of the view's epoch again.
func (t *tx) rehash(h *head, v *view) error {
	head, err := t.blob(v.epoch.Head)
	if err != nil {
		return err
	}
	n := v.n
	v.begin(head)
	rows, err := t.rows(selectFragments, h.sid, v.epoch.Epoch, 0, n)
	if err != nil {
		return err
	}
	defer rows.Close()
	var buf []byte
	for rows.Next() {
		f, err := scanFragment(rows)
		if err != nil {
			return err
		}
		if buf, err = f.append(buf[:0]); err != nil {
			return err
		}
		v.add(buf)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if v.n != n {
		return fmt.Errorf("%w: epoch %d has %d fragments of %d", ErrDamaged, v.epoch.Epoch, v.n, n)
	}
	return nil
}

// catchUp feeds the fold with the entries up to h, and stores and adds a fragment for each message that is new. It is
// errNoEpoch, with nothing stored, when a message that was sent does not come out of the log any more.
func (t *tx) catchUp(h *head, v *view, enc Encoder) error {
	rows, err := t.rows(selectEntries, h.sid, v.folded)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return err
		}
		v.folded = r.seq
		if !folds(r.kind) {
			continue
		}
		for _, m := range v.fold.Add(r.entry(h.id)) {
			if len(v.skip) > 0 {
				if v.skip[0] != m.Source {
					return errNoEpoch
				}
				v.skip = v.skip[1:]
				continue
			}
			source := []byte(r.body)
			if m.Source != r.seq {
				if err := t.row(`SELECT body FROM entry WHERE sid = ? AND seq = ?`, []any{h.sid, m.Source}, &source); err != nil {
					return err
				}
			}
			fragment, err := enc.Encode(m.For(v.epoch))
			if err != nil {
				return fmt.Errorf("encode entry %d: %w", m.Source, err)
			}
			parts, err := makeParts(fragment, source)
			if err != nil {
				return fmt.Errorf("encode entry %d: %w", m.Source, err)
			}
			v.add(fragment)
			if _, err := t.exec(`INSERT INTO fragment (sid, epoch, n, source, size, parts) VALUES (?, ?, ?, ?, ?, ?)`,
				h.sid, v.epoch.Epoch, v.n, m.Source, len(fragment), parts); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(v.skip) > 0 {
		return errNoEpoch
	}
	return nil
}
