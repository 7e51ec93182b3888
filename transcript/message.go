package transcript

import (
	"context"
	"fmt"
)

// MessageID names a queued message (S10); unique over all sessions of a database.
type MessageID string

// NewMessageID makes a fresh message id; it begins with m_.
func NewMessageID() MessageID { return MessageID(newID("m_")) }

// The kinds of entries about messages that were sent while a turn ran. A message has one message.queued, and then at most
// one end: message.delivered, message.returned, or a turn.started that names it in Queued. Between turns none waits for its
// end, unless the daemon died: then [Log.Repair] hands it back.
const (
	KindMessageQueued    Kind = "message.queued"
	KindMessageDelivered Kind = "message.delivered"
	KindMessageReturned  Kind = "message.returned"
)

// MessageQueued is a user message that waits behind the running turn. It is no part of the model input.
type MessageQueued struct {
	Message  MessageID    `json:"message"`
	Prompt   []PromptPart `json:"prompt"`
	ClientID string       `json:"client_id,omitzero"` // makes it safe to repeat; not one of a turn's
}

// MessageDelivered puts a queued message into the running turn, behind the results of its tools: a user message without a
// notice. Step is the first request that holds it. Prompt is that of its MessageQueued, because a fragment is a copy of
// the entry that it says.
type MessageDelivered struct {
	Message MessageID    `json:"message"`
	Turn    TurnID       `json:"turn"`
	Step    int          `json:"step"`
	Prompt  []PromptPart `json:"prompt"`
}

// MessageReturned hands a queued message back to the client: it was sent to no model and will not be by itself (S10).
// Cause is CauseStoppedByUser, CauseTurnFailed, CauseDaemonDied, or that of a stop that was not the user's: "client_gone",
// "shutdown".
type MessageReturned struct {
	Message MessageID `json:"message"`
	Cause   string    `json:"cause"`
}

func (*MessageQueued) Kind() Kind    { return KindMessageQueued }
func (*MessageDelivered) Kind() Kind { return KindMessageDelivered }
func (*MessageReturned) Kind() Kind  { return KindMessageReturned }

func (*MessageQueued) body()    {}
func (*MessageDelivered) body() {}
func (*MessageReturned) body()  {}

// user is the message as the encoders know user messages: [TurnStarted.UserText] without a notice.
func (b *MessageDelivered) user() *TurnStarted { return &TurnStarted{Turn: b.Turn, Prompt: b.Prompt} }

// MessageState says what became of a queued message.
type MessageState string

// The states of a queued message.
const (
	MessageWaiting   MessageState = "queued"
	MessageStarted   MessageState = "started"   // a turn began with it
	MessageInTurn    MessageState = "delivered" // into the turn that ran
	MessageHandedOut MessageState = "returned"
)

// MessageInfo is one queued message.
type MessageInfo struct {
	MessageQueued
	State MessageState
	Turn  TurnID // that it started or was delivered into, "" for none
	Cause string // of a returned one
}

// messageFates folds entries into what became of the messages in them.
type messageFates struct {
	order []MessageID
	byID  map[MessageID]*MessageInfo
}

func (f *messageFates) add(b Body) {
	switch b := b.(type) {
	case *MessageQueued:
		if f.byID == nil {
			f.byID = map[MessageID]*MessageInfo{}
		}
		f.order = append(f.order, b.Message)
		f.byID[b.Message] = &MessageInfo{MessageQueued: *b, State: MessageWaiting}
	case *MessageDelivered:
		f.end(b.Message, MessageInTurn, b.Turn, "")
	case *MessageReturned:
		f.end(b.Message, MessageHandedOut, "", b.Cause)
	case *TurnStarted:
		for _, m := range b.Queued {
			f.end(m, MessageStarted, b.Turn, "")
		}
	}
}

func (f *messageFates) end(id MessageID, s MessageState, turn TurnID, cause string) {
	if m := f.byID[id]; m != nil {
		m.State, m.Turn, m.Cause = s, turn, cause
	}
}

// waiting are the messages without an end, in the order in which they were queued.
func (f *messageFates) waiting() (out []MessageID) {
	for _, id := range f.order {
		if f.byID[id].State == MessageWaiting {
			out = append(out, id)
		}
	}
	return out
}

const selectMessages = `SELECT seq, at, kind, hash, body FROM entry WHERE sid = ? AND seq > ?
	AND kind IN ('message.queued', 'message.delivered', 'message.returned', 'turn.started') ORDER BY seq`

// messages folds what happened to messages after an entry.
func (s *Store) messages(ctx context.Context, sid, after int64) (messageFates, error) {
	var f messageFates
	rows, err := s.reads.QueryContext(ctx, selectMessages, sid, after)
	if err != nil {
		return f, err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return f, err
		}
		if b, err := decodeBody(r.kind, r.body); err == nil { // a damaged one says nothing
			f.add(b)
		}
	}
	return f, rows.Err()
}

// MessageByClientID finds the message that a client queued under an id of its own, and reports whether there is one.
func (s *Store) MessageByClientID(ctx context.Context, id SessionID, clientID string) (MessageInfo, bool, error) {
	const op = "message by client id"
	sid, err := s.sidOf(ctx, id)
	if err != nil {
		return MessageInfo{}, false, s.fail(op, err)
	}
	f, err := s.messages(ctx, sid, 0)
	if err != nil {
		return MessageInfo{}, false, s.fail(op, err)
	}
	for _, m := range f.byID {
		if m.ClientID == clientID && clientID != "" {
			return *m, true, nil
		}
	}
	return MessageInfo{}, false, nil
}

// checkMessage checks that a message was queued once, and ended at most once and after that.
func (c *sessionCheck) checkMessage(e Entry) {
	end := func(id MessageID) {
		if c.pending[id] == 0 && !c.damaged {
			c.problem(Problem{Seq: e.Seq, What: fmt.Sprintf("message %s ended without being queued, or twice", id)})
		}
		delete(c.pending, id)
	}
	switch b := e.Body.(type) {
	case *MessageQueued:
		if c.pending == nil {
			c.pending = map[MessageID]int64{}
		}
		c.pending[b.Message] = e.Seq
	case *MessageDelivered:
		if b.Turn != c.open {
			c.problem(Problem{Seq: e.Seq, What: fmt.Sprintf("message %s was delivered into %s, which is not open", b.Message, b.Turn)})
		}
		end(b.Message)
	case *MessageReturned:
		end(b.Message)
	case *TurnStarted:
		for _, id := range b.Queued {
			end(id)
		}
	}
}
