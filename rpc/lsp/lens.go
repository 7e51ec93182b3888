package lsp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.lsp.dev/protocol"

	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// Editors wait until they are not asked to draw anew for a while, before they do: VS Code up to 375 ms where lenses come quickly,
// again with each request. Asked as often as words come it would show none of an answer until that ends.
const (
	betweenStates = 500 * time.Millisecond // from one request to the next, at least
	betweenWords  = time.Second            // where nothing but the number of words has changed
)

// refresher asks the client to draw its lenses anew, seldom enough.
type refresher struct{ words, state chan struct{} }

func newRefresher() refresher {
	return refresher{make(chan struct{}, 1), make(chan struct{}, 1)}
}

// changed says that a lens has changed: what can be done, or only how many words there are. It never blocks.
func (r *refresher) changed(onlyWords bool) {
	kick := r.state
	if onlyWords {
		kick = r.words
	}
	select {
	case kick <- struct{}{}:
	default: // it is going to refresh anyway
	}
}

// run calls refresh until the end of life.
func (r *refresher) run(life context.Context, refresh func()) {
	for {
		select {
		case <-life.Done():
			return
		case <-r.words:
		case <-r.state:
		}
		r.forget()
		refresh()
		select {
		case <-life.Done():
			return
		case <-time.After(betweenStates):
		}
		select {
		case <-life.Done():
			return
		case <-time.After(betweenWords - betweenStates):
		case <-r.state:
			r.changed(false)
		}
	}
}

// forget takes back what was said so far: the next refresh is about all of it.
func (r *refresher) forget() {
	for _, kick := range []chan struct{}{r.words, r.state} {
		select {
		case <-kick:
		default:
		}
	}
}

func (s *server) refreshLenses() {
	s.lenses.run(s.life, func() {
		ctx, cancel := context.WithTimeout(s.life, showDeadline)
		defer cancel()
		if err := s.call(ctx, protocol.MethodWorkspaceCodeLensRefresh, nil, nil); err != nil && s.life.Err() == nil {
			s.log.Debug("refresh code lenses", "err", err)
		}
	})
}

type codeLensParams struct {
	TextDocument textDocument `json:"textDocument"`
}

// codeLens draws the controls of turns where they were asked.
func (s *server) codeLens(_ context.Context, p codeLensParams) (any, error) {
	lenses := []protocol.CodeLens{}
	for _, v := range s.views.in(key(p.TextDocument.URI)) {
		for _, c := range v.controls() {
			lenses = append(lenses, protocol.CodeLens{Range: lspRange(v.line()), Command: c})
		}
	}
	return encode(lenses)
}

// line is the first line of the anchor: a lens spans no more.
func (v view) line() wire.Range {
	r := v.anchor.Range
	if r.End.Line > r.Start.Line {
		r.End = r.Start
	}
	return r
}

// controls are what can be done about a turn now.
func (v view) controls() []protocol.Command {
	args := wire.CommandArgs{Turn: v.turn, Session: v.session}
	switch {
	case v.outcome == "" && v.stopping:
		return []protocol.Command{command("Stopping…", wire.CommandStop, args)}
	case v.outcome == "":
		return []protocol.Command{command("■ Stop · "+words(v.words), wire.CommandStop, args)}
	}
	if v.outcome != transcript.TurnStopped {
		title := "Failed"
		if v.withheld {
			title = "Withheld by a check"
		}
		return v.withChanges(append(append([]protocol.Command{command(title, wire.CommandOpenTranscript, args)}, v.again()...),
			command("Transcript", wire.CommandOpenTranscript, args)))
	}
	return v.withChanges([]protocol.Command{
		command("Stopped here", wire.CommandOpenTranscript, args),
		command("Redirect", wire.CommandRedirect, args),
		command("Transcript", wire.CommandOpenTranscript, args),
		command("Model input", wire.CommandShowModelInput, args),
	})
}

// again is what can be done about a turn that failed (F3); to keep there may be nothing.
func (v view) again() []protocol.Command {
	args := wire.CommandArgs{Turn: v.turn, Session: v.session}
	out := []protocol.Command{command("Retry", wire.CommandRetry, args)}
	if v.attempt {
		out = append(out, command("Keep", wire.CommandKeep, args))
	}
	return out
}

func words(n int) string {
	if n == 1 {
		return "1 word"
	}
	return fmt.Sprintf("%d words", n)
}

func command(title, name string, args wire.CommandArgs) protocol.Command {
	raw, _ := rpc.Encode(args) // ids and numbers
	return protocol.Command{Title: title, Command: name, Arguments: []protocol.LSPAny{protocol.LSPAny(raw)}}
}

// actionKind is the kind of our code actions.
const actionKind = "fermata"

type codeActionParams struct {
	TextDocument textDocument `json:"textDocument"`
	Range        wire.Range   `json:"range"`
	Context      struct {
		Only []string `json:"only"`
	} `json:"context"`
}

// codeAction offers to ask about a range, and to stop or redirect what runs: the one control every client has.
func (s *server) codeAction(ctx context.Context, p codeActionParams) (any, error) {
	if len(p.Context.Only) > 0 && !slices.ContainsFunc(p.Context.Only, isOurKind) {
		return []string{}, nil
	}
	cmds := []protocol.Command{
		command("Ask Fermata About This", wire.CommandAsk, wire.CommandArgs{URI: p.TextDocument.URI, Range: &p.Range}),
	}
	if v, ok := s.views.nearest(key(p.TextDocument.URI), p.Range.Start.Line); ok {
		args := wire.CommandArgs{Turn: v.turn, Session: v.session}
		if v.outcome == "" {
			cmds = append(cmds, command("Stop ("+words(v.words)+")", wire.CommandStop, args))
		}
		if v.failed() {
			cmds = append(cmds, v.again()...)
		} else {
			cmds = append(cmds, command("Redirect…", wire.CommandRedirect, args))
		}
	}
	cmds = append(cmds, s.views.changeActions(key(p.TextDocument.URI), p.Range.Start.Line)...)
	actions := make([]protocol.CommandOrCodeAction, 0, len(cmds))
	kind := protocol.CodeActionKind(actionKind)
	for _, c := range cmds {
		if s.client.actionLiterals {
			actions = append(actions, &protocol.CodeAction{Title: c.Title, Kind: &kind, Command: c})
		} else {
			actions = append(actions, &c)
		}
	}
	return encode(actions)
}

func isOurKind(only string) bool {
	return only == "" || only == actionKind || strings.HasPrefix(only, actionKind+".")
}

func (v view) failed() bool {
	return v.outcome == transcript.TurnFailed || v.outcome == transcript.TurnAbandoned
}

// nearest is the turn that a stop or redirect at a line is about: one in this document that is nearest, else the newest
// that runs, else the last one if it was stopped or failed.
func (v *views) nearest(key string, line uint32) (view, bool) {
	var best *view
	for _, t := range v.in(key) {
		if best == nil || t.distance(line) < best.distance(line) {
			best = &t
		}
	}
	if best != nil {
		return *best, true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, t := range slices.Backward(v.turns) {
		if t.outcome == "" || i == len(v.turns)-1 && (t.outcome == transcript.TurnStopped || t.failed()) && !t.redirected {
			return *t, true
		}
	}
	return view{}, false
}
