package wire

// Code is the code of an error response.
type Code int32

// The codes. Those of JSON-RPC and LSP are used as they define them; the others are outside of their ranges.
const (
	CodeParse          Code = -32700 // no JSON, no header
	CodeInvalidRequest Code = -32600 // no request; a message too long; a request after shutdown
	CodeUnknownMethod  Code = -32601
	CodeInvalidParams  Code = -32602 // the message begins with the path of the field
	CodeInternal       Code = -32603
	CodeNotInitialized Code = -32002 // a request before initialize
	CodeCancelled      Code = -32800 // the client cancelled the request

	CodeNotFound    Code = -31001 // no such session, turn, request, model: see the kind
	CodeBusy        Code = -31002 // the session runs another turn, whose id is in the data
	CodeNothingRuns Code = -31003 // nothing to stop
	CodeInUse       Code = -31004 // another daemon runs turns in the session
	CodeStorage     Code = -31005 // the database: see the kind
	CodeClosed      Code = -31006 // the daemon ends
	CodeNotPossible Code = -31010 // the turn's state does not allow it: see the kind
)

// ErrorKind is the name of a condition; it is stable where messages are not.
type ErrorKind string

// The kinds of errors.
const (
	KindUnknownSession ErrorKind = "unknown_session"
	KindUnknownTurn    ErrorKind = "unknown_turn"
	KindUnknownRequest ErrorKind = "unknown_request"
	KindUnknownModel   ErrorKind = "unknown_model"
	KindUnknownBlob    ErrorKind = "unknown_blob"
	KindBusy           ErrorKind = "busy"
	KindNotLast        ErrorKind = "not_last"
	KindNothingToRetry ErrorKind = "nothing_to_retry"
	KindNothingToKeep  ErrorKind = "nothing_to_keep"
	KindNothingToCheck ErrorKind = "nothing_to_check"
	KindNoCheck        ErrorKind = "no_check"
	KindNoChanges      ErrorKind = "no_changes"
	KindUnknownRevert  ErrorKind = "unknown_revert"
	KindNothingRuns    ErrorKind = "nothing_runs"
	KindInUse          ErrorKind = "in_use"
	KindNewerDatabase  ErrorKind = "newer_database"
	KindNotDatabase    ErrorKind = "not_a_database"
	KindReadOnly       ErrorKind = "read_only"
	KindLocked         ErrorKind = "locked"
	KindDiskFull       ErrorKind = "disk_full"
	KindDiskFailed     ErrorKind = "disk_failed"
	KindDamaged        ErrorKind = "damaged"
	KindClosed         ErrorKind = "closed"
	KindCancelled      ErrorKind = "cancelled"
	KindInternal       ErrorKind = "internal"
)

// ErrorData is the data of an error response.
type ErrorData struct {
	// Kind names the condition.
	Kind ErrorKind `json:"kind"`
	// ID is the session, turn or request that it is about.
	ID string `json:"id,omitzero"`
	// Hint says what to do about it.
	Hint string `json:"hint,omitzero"`
}
