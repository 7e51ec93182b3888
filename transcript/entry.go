package transcript

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"
)

// Ids are opaque, printable ASCII, sort by creation time and carry their kind as a prefix: s_, t_ or r_.
type (
	// SessionID names one conversation.
	SessionID string
	// TurnID names one turn; unique over all sessions of a database.
	TurnID string
	// RequestID names one request to a model; unique over all sessions of a database.
	RequestID string
	// CallID is the id of a tool call as the model issued it; unique within its answer only.
	CallID string
)

// NewSessionID, NewTurnID and NewRequestID make fresh ids.
func NewSessionID() SessionID { return SessionID(newID("s_")) }

// NewTurnID makes a fresh turn id.
func NewTurnID() TurnID { return TurnID(newID("t_")) }

// NewRequestID makes a fresh request id.
func NewRequestID() RequestID { return RequestID(newID("r_")) }

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID is 48 bits of milliseconds, then 52 random bits: ids made later sort later.
func newID(prefix string) string {
	var b [15]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	if _, err := rand.Read(b[6:]); err != nil {
		panic(err) // crypto/rand never fails on a supported system
	}
	return prefix + strings.ToLower(idEncoding.EncodeToString(b[:]))[:20]
}

// Kind is the name of an entry's type as the entry table holds it.
type Kind string

// The kinds of entries. The set is closed: the codec refuses any other.
const (
	KindSessionOpened Kind = "session.opened"
	KindTurnStarted   Kind = "turn.started"
	KindEpochOpened   Kind = "epoch.opened"
	KindRequestSent   Kind = "request.sent"
	KindRequestEnded  Kind = "request.ended"
	KindAnswer        Kind = "answer"
	KindAdmission     Kind = "admission"
	KindToolStarted   Kind = "tool.started"
	KindFileChanged   Kind = "file.changed"
	KindToolSettled   Kind = "tool.settled"
	KindTurnEnded     Kind = "turn.ended"
)

// Entry is one line of a session's log. Seq is gapless from 1. Hash is SHA-256 over the previous entry's hash and all
// of this entry's columns, so that a changed or removed entry is found by [Store.Verify]. Body is nil and Damaged says
// why when the stored body does not decode (C5): such an entry is shown as damaged and the rest opens.
type Entry struct {
	Session SessionID
	Seq     int64
	At      time.Time // UTC, milliseconds
	Body    Body
	Damaged string
	Hash    [32]byte
}

// Kind is the kind of the entry's body, "" for a damaged one.
func (e Entry) Kind() Kind {
	if e.Body == nil {
		return ""
	}
	return e.Body.Kind()
}

// Body is what an entry says: one of the types in this file, message.go and verdict.go. The sum is closed.
type Body interface {
	Kind() Kind
	body()
}

// SessionOpened is every session's entry 1.
type SessionOpened struct {
	Workspace string    `json:"workspace"` // absolute path of the root; "" for none
	Title     string    `json:"title,omitzero"`
	Parent    SessionID `json:"parent,omitzero"`     // set in a fork
	ParentSeq int64     `json:"parent_seq,omitzero"` // last entry of the parent that the fork keeps
	// Copied is the last entry that was copied from the parent: those after this one up to it were said there, and then.
	Copied int64 `json:"copied,omitzero"`
}

// TurnStarted is a user message. Its text in the model input is [TurnStarted.UserText].
type TurnStarted struct {
	Turn      TurnID       `json:"turn"`
	ClientID  string       `json:"client_id,omitzero"` // makes a start safe to repeat
	Prompt    []PromptPart `json:"prompt"`
	Notice    string       `json:"notice,omitzero"`    // S11, D3: what happened before, told once, in words as sent
	Redirects TurnID       `json:"redirects,omitzero"` // D2: the stopped turn whose course this one replaces
	Retries   TurnID       `json:"retries,omitzero"`   // F3: the turn whose request this one tries again; Prompt is that one's
	Queued    []MessageID  `json:"queued,omitzero"`    // S10: the messages that Prompt is made of
	Anchor    *Anchor      `json:"anchor,omitzero"`    // where in the editor it was asked
	Changed   []FileState  `json:"changed,omitzero"`   // what Notice tells of files that others changed since the model read them
}

// PromptPart is a piece of what the user said. Text is its content at the time, also for a file range or selection.
type PromptPart struct {
	Type  string `json:"type"` // "text", "file" or "selection"
	Text  string `json:"text"`
	Path  string `json:"path,omitzero"`  // relative to the workspace, slash-separated
	Start int    `json:"start,omitzero"` // first line, 1-based
	End   int    `json:"end,omitzero"`   // last line, included
	// SHA256 is of the whole file that the text is from, as it was then; "" when it is no file of the workspace. See [FileState].
	SHA256 string `json:"sha256,omitzero"`
}

// Anchor is a place in a document. Lines and characters are LSP's: 0-based, characters in UTF-16 units.
type Anchor struct {
	URI       string `json:"uri"`
	StartLine int    `json:"start_line"`
	StartChar int    `json:"start_char"`
	EndLine   int    `json:"end_line"`
	EndChar   int    `json:"end_char"`
}

// EpochOpened starts a run of requests whose messages only grow (M4). Epochs count from 1 in each session.
type EpochOpened struct {
	Epoch    int    `json:"epoch"`
	Reason   string `json:"reason"` // M5: one of the Reason constants
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Dialect  string `json:"dialect"` // encoder and its version, e.g. "chat/1": what [Encoder] must be to re-encode the fragments
	Head     string `json:"head"`    // sha256 of the blob before the messages, hex
	Tail     string `json:"tail"`    // sha256 of the blob after the messages
	// Instructions and Tools are the SHA-256 of each as [Send] was given them: they tell why a head differs.
	Instructions string `json:"instructions,omitzero"`
	Tools        string `json:"tools,omitzero"`
}

// The reasons for a new epoch (M5).
const (
	ReasonFirst        = "first"
	ReasonForked       = "forked"        // the first of a fork
	ReasonModel        = "model changed" // or its provider, or the dialect
	ReasonTools        = "tools changed"
	ReasonInstructions = "instructions changed"
	ReasonSettings     = "settings changed" // the head or tail differs in something else
	ReasonCompacted    = "compacted"
	ReasonDamaged      = "damaged" // what the epoch before held cannot be read any more
)

// RequestSent is in the log before the first byte of the request leaves (M2).
type RequestSent struct {
	Request RequestID `json:"request"`
	Turn    TurnID    `json:"turn"`
	Step    int       `json:"step"` // from 1 in each turn
	Try     int       `json:"try"`  // from 1 in each step
	Epoch   int       `json:"epoch"`
	N       int       `json:"n"`     // how many fragments of the epoch it holds
	Bytes   int64     `json:"bytes"` // length of the body
	SHA256  string    `json:"sha256"`
	Route   string    `json:"route"` // provider name and address, never a key (M6)
	// Held says that nobody is shown the answer until its checks have passed it: whoever follows the log waits for the
	// admission that stands behind it.
	Held bool `json:"held,omitzero"`
}

// RequestEnded closes a RequestSent. Error is for people and holds no key.
type RequestEnded struct {
	Request    RequestID `json:"request"`
	Outcome    string    `json:"outcome"`         // "complete", "stopped" or "broken"
	Status     int       `json:"status,omitzero"` // HTTP status, 0 when there was no response
	Error      string    `json:"error,omitzero"`
	Usage      *Usage    `json:"usage,omitzero"`
	FirstDelta int64     `json:"first_delta_ms,omitzero"`
	Millis     int64     `json:"ms"`
}

// Usage is the provider's count of tokens.
type Usage struct {
	Input     int64 `json:"input"`
	Cached    int64 `json:"cached,omitzero"` // of Input, read from the provider's cache
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning,omitzero"` // of Output
}

// AnswerState says how an answer ended.
type AnswerState string

// The states of an answer.
const (
	Complete AnswerState = "complete" // the dialect's terminal event came
	Stopped  AnswerState = "stopped"  // by the user (S4)
	Broken   AnswerState = "broken"   // by itself (F1)
)

// Answer is what a model said in one step, as it was said. Invariant: the texts of a stopped answer are exactly the
// deltas that clients were sent (P1, S4); a stopped or broken answer holds no call (S5).
type Answer struct {
	Turn    TurnID      `json:"turn"`
	Step    int         `json:"step"`
	Request RequestID   `json:"request"`
	State   AnswerState `json:"state"`
	Cause   string      `json:"cause,omitzero"`  // of a broken one
	Finish  string      `json:"finish,omitzero"` // the provider's finish reason
	Parts   []Part      `json:"parts"`
	// From is the epoch's Provider, Model and Dialect in the copy that a fork holds, because its epoch is in the parent's
	// log, and so is Request. nil: the newest epoch before the answer.
	From *Origin `json:"from,omitzero"`
}

// Origin is which model said something, and how its parts were encoded.
type Origin struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Dialect  string `json:"dialect"`
}

// Part is one block of an answer, in the order in which it was said.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitzero"` // of text and reasoning
	Call *Call    `json:"call,omitzero"`
	// Extra is what the dialect must send back with this part exactly as issued: signature, encrypted content,
	// thought signatures (T1).
	Extra json.RawMessage `json:"extra,omitzero"`
}

// PartType is the kind of a block of an answer.
type PartType string

// The types of parts.
const (
	PartText      PartType = "text"
	PartReasoning PartType = "reasoning"
	PartCall      PartType = "call"
)

// Call is a tool call as the model made it. Args is its text verbatim: it can be empty or malformed.
type Call struct {
	ID   CallID `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Text is the concatenation of the answer's text parts.
func (a *Answer) Text() string { return a.concat(PartText) }

// Reasoning is the concatenation of the answer's reasoning parts.
func (a *Answer) Reasoning() string { return a.concat(PartReasoning) }

// Speaks reports whether the answer has words or calls: to many providers reasoning alone is no message.
func (a *Answer) Speaks() bool { return len(a.Calls()) > 0 || strings.TrimSpace(a.Text()) != "" }

func (a *Answer) concat(t PartType) string {
	var b strings.Builder
	for _, p := range a.Parts {
		if p.Type == t {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Calls are the answer's tool calls in order.
func (a *Answer) Calls() []Call {
	var out []Call
	for _, p := range a.Parts {
		if p.Type == PartCall && p.Call != nil {
			out = append(out, *p.Call)
		}
	}
	return out
}

// Admission decides whether later model inputs hold an answer (P5). The last one about an answer counts.
type Admission struct {
	Turn     TurnID `json:"turn"`
	Step     int    `json:"step"`
	Answer   int64  `json:"answer"` // seq of the Answer entry
	Admitted bool   `json:"admitted"`
	By       string `json:"by"` // "rule", "checks" or "user"
	// Of one by checks: those it took into account, and why the answer is withheld (K2): [Rejected] or [Unverified].
	Checks   []CheckRef `json:"checks,omitzero"`
	Withheld string     `json:"withheld,omitzero"`
}

// ToolStarted is committed before a call is dispatched (invariant 1).
type ToolStarted struct {
	Turn     TurnID `json:"turn"`
	Step     int    `json:"step"`
	Call     CallID `json:"call"`
	Name     string `json:"name"`
	ReadOnly bool   `json:"read_only,omitzero"`
	Summary  string `json:"summary,omitzero"` // one line for people: "read_file go.mod"
}

// FileChanged is a mutating tool's intent: committed before the file is touched (C3).
type FileChanged struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Call   CallID `json:"call"`
	Path   string `json:"path"`            // relative to the workspace, slash-separated
	Before string `json:"before,omitzero"` // sha256 of the content as a blob; "" when the file did not exist
	After  string `json:"after,omitzero"`  // likewise; "" when the file is deleted
	Buffer bool   `json:"buffer,omitzero"` // done in an editor's open document, not on disk
	By     string `json:"by,omitzero"`     // [ByCommand]; "" is a tool that told what it would do
	From   string `json:"from,omitzero"`   // the path that it is moved from; another FileChanged tells that it goes there
	// Mode is, of a file that is created, deleted or moved, what stat calls its mode, in octal: "100755"; of a link, "120000", the
	// content is where it leads to. "" is a file of no special mode.
	Mode string `json:"mode,omitzero"`
}

// ByCommand marks the change of a file that a command was seen to have made: it is recorded after the fact, with the call's
// result, and made whatever became of the call.
const ByCommand = "command"

// ToolState says what became of a call.
type ToolState string

// The states of a settled call. NotStarted and Unknown are receipts: results the daemon wrote.
const (
	ToolDone       ToolState = "done"
	ToolFailed     ToolState = "failed"
	ToolStopped    ToolState = "stopped"
	ToolNotStarted ToolState = "not_started"
	ToolUnknown    ToolState = "unknown"
)

// The causes a receipt can state (S8).
const (
	CauseStoppedByUser    = "stopped_by_user"
	CauseClientGone       = "client_gone" // the editor or terminal left: a stop, but not the user's word
	CauseShutdown         = "shutdown"    // the daemon was told to end
	CausePermissionDenied = "permission_denied"
	CauseTurnFailed       = "turn_failed"
	CauseDaemonDied       = "daemon_died"
	CauseUnknownTool      = "unknown_tool"
	CauseWithheld         = "withheld" // by checks, which let the answer through only after its turn had ended (K5)
)

// ToolSettled is the result of a call, or the receipt for one that has none. Output is what the model reads, word for
// word; Full names the blob with the whole output when Output is a cut of it. Late marks a result that came after an
// `unknown` receipt (S7): it is no part of the model input but is told in the next notice.
type ToolSettled struct {
	Turn   TurnID    `json:"turn"`
	Step   int       `json:"step"`
	Call   CallID    `json:"call"`
	Name   string    `json:"name"`
	State  ToolState `json:"state"`
	Cause  string    `json:"cause,omitzero"`
	Output string    `json:"output"`
	Full   string    `json:"full,omitzero"`
	Exit   *int      `json:"exit,omitzero"`
	Millis int64     `json:"ms,omitzero"`
	Late   bool      `json:"late,omitzero"`

	Seen    []FileState `json:"seen,omitzero"`    // files that the model has read by this call
	Touched []FileState `json:"touched,omitzero"` // known files that the call's command changed: the model has not read them since
}

// Outcome says how a turn ended.
type Outcome string

// The outcomes of a turn.
const (
	TurnCompleted Outcome = "completed"
	TurnStopped   Outcome = "stopped"
	TurnFailed    Outcome = "failed"
	TurnAbandoned Outcome = "abandoned" // the daemon died (C2)
)

// TurnEnded is a turn's last entry; every started turn has exactly one (invariant 2).
type TurnEnded struct {
	Turn    TurnID  `json:"turn"`
	Outcome Outcome `json:"outcome"`
	Cause   string  `json:"cause,omitzero"`  // of a stop: "user", "client_gone", "shutdown"; of a failure: its class
	Error   string  `json:"error,omitzero"`  // for people
	Silent  bool    `json:"silent,omitzero"` // S6: nothing had been said in the whole turn
	Kept    *Kept   `json:"kept,omitzero"`   // of a stopped answer
	// Withheld names the checks that did not pass the turn's last answer, in the order of their names (K1).
	Withheld []string `json:"withheld,omitzero"`
	// StopMillis is, of a stop, how long it took from its arrival until this entry was written (X4): milliseconds, rounded
	// up, so that 0 means it was not measured.
	StopMillis int64 `json:"stop_ms,omitzero"`
}

// Kept says what a stop kept: the length and SHA-256 of the stopped answer's reasoning and text as clients were sent them.
type Kept struct {
	Bytes  int64  `json:"bytes"`
	Words  int    `json:"words"`
	SHA256 string `json:"sha256"`
}

func (*SessionOpened) Kind() Kind { return KindSessionOpened }
func (*TurnStarted) Kind() Kind   { return KindTurnStarted }
func (*EpochOpened) Kind() Kind   { return KindEpochOpened }
func (*RequestSent) Kind() Kind   { return KindRequestSent }
func (*RequestEnded) Kind() Kind  { return KindRequestEnded }
func (*Answer) Kind() Kind        { return KindAnswer }
func (*Admission) Kind() Kind     { return KindAdmission }
func (*ToolStarted) Kind() Kind   { return KindToolStarted }
func (*FileChanged) Kind() Kind   { return KindFileChanged }
func (*ToolSettled) Kind() Kind   { return KindToolSettled }
func (*TurnEnded) Kind() Kind     { return KindTurnEnded }

func (*SessionOpened) body() {}
func (*TurnStarted) body()   {}
func (*EpochOpened) body()   {}
func (*RequestSent) body()   {}
func (*RequestEnded) body()  {}
func (*Answer) body()        {}
func (*Admission) body()     {}
func (*ToolStarted) body()   {}
func (*FileChanged) body()   {}
func (*ToolSettled) body()   {}
func (*TurnEnded) body()     {}
