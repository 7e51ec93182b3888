package agent

import (
	"context"
	"errors"
	"fmt"

	"fermata/agent/check"
	"fermata/transcript"
)

// ErrNoCheck is returned by [Agent.Recheck] when no check is configured that judges the answer.
var ErrNoCheck = errors.New("no check is configured for this answer; add a [[check]] to the config file")

// Rechecked says what a recheck came to.
type Rechecked struct {
	Session  transcript.SessionID
	Turn     transcript.TurnID
	Ran      []string // names of the checks that were run: those without a verdict of pass or reject
	Admitted bool     // later model inputs hold the answer
	Late     bool     // another turn has started since: the verdicts are recorded and change nothing (K5)
	Withheld []Withholding
}

// Recheck runs what is missing of the checks of a turn's last answer, on that very answer (K5); "" means the last turn of the
// session used last. What is missing are the checks, as they are configured now, that have neither passed nor rejected it: a
// check that failed is run again. When all have passed it, and the turn is still its session's last, the answer is admitted;
// its tool calls stay undone and get receipts that say so. The end of ctx cuts the checks short, and is no error.
//
// Errors: [transcript.ErrNoTurn], a [*BusyError] while the turn runs, [transcript.ErrNoAnswer] when nothing was said or the
// answer broke off by itself, [ErrNoCheck], [ErrClosed], and those of the store.
func (a *Agent) Recheck(ctx context.Context, id transcript.TurnID) (Rechecked, error) {
	s, info, err := a.endedTurn(ctx, id)
	if err != nil {
		return Rechecked{}, err
	}
	done, err := s.working()
	if err != nil {
		return Rechecked{}, err
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running := ctx
	ctx = context.WithoutCancel(ctx) // what was found out is recorded all the same
	go func() {                      // ends when this function does
		select {
		case <-a.state.gone:
			cancel(ErrShutdown)
		case <-running.Done():
		}
	}()

	entries, err := a.o.Store.Entries(ctx, info.Session, info.Seq-1, 0)
	if err != nil {
		return Rechecked{}, err
	}
	past, err := transcript.LastAnswer(info.Turn, entries)
	if err != nil {
		return Rechecked{}, err
	}
	if past.Answer.State == transcript.Broken {
		return Rechecked{}, fmt.Errorf("%w: the last one of %s broke off by itself", transcript.ErrNoAnswer, info.Turn)
	}
	out := Rechecked{Session: info.Session, Turn: info.Turn}
	if past.Admission != nil && past.Admission.Admitted {
		out.Admitted = true
		return out, nil
	}
	var changed edits
	var prompt []transcript.PromptPart
	for _, e := range entries {
		if e.Seq > info.EndedSeq {
			break
		}
		changed.add(e.Body)
		if b, ok := e.Body.(*transcript.TurnStarted); ok {
			prompt = b.Prompt
		}
	}
	due := dueChecks(a.o.Checks, past.Answer, &changed)
	if len(due) == 0 {
		return Rechecked{}, ErrNoCheck
	}
	j := judged{past.Answer, past.Seq}
	verdicts := past.Verdicts
	came := check.Run(running, missing(due, verdicts), s.input(ctx, j, prompt, &changed))
	for v := range came {
		verdict := j.verdict(v)
		verdicts = append(verdicts, verdict)
		out.Ran = append(out.Ran, v.Check.Name)
		if err == nil {
			if err = s.record(func() ([]transcript.Entry, error) { return s.log.Append(ctx, verdict) }); err != nil {
				cancel(err)
			}
		}
	}
	if err != nil {
		return Rechecked{}, err
	}
	var receipts []*transcript.ToolSettled
	for _, c := range j.answer.Calls() {
		receipts = append(receipts, receipt(info.Turn, j.answer.Step, c, transcript.ToolNotStarted, transcript.CauseWithheld, ""))
	}
	out.Late = true
	out.Withheld = withheldBy(transcript.Decide(j.answer, j.seq, refs(due), verdicts), verdicts)
	err = s.record(func() (entries []transcript.Entry, err error) {
		if s.current != nil {
			return nil, nil
		}
		// Under the lease no other daemon begins a turn, whose notice would say that the answer is withheld.
		if err := s.leaseLocked(ctx); errors.Is(err, transcript.ErrLeased) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		defer func() { _ = s.log.Release(ctx) }() // an expired lease is as good as a released one
		_, out.Admitted, entries, err = s.log.Judge(ctx, info.Turn, j.seq, refs(due), receipts)
		out.Late = !out.Admitted && s.past.turn != info.Turn
		return entries, err
	})
	return out, err
}

// endedTurn finds a turn that is over, in its session.
func (a *Agent) endedTurn(ctx context.Context, id transcript.TurnID) (*Session, transcript.TurnInfo, error) {
	var none transcript.TurnInfo
	if id == "" {
		var err error
		if id, err = a.lastTurn(ctx); err != nil {
			return nil, none, err
		}
	}
	info, err := a.o.Store.Turn(ctx, id)
	if err != nil {
		return nil, none, err
	}
	s, err := a.Open(ctx, info.Session)
	if err != nil {
		return nil, none, err
	}
	if info, err = a.o.Store.Turn(ctx, id); err != nil { // it may have been repaired just now
		return nil, none, err
	}
	if info.Ended == nil {
		return nil, none, &BusyError{Turn: id}
	}
	return s, info, nil
}

// missing are the checks that have neither passed nor rejected an answer.
func missing(due []check.Definition, verdicts []*transcript.Verdict) []check.Definition {
	said := map[transcript.CheckRef]bool{}
	for _, v := range transcript.LastVerdicts(verdicts) {
		if v.Verdict != transcript.VerdictError {
			said[transcript.CheckRef{Name: v.Check, SHA256: v.CheckSHA256}] = true
		}
	}
	var out []check.Definition
	for i, ref := range refs(due) {
		if !said[ref] {
			out = append(out, due[i])
		}
	}
	return out
}

// record appends entries outside of a turn, and tells them.
func (s *Session) record(write func() ([]transcript.Entry, error)) error {
	s.lockCleared()
	defer s.mu.Unlock()
	entries, err := write()
	if err != nil {
		return err
	}
	if s.current == nil {
		for _, e := range entries {
			s.past.add(e.Body)
		}
	}
	s.hub.publishEntries(entries)
	return nil
}
