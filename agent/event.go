package agent

import "fermata/transcript"

// Event is one thing that clients are told. Exactly one of its pointers is set. An Entry is committed; the others are
// passing and cannot be asked for again.
type Event struct {
	Session   transcript.SessionID
	Entry     *transcript.Entry
	Delta     *Delta
	Output    *Output
	Retracted *Retracted
	Stopping  *Stopping
	Warning   *Warning
}

// Delta is text as it is said. Offset is the number of bytes of this part type already told in this answer.
type Delta struct {
	Turn   transcript.TurnID
	Step   int
	Part   transcript.PartType // PartText or PartReasoning
	Offset int64
	Text   string
}

// Output is a piece of a running tool's output, for people.
type Output struct {
	Turn transcript.TurnID
	Step int
	Call transcript.CallID
	Text string
}

// Retracted says that a try of a step failed and another one comes after a wait: what was shown of the step, if anything, is
// an attempt now (F2).
type Retracted struct {
	Turn transcript.TurnID
	Step int
	Try  int // the one that failed, from 1
	Why  string
}

// Stopping acknowledges a stop at once; the turn's end follows.
type Stopping struct{ Turn transcript.TurnID }

// Warning tells the user of something that the turn has to do without. It ends nothing.
type Warning struct {
	Turn transcript.TurnID
	Text string
}
