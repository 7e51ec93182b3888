package wire

import "fermata/transcript"

// TurnRecheckParams run what is missing of the checks of a turn's last answer, on that very answer (K5). The request is
// answered when they are over; cancelling it cuts them short. All may be absent.
type TurnRecheckParams struct {
	// Turn names the turn. Absent: the last one of the session used last.
	Turn transcript.TurnID `json:"turn,omitzero"`
}

// TurnRecheckResult says what a recheck came to. Its verdicts were told as events.
type TurnRecheckResult struct {
	// Session is where the turn ran.
	Session transcript.SessionID `json:"session"`
	// Turn is the turn.
	Turn transcript.TurnID `json:"turn"`
	// Ran are the names of the checks that were run: those that had neither passed nor rejected the answer.
	Ran []string `json:"ran"`
	// Admitted says that later model inputs hold the answer.
	Admitted bool `json:"admitted"`
	// Late says that another turn has started since: the verdicts are recorded and change no model input.
	Late bool `json:"late,omitzero"`
	// Withheld are the checks that the answer has not passed.
	Withheld []Withholding `json:"withheld"`
}

// Withholding is why an answer is withheld from later model inputs, as far as one check goes (K1).
type Withholding struct {
	// Check is the check's name.
	Check string `json:"check"`
	// Verdict is "reject" or "error"; absent when there is none.
	Verdict transcript.VerdictWord `json:"verdict,omitzero"`
	// Reason is for people.
	Reason string `json:"reason,omitzero"`
}
