package transcript

import "fmt"

// queued shows a message that was sent while a turn ran: in full, unless it is shown in full where it was delivered.
func (r *renderer) queued(b *MessageQueued) {
	m := r.past.messages.byID[b.Message]
	switch m.State {
	case MessageInTurn:
		r.para(italic("You queued a message; it was delivered below"))
		return
	case MessageStarted:
		r.para(italic("You queued a message; the next turn starts with it"))
		return
	case MessageHandedOut:
		r.para("*You queued, and were handed back* (" + returnedBecause(m.Cause) + ", not sent):")
	default:
		r.para("*You queued:*")
	}
	r.para(quote(said(b.Prompt)))
}

func (r *renderer) delivered(b *MessageDelivered) {
	r.para(fmt.Sprintf("*You, delivered before step %d:*", b.Step))
	r.para(quote(said(b.Prompt)))
}

// returnedBecause is the cause of a message.returned in words.
func returnedBecause(cause string) string {
	switch cause {
	case CauseStoppedByUser:
		return "stopped by you"
	case CauseTurnFailed:
		return "the turn had failed"
	case CauseDaemonDied, CauseShutdown:
		return "fermata had ended"
	case CauseClientGone:
		return "the client had gone"
	}
	return escapeInline(cause)
}
