package wire

import (
	"encoding/json"

	"fermata/transcript"
)

// TurnQueueParams send a message while a turn runs (S10). It is delivered after the next tool results of that turn; when
// the turn comes to its end first, all that waits starts the next one; where no turn runs it starts one. A turn that is
// stopped or fails hands it back, in its TurnResult.
type TurnQueueParams struct {
	// Session is where it is sent; a client that does not follow the session yet does so from now on.
	Session transcript.SessionID `json:"session"`
	// Prompt is what the user says: at least one part.
	Prompt []PromptPart `json:"prompt"`
	// ClientID makes it safe to repeat: a second message of that id is not sent, and is answered with what became of the
	// first. It has nothing to do with the client ids of turns.
	ClientID string `json:"clientId,omitzero"`
}

// TurnQueueResult is the answer at once; the message is in the log by then. What becomes of it later is told by events:
// message.delivered, message.returned, or a turn.started that names it in queued.
type TurnQueueResult struct {
	// Message is its id in the log.
	Message transcript.MessageID `json:"message"`
	// State is "queued" or "started"; of a repeated message also "delivered", and of one that came together with a stop
	// "returned".
	State transcript.MessageState `json:"state"`
	// Turn is the turn that it waits behind, has started or was delivered into.
	Turn transcript.TurnID `json:"turn,omitzero"`
	// Cause says why it was returned, as in Returned.
	Cause string `json:"cause,omitzero"`
}

// Returned is a queued message that was handed back: it was sent to no model and will not be by itself. Offer it again.
type Returned struct {
	// Message is its id in the log.
	Message transcript.MessageID `json:"message"`
	// ClientID is the client's own id for it.
	ClientID string `json:"clientId,omitzero"`
	// Prompt is what the user had said.
	Prompt []transcript.PromptPart `json:"prompt"`
	// Cause is "stopped_by_user", "turn_failed", "client_gone", "shutdown" or "daemon_died".
	Cause string `json:"cause"`
}

// TurnRetryParams try again what the session's last turn was asked, which was stopped or failed (F3). The request is
// answered at the end of the new turn. All may be absent.
type TurnRetryParams struct {
	// Turn names the turn to try again. Absent: the last one of the session used last.
	Turn transcript.TurnID `json:"turn,omitzero"`
	// ClientID is as in TurnStartParams.
	ClientID string `json:"clientId,omitzero"`
	// Model is as in TurnStartParams.
	Model string `json:"model,omitzero"`
	// WorkDoneToken is LSP's: progress is reported on it.
	WorkDoneToken json.RawMessage `json:"workDoneToken,omitzero"`
}

// TurnAdoptParams keep the answer that broke off in the session's last turn: the next model input holds it verbatim (F4).
// All may be absent.
type TurnAdoptParams struct {
	// Turn names the turn. Absent: the last one of the session used last.
	Turn transcript.TurnID `json:"turn,omitzero"`
}

// TurnAdoptResult says what was kept.
type TurnAdoptResult struct {
	// Session is where it was said.
	Session transcript.SessionID `json:"session"`
	// Turn is the turn that said it.
	Turn transcript.TurnID `json:"turn"`
	// Step is the model request that it answers.
	Step int `json:"step"`
	// Answer is the seq of its entry.
	Answer int64 `json:"answer"`
	// Kept is how much it is, and its hash.
	Kept transcript.Kept `json:"kept"`
}
