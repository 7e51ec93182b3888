package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fermata/agent/check"
	"fermata/transcript"
)

// Withholding is why an answer with checks is not in later model inputs, as far as one check goes.
type Withholding struct {
	Check   string
	Verdict transcript.VerdictWord // "" when there is none: it was cut short, or never run
	Reason  string
}

func (w Withholding) String() string {
	what := w.Check + " gave no verdict"
	switch w.Verdict {
	case transcript.VerdictReject:
		what = w.Check + " rejects it"
	case transcript.VerdictError:
		what = w.Check + " failed"
	}
	if first, _, _ := strings.Cut(w.Reason, "\n"); first != "" {
		what += ": " + first
	}
	return what
}

// dueChecks are those of all that an answer has: on answers each of them; on edits too when it is its turn's last and the turn
// has changed files.
func dueChecks(all []check.Definition, a *transcript.Answer, changed *edits) []check.Definition {
	last := a.State == transcript.Stopped || len(a.Calls()) == 0
	var due []check.Definition
	for _, d := range all {
		if d.Judges() == check.Answer || last && len(changed.done()) > 0 {
			due = append(due, d)
		}
	}
	return due
}

func refs(checks []check.Definition) []transcript.CheckRef {
	var out []transcript.CheckRef
	for i := range checks {
		out = append(out, transcript.CheckRef{Name: checks[i].Name, SHA256: checks[i].SHA256()})
	}
	return out
}

// judged is an answer that is recorded and that checks are to judge.
type judged struct {
	answer *transcript.Answer
	seq    int64
}

func (j judged) verdict(v check.Verdict) *transcript.Verdict {
	return &transcript.Verdict{
		Turn: j.answer.Turn, Step: j.answer.Step, Answer: j.seq, AnswerSHA256: j.answer.SHA256(),
		Check: v.Check.Name, CheckSHA256: v.Check.SHA256(),
		Verdict: v.Word, Reason: v.Reason, Millis: v.Took.Milliseconds(),
	}
}

// input is what checks of the session are given about an answer.
func (s *Session) input(ctx context.Context, j judged, prompt []transcript.PromptPart, changed *edits) check.Input {
	return check.Input{
		Session: s.ID(), Turn: j.answer.Turn, Step: j.answer.Step, Workspace: s.Workspace(), Prompt: prompt, Answer: j.answer,
		Files:   func() ([]check.File, error) { return changed.files(ctx, s.agent.o.Store) },
		Secrets: s.agent.o.Secrets,
	}
}

// withheldBy are the reasons of an admission that withholds, by the names of the checks.
func withheldBy(a *transcript.Admission, verdicts []*transcript.Verdict) []Withholding {
	if a == nil || a.Admitted {
		return nil
	}
	var out []Withholding
	last := transcript.LastVerdicts(verdicts)
	for _, v := range last {
		due := slices.IndexFunc(a.Checks, func(c transcript.CheckRef) bool { return c.Name == v.Check })
		switch {
		case due >= 0 && a.Checks[due].SHA256 != v.CheckSHA256:
			out = append(out, Withholding{Check: v.Check, Reason: "it is defined otherwise since its last verdict"})
		case v.Verdict != transcript.VerdictPass:
			out = append(out, Withholding{v.Check, v.Verdict, v.Reason})
		}
	}
	for _, c := range a.Checks {
		if !slices.ContainsFunc(last, func(v *transcript.Verdict) bool { return v.Check == c.Name }) {
			out = append(out, Withholding{Check: c.Name})
		}
	}
	slices.SortFunc(out, func(a, b Withholding) int { return strings.Compare(a.Check, b.Check) })
	return out
}

func names(ws []Withholding) []string {
	var out []string
	for _, w := range ws {
		out = append(out, w.Check)
	}
	return out
}

// due are the checks that an answer of this turn has.
func (r *run) due(a *transcript.Answer) []check.Definition {
	if a == nil {
		return nil
	}
	return dueChecks(r.agent.o.Checks, a, &r.edits)
}

// holds reports whether the next answer is shown only when its checks have passed it.
func (r *run) holds() bool {
	return slices.ContainsFunc(r.agent.o.Checks, func(d check.Definition) bool {
		return d.Hold && (d.Judges() == check.Answer || len(r.edits.done()) > 0)
	})
}

// judge has the checks of the turn's last answer run, all to their ends (K3), and reports whether they admit it. Each verdict is
// committed as it comes, the last one in one transaction with the admission that they come to (K1) and with the turn's
// end, if end makes one of it. A stop that arrives meanwhile cuts the checks short: what has no verdict then withholds the
// answer. Those of a stopped answer are cut short only when the client is gone or the daemon shuts down (K6, S14).
func (r *run) judge(ctx context.Context, due []check.Definition, end func(*transcript.Admission) *transcript.TurnEnded) (admitted bool, err error) {
	j := r.answered
	running, cancel := context.WithCancelCause(ctx)
	stop, left := r.stop, r.left
	if r.stopping() {
		stop = nil
	}
	came := check.Run(running, due, r.s.input(ctx, j, r.reporter.r.Prompt, &r.edits))
	defer func() {
		cancel(nil)
		for range came { // until no program of them is alive
		}
	}()
	var verdicts []*transcript.Verdict
	var last []transcript.Body
	for open := true; open; {
		select {
		case <-stop:
			stop = nil
			cancel(ErrStopped)
		case <-left:
			left = nil
			cancel(ErrClientGone)
		case <-r.inbox.bell:
			r.receive(ctx)
		case v, ok := <-came:
			if open = ok; !ok {
				break
			}
			verdict := j.verdict(v)
			if verdicts = append(verdicts, verdict); len(verdicts) == len(due) {
				last, open = append(last, verdict), false
			} else if err := r.append(ctx, verdict); err != nil {
				return false, err
			}
		}
	}
	admission := transcript.Decide(j.answer, j.seq, refs(due), verdicts)
	r.withheld = withheldBy(admission, verdicts)
	last = append(last, admission)
	if end != nil {
		switch ended := end(admission); {
		case ended == nil:
		case ended.Outcome == transcript.TurnCompleted && !r.stopping():
			last = append(last, ended) // what waits starts the next turn (S10)
		default:
			return admission.Admitted, r.end(ctx, ended, last...)
		}
	}
	return admission.Admitted, r.append(ctx, last...)
}

func (r *run) append(ctx context.Context, bodies ...transcript.Body) error {
	entries, err := r.s.log.Append(ctx, bodies...)
	if err == nil {
		r.told(entries)
	}
	return err
}

// withheldEnd is the end of a turn whose complete answer checks withheld: it failed, in the sense that what was asked for is
// not there to go on from; that the answer is wrong it does not say (K2).
func (r *run) withheldEnd(a *transcript.Admission) *transcript.TurnEnded {
	var why []string
	for _, w := range r.withheld {
		why = append(why, w.String())
	}
	return &transcript.TurnEnded{
		Turn: r.id, Outcome: transcript.TurnFailed, Cause: a.Withheld, Withheld: names(r.withheld),
		Error: fmt.Sprintf("the answer is withheld: %s", strings.Join(why, "; ")),
	}
}
