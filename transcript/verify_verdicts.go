package transcript

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// verdict checks that a verdict is bound to the answer that it names (K4), and remembers it.
func (c *sessionCheck) verdict(b *Verdict, seq int64) error {
	a, err := c.answer(b.Answer)
	if err != nil || a == nil {
		if err == nil && !c.damaged {
			c.problem(Problem{Seq: seq, What: fmt.Sprintf("the verdict of %q is about entry %d, which is no answer", b.Check, b.Answer)})
		}
		return err
	}
	if a.Turn != b.Turn || a.Step != b.Step || a.SHA256() != b.AnswerSHA256 {
		c.problem(Problem{Seq: seq, What: fmt.Sprintf("the verdict of %q is not about the answer that entry %d holds", b.Check, b.Answer)})
	}
	if c.verdicts == nil {
		c.verdicts = map[int64][]*Verdict{}
	}
	c.verdicts[b.Answer] = append(c.verdicts[b.Answer], b)
	return nil
}

// admission checks that one by checks is what the verdicts before it come to (K1, K4).
func (c *sessionCheck) admission(b *Admission, seq int64) error {
	if b.By != "checks" || c.damaged {
		return nil
	}
	a, err := c.answer(b.Answer)
	if err != nil || a == nil {
		return err
	}
	want := Decide(a, b.Answer, b.Checks, c.verdicts[b.Answer])
	if len(b.Checks) == 0 || want.Admitted != b.Admitted || want.Withheld != b.Withheld || want.Turn != b.Turn || !slices.Equal(want.Checks, b.Checks) {
		c.problem(Problem{Seq: seq, What: fmt.Sprintf("the admission of entry %d is not what the verdicts about it come to", b.Answer)})
	}
	return nil
}

// answer reads an answer; nil when the entry is another one or damaged.
func (c *sessionCheck) answer(seq int64) (*Answer, error) {
	var kind Kind
	var body []byte
	err := c.t.QueryRowContext(c.ctx, `SELECT kind, body FROM entry WHERE sid = ? AND seq = ?`, c.sid, seq).Scan(&kind, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := decodeBody(kind, body)
	if err != nil {
		return nil, nil // told already
	}
	a, _ := b.(*Answer)
	return a, nil
}
