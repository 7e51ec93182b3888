package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fermata/transcript"
)

// past is what the log holds that the next notice must tell: how the last turn ended, and results that came too late.
type past struct {
	turn    transcript.TurnID
	ended   *transcript.TurnEnded // nil: no turn yet
	spoke   bool                  // the turn's stopped answer is in the model input
	attempt bool                  // the turn has an answer that is not
	kept    bool                  // the user has kept a broken one (F4)
	cut     bool                  // the turn's last answer was stopped
	words   bool                  // that answer has more than reasoning
	shown   bool                  // words of the turn are in the model input
	checks  checksSaid            // about it
	late    []*transcript.ToolSettled

	reverting *transcript.RevertStarted // without an end yet
	moves     []revertMove              // of reverts since the turn
}

func (p *past) add(b transcript.Body) {
	switch b := b.(type) {
	case *transcript.TurnStarted:
		*p = past{turn: b.Turn, late: slices.DeleteFunc(p.late, func(r *transcript.ToolSettled) bool { return strings.Contains(b.Notice, lateLine(r)) })}
	case *transcript.Answer:
		p.spoke, p.attempt = b.State == transcript.Stopped, b.State == transcript.Broken
		p.cut, p.checks, p.words = p.spoke, checksSilent, b.Speaks()
	case *transcript.Admission:
		p.shown = p.shown || b.Admitted && p.words
		if b.By == "user" && b.Admitted {
			p.attempt, p.kept = false, true
		}
		if b.By == "checks" {
			p.spoke = p.cut && b.Admitted
			switch {
			case !b.Admitted:
				p.checks = checksWithhold
			case p.ended != nil:
				p.checks = checksPassLate
			}
		}
	case *transcript.ToolSettled:
		if b.Late {
			p.late = append(p.late, b)
		}
	case *transcript.RevertStarted:
		p.reverting = b
	case *transcript.RevertEnded:
		p.reverted(b)
	case *transcript.TurnEnded:
		p.ended = b
	}
}

// checksSaid is what checks said about the last answer of a turn, as far as the next notice goes.
type checksSaid int

const (
	checksSilent   checksSaid = iota // nothing, or that it passes
	checksWithhold                   // it is not in the model input (K1)
	checksPassLate                   // it is, since a recheck after the turn's end (K5)
)

// readPast folds the entries of a session's last turn, found from entry seq, the newest, backwards. Those of the turn before
// it are read too: a result may have come late just when the last turn began, and not be in its notice.
func readPast(ctx context.Context, store *transcript.Store, id transcript.SessionID, seq int64) (past, error) {
	const page = 64
	var tail []transcript.Entry
	turns := 0
	for after := seq; after > 0; {
		from := max(after-page, 0)
		entries, err := store.Entries(ctx, id, from, int(after-from))
		if err != nil {
			return past{}, err
		}
		tail, after = append(entries, tail...), from
		for _, e := range entries {
			if e.Kind() == transcript.KindTurnStarted {
				turns++
			}
		}
		if turns > 1 {
			break
		}
	}
	var p past
	for _, e := range tail {
		p.add(e.Body)
	}
	return p, nil
}

// notice is what the model is told at the start of the next user message, "" when there is nothing to tell (S11, D3).
// It is stored in turn.started: a later version may word it otherwise without changing what was sent.
func (p *past) notice(redirects transcript.TurnID) string {
	if p.ended == nil {
		return ""
	}
	var lines []string
	if p.checks == checksWithhold {
		lines = append(lines, "[Your last answer was withheld by a check and is not shown here.]")
	}
	switch revise := redirects != "" && redirects == p.turn; {
	case revise && p.spoke && !p.words && p.ended.Cause == "user":
		lines = append(lines, "[The user stopped you while you were still thinking. What follows says what to do instead.]")
	case revise && p.spoke && p.ended.Cause == "user":
		lines = append(lines, "[The user stopped you. Treat the answer above as a first attempt and revise it as follows.]")
	case revise && p.ended.Silent && p.ended.Outcome == transcript.TurnStopped && p.ended.Cause == "user":
		lines = append(lines, "[The user stopped you before you had said anything. What follows replaces the request above.]")
	case revise && (p.checks == checksWithhold || !p.shown):
		lines = append(lines, "[The user redirects you: what follows says what to do instead.]")
	case revise:
		lines = append(lines, "[The user redirects you. Treat what you did above as a first attempt and revise it as follows.]")
	case p.kept:
		lines = append(lines, p.keptNotice())
	case p.ended.Outcome == transcript.TurnStopped && p.spoke && !p.words:
		lines = append(lines, "["+p.stopper()+" you while you were still thinking.]")
	case p.ended.Outcome == transcript.TurnStopped && p.spoke:
		lines = append(lines, "["+p.stopper()+" your answer above where it ends.]")
	case p.ended.Outcome == transcript.TurnStopped && p.ended.Silent:
		lines = append(lines, "["+p.stopper()+" you before you had said anything.]")
	case p.ended.Outcome == transcript.TurnStopped:
		lines = append(lines, "["+p.stopper()+" you at this point.]")
	case p.ended.Outcome == transcript.TurnFailed && p.checks != checksSilent: // that is all there is to say
	case p.ended.Outcome == transcript.TurnAbandoned && p.checks == checksPassLate:
		lines = append(lines, "[The last turn was cut off when fermata itself ended.]")
	case p.ended.Outcome == transcript.TurnFailed && p.ended.Cause == causeMaxSteps:
		lines = append(lines, "[The last turn ended at its limit of model requests.]")
	case p.ended.Outcome == transcript.TurnFailed && p.attempt:
		lines = append(lines, "[Your last answer broke off by an error and is not shown here.]")
	case p.ended.Outcome == transcript.TurnFailed:
		lines = append(lines, "[The last turn ended with an error before you had answered.]")
	case p.ended.Outcome == transcript.TurnAbandoned:
		lines = append(lines, "[The last turn was cut off when fermata itself ended. What you were saying then is not shown here.]")
	}
	lines = append(lines, p.revertLines()...)
	for _, r := range p.late {
		lines = append(lines, lateLine(r))
	}
	return strings.Join(lines, "\n")
}

// stopper is who stopped the last turn, and that it was stopped (S8).
func (p *past) stopper() string {
	switch p.ended.Cause {
	case "client_gone":
		return "The user's editor was closed, which stopped"
	case "shutdown":
		return "fermata was shut down, which stopped"
	}
	return "The user stopped"
}

// lateLine tells of a result that came after its call had been settled as unknown (S7). It stands in the user's message: what
// could end the brackets, or lies on several lines, is fenced, so that no program's output is taken for the user's words.
func lateLine(r *transcript.ToolSettled) string {
	begin := fmt.Sprintf("[The call %s of %s came back after all, %s:", r.Call, r.Name, r.State)
	text := clip(r.Output, 2000)
	if !strings.ContainsAny(text, "]\n\r") {
		return begin + " " + text + "]"
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return begin + "]\n" + fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// clip keeps at most n bytes of s, whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}

// receipt is a result that the daemon writes for a call that has none of its own (S7, S8).
func receipt(turn transcript.TurnID, step int, c transcript.Call, state transcript.ToolState, cause, why string) *transcript.ToolSettled {
	var text string
	switch {
	case state == transcript.ToolUnknown:
		text = "[result unknown: the call was running when " + stopperOf(cause) + " and did not come back in time. It may have taken effect.]"
	case cause == transcript.CauseStoppedByUser, cause == transcript.CauseClientGone, cause == transcript.CauseShutdown:
		text = "[not run: " + stopperOf(cause) + " before this call was started.]"
	case cause == transcript.CausePermissionDenied:
		text = "[not run: permission denied" + because(why) + ".]"
	case cause == transcript.CauseWithheld:
		text = "[not run: a check withheld this answer, and let it through only after the turn had ended.]"
	case cause == transcript.CauseTurnFailed:
		text = "[not run: the turn ended with an error before this call was started" + because(why) + ".]"
	default:
		text = "[not run" + because(why) + ".]"
	}
	return &transcript.ToolSettled{Turn: turn, Step: step, Call: c.ID, Name: c.Name, State: state, Cause: cause, Output: text}
}

// stopperOf tells who stopped a turn by the cause that its receipts state.
func stopperOf(cause string) string {
	switch cause {
	case transcript.CauseClientGone:
		return "the turn was stopped because the user's editor was closed"
	case transcript.CauseShutdown:
		return "the turn was stopped because fermata was shut down"
	}
	return "the user stopped the turn"
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + strings.TrimRight(why, ".")
}
