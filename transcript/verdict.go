package transcript

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// KindVerdict is the kind of a [Verdict].
const KindVerdict Kind = "verdict"

// VerdictWord is what a check says.
type VerdictWord string

// The words of a verdict. A check that failed, crashed or took too long says error.
const (
	VerdictPass   VerdictWord = "pass"
	VerdictReject VerdictWord = "reject"
	VerdictError  VerdictWord = "error"
)

// Verdict is what one check said about one answer. It is bound to (Turn, AnswerSHA256, CheckSHA256): where one of them is
// not that of the answer and of the check in question, it says nothing about them (K4). Of several verdicts of one check's
// name about one answer the last counts.
type Verdict struct {
	Turn         TurnID      `json:"turn"`
	Step         int         `json:"step"`
	Answer       int64       `json:"answer"`        // seq of the Answer entry
	AnswerSHA256 string      `json:"answer_sha256"` // [Answer.SHA256]
	Check        string      `json:"check"`         // the check's name
	CheckSHA256  string      `json:"check_sha256"`  // of its definition, hex
	Verdict      VerdictWord `json:"verdict"`
	Reason       string      `json:"reason,omitzero"` // of a reject or an error, for people
	Millis       int64       `json:"ms"`
}

// CheckRef names a check by its name and the SHA-256 of its definition in hex.
type CheckRef struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// What an admission says of an answer that checks withheld (K2): one was against it, or not all had their say.
const (
	Rejected   = "rejected"
	Unverified = "unverified"
)

func (*Verdict) Kind() Kind { return KindVerdict }
func (*Verdict) body()      {}

// SHA256 is the hash, in hex, of what the answer says: over its parts in order, each as type, text, call id, name, arguments
// and extra, each of these preceded by its length in bytes as 8 bytes big-endian. How the answer ended is no part of it.
func (a *Answer) SHA256() string {
	h := sha256.New()
	piece := func(s string) {
		s = string([]rune(s)) // as it is read back from the log: each byte that is no UTF-8 is U+FFFD
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	for _, p := range a.Parts {
		piece(string(p.Type))
		piece(p.Text)
		var c Call
		if p.Call != nil {
			c = *p.Call
		}
		piece(string(c.ID))
		piece(c.Name)
		piece(c.Args)
		piece(string(p.Extra))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// LastVerdicts are the verdicts that count of those about an answer: of each check's name the last, in the order of names.
func LastVerdicts(all []*Verdict) []*Verdict {
	var out []*Verdict
	for _, v := range all {
		i, found := slices.BinarySearchFunc(out, v.Check, func(o *Verdict, name string) int { return strings.Compare(o.Check, name) })
		if found {
			out[i] = v
		} else {
			out = slices.Insert(out, i, v)
		}
	}
	return out
}

// Decide makes the admission of an answer from the verdicts about it, in the order of the log (K1, K2, K4): it is admitted
// when each of the checks due has passed it and no verdict that counts is another one. due is not empty.
func Decide(a *Answer, seq int64, due []CheckRef, verdicts []*Verdict) *Admission {
	sum := a.SHA256()
	bound := slices.DeleteFunc(slices.Clone(verdicts), func(v *Verdict) bool {
		return v.Turn != a.Turn || v.Answer != seq || v.AnswerSHA256 != sum
	})
	last := LastVerdicts(bound)
	out := &Admission{Turn: a.Turn, Step: a.Step, Answer: seq, Admitted: true, By: "checks", Checks: due}
	withhold := func(word string) {
		if out.Admitted = false; out.Withheld != Rejected {
			out.Withheld = word
		}
	}
	passed := func(c CheckRef) bool {
		return slices.ContainsFunc(last, func(v *Verdict) bool {
			return v.Check == c.Name && v.CheckSHA256 == c.SHA256 && v.Verdict == VerdictPass
		})
	}
	for _, c := range due {
		if !passed(c) {
			withhold(Unverified)
		}
	}
	for _, v := range last {
		changed := slices.ContainsFunc(due, func(c CheckRef) bool { return c.Name == v.Check && c.SHA256 != v.CheckSHA256 })
		switch {
		case changed: // it is of a check that is another one now, and was found missing above
		case v.Verdict == VerdictReject:
			withhold(Rejected)
		case v.Verdict != VerdictPass:
			withhold(Unverified)
		}
	}
	return out
}

// Judge decides about an answer after the end of its turn, from all verdicts in the log (K5). While the turn is the session's
// last, an admission that decides something new is appended; one that admits comes with receipts for the answer's calls,
// which will never run. Afterwards nothing is appended. It returns what the verdicts come to, whether later model inputs hold
// the answer, and what was appended. Errors: [ErrTurnOpen] while the turn has not ended, [ErrNoAnswer], and those of
// [Log.Append].
func (l *Log) Judge(ctx context.Context, turn TurnID, seq int64, due []CheckRef, receipts []*ToolSettled) (a *Admission, admitted bool, out []Entry, err error) {
	const op = "judge answer"
	out, err = l.write(ctx, op, func(t *tx, h *head) ([]Entry, error) {
		j, err := t.judged(h, turn, seq)
		if err != nil {
			return nil, err
		}
		a = Decide(j.Answer, seq, due, j.Verdicts)
		old := j.Admission
		if admitted = old != nil && old.Admitted; admitted || old != nil && !a.Admitted && old.Withheld == a.Withheld {
			return nil, nil
		}
		var newest TurnID
		var ended int64
		if err := t.row(`SELECT id, coalesce(ended, 0) FROM turn WHERE sid = ? ORDER BY seq DESC LIMIT 1`, []any{h.sid}, &newest, &ended); err != nil {
			return nil, err
		}
		switch {
		case newest != turn:
			return nil, nil
		case ended == 0:
			return nil, fmt.Errorf("%w: %s", ErrTurnOpen, turn)
		}
		bodies := []Body{a}
		if admitted = a.Admitted; admitted {
			for _, r := range receipts {
				bodies = append(bodies, r)
			}
		}
		return t.append(h, bodies...)
	})
	return a, admitted, out, err
}

// judged reads what the log says of an answer.
func (t *tx) judged(h *head, turn TurnID, seq int64) (Judged, error) {
	rows, err := t.rows(`SELECT seq, at, kind, hash, body FROM entry WHERE sid = ? AND seq >= ? AND kind IN ('answer', 'verdict', 'admission')
		ORDER BY seq`, h.sid, seq)
	if err != nil {
		return Judged{}, err
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return Judged{}, err
		}
		if r.kind != KindAnswer || r.seq == seq {
			entries = append(entries, r.entry(h.id))
		}
	}
	if err := rows.Err(); err != nil {
		return Judged{}, err
	}
	return LastAnswer(turn, entries)
}

// Judged is an answer of a turn with what was said and decided about it.
type Judged struct {
	Answer    *Answer
	Seq       int64
	Verdicts  []*Verdict
	Admission *Admission // the last one; nil: none, so that it is withheld
}

// ErrNoAnswer: the turn holds no answer that could be judged.
var ErrNoAnswer = errors.New("the turn has no answer to check")

// LastAnswer finds the last answer in the entries of a turn. [ErrNoAnswer].
func LastAnswer(turn TurnID, entries []Entry) (Judged, error) {
	var j Judged
	for _, e := range entries {
		switch b := e.Body.(type) {
		case *Answer:
			if b.Turn == turn {
				j = Judged{Answer: b, Seq: e.Seq}
			}
		case *Verdict:
			if j.Answer != nil && b.Answer == j.Seq && b.Turn == turn && b.AnswerSHA256 == j.Answer.SHA256() { // K4
				j.Verdicts = append(j.Verdicts, b)
			}
		case *Admission:
			if j.Answer != nil && b.Answer == j.Seq {
				j.Admission = b
			}
		}
	}
	if j.Answer == nil {
		return Judged{}, fmt.Errorf("%w: %s", ErrNoAnswer, turn)
	}
	return j, nil
}
