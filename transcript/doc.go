// Package transcript is the truth about every conversation: an append-only log of entries per session, kept in one SQLite
// file that all daemons of a user share. Everything that a client shows, a model is sent or a person inspects is a fold of
// it. The package promises that
//
//   - what it returned from an append is committed, in one transaction or not at all (invariant 1);
//   - the body of every request can be rebuilt byte for byte (P3), at the cost of storing each text once;
//   - a change or a loss of what was written is found ([Store.Verify]), and a damaged entry never hides the others (C5);
//   - a session whose daemon died can be closed by additions only ([Log.Repair]).
//
// It knows no provider, tool, editor or protocol, and imports nothing of fermata.
//
// # Reading order
//
// entry.go says what a log is made of and codec.go how an entry is stored. fold.go turns entries into the messages of a
// model input. store.go opens the file, write.go is the one way to write into it, log.go appends. send.go, view.go and
// fragment.go store a request; body.go, input.go and request.go show it again. journal.go, conclude.go, lease.go and repair.go
// are how an answer survives until it is an entry; revert.go is how files are put back; news.go is how another daemon follows it. verify.go checks all of it,
// salvage.go brings back what is left of a damaged file; stats.go counts.
//
// # Goroutines and contexts
//
// A [Store] may be used from any goroutine. A [Log] is the writer of one session: its methods may be called from any
// goroutine and run one after another. Writes of one process queue for one connection; writes of several processes
// queue for SQLite's lock, up to [Options].BusyTimeout. A context is looked at until the write has the lock; from then on
// the write runs to its end, so that a cancelled caller never leaves the question open whether something was recorded.
// Reads end when their context does. No goroutine outlives the call that started it.
package transcript
