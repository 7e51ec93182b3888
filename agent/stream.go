package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"fermata/agent/model"
	"fermata/transcript"
)

// stream is one request on its way and the answer that comes.
type stream struct {
	*run
	step    int
	try     int
	request transcript.RequestID
	sentAt  time.Time
	status  int
	first   time.Duration // until the first delta

	hold   bool                          // clients are sent it only when its checks have passed it
	spoken transcript.Spoken             // what clients were sent, or will be, in order
	shown  map[transcript.PartType]int64 // how many bytes of each type that is
	deltas chan received
	held   *received // read from deltas, but not joined to the delta before
	cancel context.CancelCauseFunc
	closed chan struct{} // the reading goroutine has ended
}

type received struct {
	d    model.Delta
	err  error
	mail bool // a message came instead: it is to be queued
}

// errBug is how an answer breaks off whose reading has panicked.
var errBug = &model.Error{Class: "internal", Message: "an error inside fermata; its log says more"}

// open starts the goroutine that reads the response; it ends when the stream ends or close is called.
func (st *stream) open(ctx context.Context, req model.Request) {
	ctx, st.cancel = context.WithCancelCause(ctx)
	st.deltas, st.shown = make(chan received, 256), map[transcript.PartType]int64{}
	st.closed = make(chan struct{})
	go func() {
		defer close(st.closed)
		defer close(st.deltas)
		defer func() {
			if !st.agent.bug("the reading of an answer", recover()) {
				return
			}
			select {
			case st.deltas <- received{err: errBug}:
			case <-ctx.Done():
			}
		}()
		for d, err := range st.m.Provider.Stream(ctx, req) {
			select {
			case st.deltas <- received{d: d, err: err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

// close closes the model connection and waits until its goroutine has ended.
func (st *stream) close() {
	st.cancel(ErrStopped)
	<-st.closed
}

// follow takes deltas until the answer ends, by itself or by a stop. A stop goes before a delta that came at the same
// time. Invariant: the text a stop keeps is the concatenation of the deltas clients were sent (invariant 5).
// Tests: TestAStopKeepsExactlyWhatWasShown.
func (st *stream) follow(ctx context.Context) (answer *transcript.Answer, ended bool, failure *model.Error, err error) {
	for {
		rec, ok := st.next()
		switch {
		case st.stopping():
			return nil, true, nil, st.stopped(ctx)
		case !ok:
			return nil, false, &model.Error{Class: model.Truncated, Message: "the provider's stream ended without saying so"}, nil
		case rec.mail:
			st.receive(ctx)
		case rec.err != nil:
			return nil, false, failureOf(rec.err), nil
		case rec.d.Kind == model.End:
			answer, ended, err = st.complete(ctx, rec.d)
			return answer, ended, nil, err
		case rec.d.Kind == model.Headers:
			st.status = rec.d.Status
		case rec.d.Kind == model.Text:
			err = st.say(transcript.PartText, rec.d.Text)
		case rec.d.Kind == model.Reasoning:
			err = st.say(transcript.PartReasoning, rec.d.Text)
		case rec.d.Kind == model.PartExtra:
			err = st.carry(rec.d)
		}
		if err != nil {
			return nil, true, nil, st.unrecorded(ctx, err)
		}
	}
}

// failureOf is err as a model's failure; what is none of that is ours and does not pass by waiting.
func failureOf(err error) *model.Error {
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	return &model.Error{Class: "internal", Message: err.Error(), Err: err}
}

// joinBound is how many bytes of waiting deltas become one: a fast model costs one commit for many deltas.
const joinBound = 32 << 10

// next waits for the next delta, or for a stop, whichever comes first. Texts of one kind that wait already come as one.
func (st *stream) next() (received, bool) {
	rec, ok := st.take(true)
	if !ok || !rec.text() {
		return rec, ok
	}
	var more strings.Builder
	for more.Len() < joinBound {
		r, ok := st.take(false)
		if !ok {
			break
		}
		if !r.text() || r.d.Kind != rec.d.Kind {
			st.held = &r
			break
		}
		more.WriteString(r.d.Text)
	}
	if more.Len() > 0 {
		rec.d.Text += more.String()
	}
	return rec, true
}

func (r received) text() bool {
	return r.err == nil && !r.mail && (r.d.Kind == model.Text || r.d.Kind == model.Reasoning)
}

// take takes one delta; without wait only one that is there already. False also means that the turn was stopped.
func (st *stream) take(wait bool) (received, bool) {
	if st.held != nil {
		r := *st.held
		st.held = nil
		return r, true
	}
	if !wait {
		select {
		case r, ok := <-st.deltas:
			return r, ok
		default:
			return received{}, false
		}
	}
	select {
	case <-st.stop:
		return received{}, false
	case <-st.inbox.bell:
		return received{mail: true}, true
	case r, ok := <-st.deltas:
		return r, ok
	}
}

// say makes a delta durable, then tells it (C1).
func (st *stream) say(part transcript.PartType, text string) error {
	if st.first == 0 {
		st.first = max(time.Since(st.sentAt), 1)
	}
	if err := st.s.log.Journal(st.request, st.id, st.step, part, text); err != nil {
		return err
	}
	st.spoken.Say(part, text)
	if !st.hold {
		st.tell(part, text)
	}
	return nil
}

// carry makes durable what goes back with a part, at once, so that neither a stop nor a kill costs it (T3). Nobody is told: it
// is nothing that could be shown.
func (st *stream) carry(d model.Delta) error {
	if err := st.s.log.JournalExtra(st.request, d.Part, d.Type, d.Extra); err != nil {
		return err
	}
	st.spoken.Carry(d.Part, d.Type, d.Extra)
	return nil
}

func (st *stream) tell(part transcript.PartType, text string) {
	st.s.hub.publish(Event{Delta: &Delta{Turn: st.id, Step: st.step, Part: part, Offset: st.shown[part], Text: text}})
	st.shown[part] += int64(len(text))
}

// holdBack keeps the entries of a held answer back until the returned function is called: that tells the answer first, if it is
// to be shown. It does nothing about an answer that was shown as it came.
func (st *stream) holdBack() (release func(show bool)) {
	if !st.hold {
		return func(bool) {}
	}
	st.s.hub.hold(st.s.log.Seq())
	return func(show bool) {
		for _, p := range st.spoken.Parts() {
			if show && p.Text != "" {
				st.tell(p.Type, p.Text)
			}
		}
		st.s.hub.release()
	}
}

// said is the answer as clients were sent it; nil when that is nothing but white space (S6).
func (st *stream) said(state transcript.AnswerState, cause string) *transcript.Answer {
	a := &transcript.Answer{Turn: st.id, Step: st.step, Request: st.request, State: state, Cause: cause, Parts: st.spoken.Parts()}
	for _, p := range a.Parts {
		if strings.TrimSpace(p.Text) != "" {
			return a
		}
	}
	return nil
}

func (st *stream) requestEnded(outcome string) transcript.RequestEnded {
	return transcript.RequestEnded{
		Request: st.request, Outcome: outcome, Status: st.status,
		FirstDelta: st.first.Milliseconds(), Millis: time.Since(st.sentAt).Milliseconds(),
	}
}

// stopped is S3 for an answer that was being said: nothing more is told, the answer is committed, then the connection is
// closed, then the turn ends. No tool of this step can run: its answer is not complete (S5).
func (st *stream) stopped(ctx context.Context) error {
	answer := st.said(transcript.Stopped, "")
	due := st.due(answer)
	show, release := false, st.holdBack()
	defer func() { release(show) }()
	entries, err := st.s.log.Conclude(ctx, transcript.Conclusion{Ended: st.requestEnded("stopped"), Answer: answer, Checked: len(due) > 0})
	st.cancel(ErrStopped)
	if err != nil {
		return err
	}
	st.told(entries)
	show = true
	kept := keptOf(answer)
	if len(due) > 0 { // K6: after the close
		if show, err = st.judge(ctx, due, nil); err != nil {
			return err
		}
		if st.hold && !show {
			kept = nil // nobody was shown it
		}
	}
	return st.endStopped(ctx, nil, kept)
}

func keptOf(a *transcript.Answer) *transcript.Kept {
	if a == nil {
		return nil
	}
	h := sha256.New()
	k := &transcript.Kept{}
	for _, p := range a.Parts {
		h.Write([]byte(p.Text))
		k.Bytes += int64(len(p.Text))
		if p.Type == transcript.PartText {
			k.Words += len(strings.Fields(p.Text))
		}
	}
	k.SHA256 = hex.EncodeToString(h.Sum(nil))
	return k
}

// broken records a try that failed: what was said becomes an attempt (F1). The last one ends the turn; before another
// one, clients are told that what they were shown is retracted (F2).
func (st *stream) broken(ctx context.Context, failure *model.Error, last bool) error {
	if failure.Status != 0 {
		st.status = failure.Status
	}
	c := transcript.Conclusion{Ended: st.requestEnded("broken"), Answer: st.said(transcript.Broken, string(failure.Class))}
	c.Ended.Error = failure.Error()
	if last {
		c.TurnEnded = &transcript.TurnEnded{
			Turn: st.id, Outcome: transcript.TurnFailed, Cause: string(failure.Class), Error: failure.Error(),
		}
	}
	if err := st.conclude(ctx, c); err != nil {
		return err
	}
	if !last {
		st.s.hub.publish(Event{Retracted: &Retracted{Turn: st.id, Step: st.step, Try: st.try, Why: failure.Error()}})
	}
	return nil
}

// unrecorded ends a turn whose delta could not be made durable. It was told to nobody, so nothing shown is lost; what was
// told before is kept when the log takes it again.
func (st *stream) unrecorded(ctx context.Context, cause error) error {
	st.cancel(cause)
	ended := st.requestEnded("broken")
	ended.Error = cause.Error()
	err := st.conclude(ctx, transcript.Conclusion{
		Ended: ended, Answer: st.said(transcript.Broken, "storage"),
		TurnEnded: &transcript.TurnEnded{Turn: st.id, Outcome: transcript.TurnFailed, Cause: "storage", Error: cause.Error()},
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	return nil
}

// complete commits an answer whose terminal event came, and has its checks run. Without tool calls, or when checks withhold
// it, the turn ends: no tool of a withheld answer is run.
func (st *stream) complete(ctx context.Context, end model.Delta) (*transcript.Answer, bool, error) {
	answer := &transcript.Answer{
		Turn: st.id, Step: st.step, Request: st.request, State: transcript.Complete, Finish: end.Finish, Parts: end.Parts,
	}
	if shown := st.said(transcript.Complete, ""); shown != nil &&
		(shown.Text() != answer.Text() || shown.Reasoning() != answer.Reasoning()) {
		// P1: what the user saw is what counts, whatever a dialect makes of it in the end.
		st.agent.o.Log.Error("the dialect's answer differs from its deltas", "request", st.request)
		for _, p := range answer.Parts {
			if p.Type == transcript.PartCall {
				shown.Parts = append(shown.Parts, p)
			}
		}
		shown.Finish = end.Finish
		answer = shown
	}
	c := transcript.Conclusion{Ended: st.requestEnded("complete"), Answer: answer}
	c.Ended.Usage = end.Usage
	last := len(answer.Calls()) == 0
	completed := &transcript.TurnEnded{Turn: st.id, Outcome: transcript.TurnCompleted}
	due := st.due(answer)
	if c.Checked = len(due) > 0; last && !c.Checked {
		c.TurnEnded = completed
	}
	show, release := false, st.holdBack()
	defer func() { release(show) }()
	err := st.conclude(ctx, c)
	if err != nil || !c.Checked {
		show = err == nil
		return answer, last || err != nil, err
	}
	ended := false
	show, err = st.judge(ctx, due, func(a *transcript.Admission) *transcript.TurnEnded {
		switch {
		case a.Admitted && last:
			ended = true
			return completed
		case !a.Admitted && !st.stopping():
			ended = true
			return st.withheldEnd(a)
		}
		return nil
	})
	if err == nil && !show && !ended {
		ended, err = true, st.endStopped(ctx, nil, nil)
	}
	return answer, ended || err != nil, err
}
