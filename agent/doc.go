// Package agent runs turns: it is the middle of fermata, between the faces (rpc, the terminal) and the transcript, the
// models and the tools. It promises semantics.md's P1 to P5: what a stop keeps, what a model is sent, what is told to whom
// and in which order. It knows no wire protocol and no model dialect; cmd wires those in through [Options].
//
// An [Agent] serves one client and any number of sessions; all its methods may be called from any goroutine. A [Turn] is
// owned by one goroutine, the one in [Turn.Run]: it alone appends to the session's log, and appends before it tells
// anybody (invariant 1). Everybody else only marks a turn as stopped ([Turn.Stop]) and waits for it ([Turn.Done]).
//
// Cancelling the context of [Turn.Run] is a stop, with the context's cause as its cause: [ErrStopped], [ErrClientGone] or
// [ErrShutdown]. What a stop must finish (the commit, the settling of tools) runs on a context without that cancel.
package agent
