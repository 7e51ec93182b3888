package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"fermata/agent/check"
	"fermata/agent/model"
	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/process"
	"fermata/tools/watch"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// The causes of a stop, as context causes and arguments of [Turn.Stop].
var (
	ErrStopped    = errors.New("stopped by the user")
	ErrClientGone = errors.New("the client is gone")
	ErrShutdown   = errors.New("the daemon shuts down")
)

// ErrBusy is returned by [Turn.Run] when the session runs another turn; see [BusyError].
var ErrBusy = errors.New("the session already runs a turn")

// ErrNothingRuns is returned by [Agent.Stop] without a turn when none is running.
var ErrNothingRuns = errors.New("no turn is running")

// ErrClosed is returned when the agent was closed.
var ErrClosed = errors.New("the agent is closed")

// BusyError names the turn that keeps a session busy. It is an [ErrBusy].
type BusyError struct{ Turn transcript.TurnID }

func (e *BusyError) Error() string {
	return ErrBusy.Error() + " (" + string(e.Turn) + "); stop it first"
}

// Is makes a BusyError an ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Client is what the agent needs from the one it serves.
type Client interface {
	// Permission asks the user about a call. ctx ends when the turn is stopped, which answers the question (S14); the
	// reply is then ignored. An error counts as a denial that says so.
	Permission(ctx context.Context, q Question) (Reply, error)
	// Overlay gives the open documents below a root; nil when there are none.
	Overlay(root string) workspace.Overlay
}

// Question asks whether a call may act.
type Question struct {
	Session transcript.SessionID
	Turn    transcript.TurnID
	Step    int
	Call    permit.Call
	CallID  transcript.CallID

	Why  string // it is asked
	Diff string // what would change, unified and bounded; "" when that cannot be told
	// Sandbox is one line about what would confine a command, or why nothing does; "" when nothing was meant to.
	Sandbox string
	Narrow  bool // allowing it for the session covers these very files or this very command only
}

// Reply answers a Question. Why is the user's reason for a denial, told to the model; it may be empty.
type Reply struct {
	Answer permit.Answer
	Why    string
}

// Model is a model that a turn can use.
type Model struct {
	Provider     model.Provider
	ProviderName string
	Name         string // as the provider is sent it
}

// Options make an Agent. Store, Models, Client and Tools are required.
type Options struct {
	Store   *transcript.Store
	Models  func(name string) (Model, error) // "" is the configured one; unknown: an error that wraps model.ErrNoModel
	Client  Client
	Tools   []tools.Tool // in the order in which models are told of them
	More    ToolSource   // nil: there are no others
	Policy  permit.Policy
	Secrets []string     // names of environment variables that commands are not given, besides those whose name tells
	Log     *slog.Logger // nil: discarded

	// Watcher makes it cheap to know which of the files that a model knows have changed; nil: they are all compared before
	// each turn. The Agent closes it.
	Watcher *watch.Watcher

	Sandbox *process.Sandbox // what commands are confined by; nil: nothing

	Checks []check.Definition // what an answer must pass before later model inputs hold it (K1)

	Retry    Retry
	MaxSteps int           // model requests a turn; 0 means 50
	Settle   time.Duration // S7's deadline; 0 means 5 s
}

// Agent runs the turns of one client.
type Agent struct {
	o     Options
	state registry
}

// Start is what a turn begins with.
type Start struct {
	Prompt    []transcript.PromptPart
	Redirects transcript.TurnID // "": an ordinary message, also after a stop (D6); see [Agent.ReserveRedirect]
	Retries   transcript.TurnID // of a turn of [Agent.ReserveRetry]: the turn to try again; "" is what was reserved
	Anchor    *transcript.Anchor
	ClientID  string // not "": safe to repeat; the second start joins the first
	Model     string // "": the session's, else the configured one

	queued   *transcript.MessageQueued // to be recorded with the start
	messages []transcript.MessageID    // that Prompt is made of
}

// Report says how a turn ended; it answers both the start and the stop.
type Report struct {
	Session transcript.SessionID
	Turn    transcript.TurnID
	Outcome transcript.Outcome
	Cause   string // of a stop: "user", "client_gone", "shutdown"; of a failure: its class
	Error   string // for people
	Silent  bool   // S6
	Kept    *transcript.Kept
	Tools   []Fate
	Prompt  []transcript.PromptPart // what the user had said

	Withheld []Withholding // why the turn's last answer is withheld by checks; nil: it is not

	// Returned is what the turn handed back of the messages that waited behind it (S10); of a redirect also what the turn
	// did that it stopped.
	Returned []Returned
}

// Fate is what became of one tool call of a turn.
type Fate struct {
	Step    int
	Call    transcript.CallID
	Name    string
	Summary string
	State   transcript.ToolState
	Cause   string
}
