// Package wire is the fermata/* protocol: every method, param, result and event, documented once. JSON Schema and the
// TypeScript types of the editors are made from it. It holds data only: what the methods do is in rpc/lsp.
//
// Names are camelCase, but for the bodies of entries, which are as the log holds them. Fields marked omitzero may be
// absent; so may the params of a method as a whole when all of its fields may. Members that are not listed here are
// ignored. Times are RFC 3339 in UTC; offsets and lengths are bytes of UTF-8.
package wire

import "reflect"

// Protocol is the version of the protocol, told in capabilities.experimental.fermata of both sides. It changes when an
// old client could not work with a new daemon.
const Protocol = 1

// Capability is what both sides put under capabilities.experimental.fermata.
type Capability struct {
	// Protocol is the version that is spoken.
	Protocol int `json:"protocol"`
	// OwnCommands, of a client, says that it has the commands of workspace/executeCommand by itself: they are executed all the
	// same, but not offered, because a client that registers what is offered would have each twice.
	OwnCommands bool `json:"ownCommands,omitzero"`
}

// The methods. All but Permission go from the client to the daemon, Event is a notification to the client.
const (
	SessionNew       = "fermata/session/new"
	SessionList      = "fermata/session/list"
	SessionOpen      = "fermata/session/open"
	SessionFork      = "fermata/session/fork"
	SessionRename    = "fermata/session/rename"
	SessionDelete    = "fermata/session/delete"
	SessionMode      = "fermata/session/mode"
	TurnStart        = "fermata/turn/start"
	TurnStop         = "fermata/turn/stop"
	TurnRedirect     = "fermata/turn/redirect"
	TurnQueue        = "fermata/turn/queue"
	TurnRetry        = "fermata/turn/retry"
	TurnAdopt        = "fermata/turn/adopt"
	TurnRecheck      = "fermata/turn/recheck"
	TurnChanges      = "fermata/turn/changes"
	TurnRevert       = "fermata/turn/revert"
	TranscriptRender = "fermata/transcript/render"
	RequestList      = "fermata/request/list"
	RequestInput     = "fermata/request/input"
	RequestResend    = "fermata/request/resend"
	ModelList        = "fermata/model/list"
	Stats            = "fermata/stats"
	Permission       = "fermata/permission"
	Event            = "fermata/event"
)

// Method is one line of the protocol.
type Method struct {
	// Name is the method as it is sent.
	Name string
	// FromDaemon says that the daemon sends it and the client answers, if it is a request.
	FromDaemon bool
	// Params and Result are the types; Result is nil for a notification.
	Params, Result reflect.Type
}

// Methods is the whole protocol, in the order of its documentation. An event's params are one of Events.
var Methods = []Method{
	{SessionNew, false, reflect.TypeFor[SessionNewParams](), reflect.TypeFor[Session]()},
	{SessionList, false, reflect.TypeFor[SessionListParams](), reflect.TypeFor[SessionListResult]()},
	{SessionOpen, false, reflect.TypeFor[SessionOpenParams](), reflect.TypeFor[SessionOpenResult]()},
	{SessionFork, false, reflect.TypeFor[SessionForkParams](), reflect.TypeFor[Session]()},
	{SessionRename, false, reflect.TypeFor[SessionRenameParams](), reflect.TypeFor[Session]()},
	{SessionDelete, false, reflect.TypeFor[SessionDeleteParams](), reflect.TypeFor[SessionDeleteResult]()},
	{SessionMode, false, reflect.TypeFor[SessionModeParams](), reflect.TypeFor[SessionModeResult]()},
	{TurnStart, false, reflect.TypeFor[TurnStartParams](), reflect.TypeFor[TurnResult]()},
	{TurnStop, false, reflect.TypeFor[TurnStopParams](), reflect.TypeFor[TurnResult]()},
	{TurnRedirect, false, reflect.TypeFor[TurnRedirectParams](), reflect.TypeFor[TurnResult]()},
	{TurnQueue, false, reflect.TypeFor[TurnQueueParams](), reflect.TypeFor[TurnQueueResult]()},
	{TurnRetry, false, reflect.TypeFor[TurnRetryParams](), reflect.TypeFor[TurnResult]()},
	{TurnAdopt, false, reflect.TypeFor[TurnAdoptParams](), reflect.TypeFor[TurnAdoptResult]()},
	{TurnRecheck, false, reflect.TypeFor[TurnRecheckParams](), reflect.TypeFor[TurnRecheckResult]()},
	{TurnChanges, false, reflect.TypeFor[TurnChangesParams](), reflect.TypeFor[TurnChangesResult]()},
	{TurnRevert, false, reflect.TypeFor[TurnRevertParams](), reflect.TypeFor[TurnRevertResult]()},
	{TranscriptRender, false, reflect.TypeFor[TranscriptRenderParams](), reflect.TypeFor[TranscriptRenderResult]()},
	{RequestList, false, reflect.TypeFor[RequestListParams](), reflect.TypeFor[RequestListResult]()},
	{RequestInput, false, reflect.TypeFor[RequestInputParams](), reflect.TypeFor[RequestInputResult]()},
	{RequestResend, false, reflect.TypeFor[RequestResendParams](), reflect.TypeFor[RequestResendResult]()},
	{ModelList, false, reflect.TypeFor[ModelListParams](), reflect.TypeFor[ModelListResult]()},
	{Stats, false, reflect.TypeFor[StatsParams](), reflect.TypeFor[StatsResult]()},
	{Permission, true, reflect.TypeFor[PermissionParams](), reflect.TypeFor[PermissionResult]()},
	{Event, true, reflect.TypeFor[EntryEvent](), nil},
}

// Events are the params that a fermata/event can have. All hold session and kind.
var Events = []reflect.Type{
	reflect.TypeFor[EntryEvent](),
	reflect.TypeFor[DeltaEvent](),
	reflect.TypeFor[OutputEvent](),
	reflect.TypeFor[RetractedEvent](),
	reflect.TypeFor[StoppingEvent](),
	reflect.TypeFor[WarningEvent](),
	reflect.TypeFor[ResendEvent](),
}
