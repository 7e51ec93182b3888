package lsp

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.lsp.dev/protocol"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// changedSession is where to look for changes when no turn is named; "" with one.
func (s *server) changedSession(ctx context.Context, id transcript.SessionID, turn transcript.TurnID) (transcript.SessionID, error) {
	if turn != "" {
		return "", nil
	}
	return s.session(ctx, id)
}

// changes are those of a turn, with the agent that knows what the files held.
func (s *server) changes(ctx context.Context, session transcript.SessionID, turn transcript.TurnID) (agent.Changes, *agent.Agent, error) {
	a, _, err := s.backend(ctx)
	if err != nil {
		return agent.Changes{}, nil, err
	}
	if session, err = s.changedSession(ctx, session, turn); err != nil {
		return agent.Changes{}, nil, err
	}
	c, err := a.Changes(ctx, session, turn)
	return c, a, rpc.About(session, rpc.About(turn, err))
}

func (s *server) turnChanges(ctx context.Context, p wire.TurnChangesParams) (any, error) {
	c, a, err := s.changes(ctx, p.Session, p.Turn)
	if err != nil {
		return nil, err
	}
	root, err := s.rootOf(ctx, a, c.Session)
	if err != nil {
		return nil, err
	}
	r, err := TurnChanges(ctx, a, c, root)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// TurnChanges is the result of fermata/turn/changes; root is the session's workspace.
func TurnChanges(ctx context.Context, a *agent.Agent, c agent.Changes, root string) (wire.TurnChangesResult, error) {
	r := wire.TurnChangesResult{Session: c.Session, Turn: c.Turn, Files: make([]wire.FileChange, 0, len(c.Files))}
	for _, f := range c.Files {
		before, after, err := a.Contents(ctx, c, f)
		if err != nil {
			return r, err
		}
		var d agent.FileDiff
		if f.To == "" {
			d = agent.Diff(f.Path, before, after)
		}
		if f.From != "" {
			before = nil // it is at its other place
		}
		w := wire.FileChange{
			Path: f.Path, URI: fileURI(filepath.Join(root, filepath.FromSlash(f.Path))), State: f.State(),
			Before: f.Before, After: f.After, BeforeText: changeText(before), AfterText: changeText(after),
			Binary: d.Binary, Added: d.Added, Removed: d.Removed, Buffer: f.Buffer, By: "tool", Now: string(f.Now),
			From: f.From, To: f.To,
		}
		if f.Command {
			w.By = "command"
		}
		r.Files = append(r.Files, w)
	}
	return r, nil
}

// rootOf is the absolute path of a session's workspace.
func (s *server) rootOf(ctx context.Context, a *agent.Agent, id transcript.SessionID) (string, error) {
	sess, err := a.Open(ctx, id)
	if err != nil {
		return "", rpc.About(id, err)
	}
	return sess.Workspace(), nil
}

// changeText is a content as a client is sent it: nil for no file, for what is no text and for what is too long.
func changeText(b []byte) *string {
	if b == nil || len(b) > wire.MaxChangeText {
		return nil
	}
	text, _, err := workspace.File{Content: b}.Text()
	if err != nil {
		return nil
	}
	return &text
}

func (s *server) turnRevert(ctx context.Context, p wire.TurnRevertParams) (any, error) {
	return s.revert(ctx, p)
}

// revert takes changes back. It is answered behind the events that tell of it.
func (s *server) revert(ctx context.Context, p wire.TurnRevertParams) (*wire.TurnRevertResult, error) {
	a, _, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	id := p.Session
	if p.Revert == "" {
		if id, err = s.changedSession(ctx, p.Session, p.Turn); err != nil {
			return nil, err
		}
	}
	v, err := a.Revert(ctx, agent.Revert{
		Session: id, Turn: p.Turn, Since: p.Since, Paths: s.revertPaths(p.Paths), Undo: p.Undo, Revert: p.Revert, Preview: p.Preview,
	})
	if err != nil {
		return nil, rpc.About(p.Revert, rpc.About(p.Turn, rpc.About(id, err)))
	}
	s.drain(s.life, v.Session)
	r := &wire.TurnRevertResult{Session: v.Session, Revert: v.Revert, Files: make([]wire.RevertedFile, 0, len(v.Files))}
	for _, f := range v.Files {
		r.Files = append(r.Files, wire.RevertedFile{Path: f.Path, State: f.State, Why: f.Why, Buffer: f.Buffer})
	}
	return r, nil
}

// revertPaths takes file URIs too.
func (s *server) revertPaths(paths []string) []string {
	out := slices.Clone(paths)
	for i, p := range out {
		if path, ok := filePath(p); ok {
			out[i] = realPath(path)
		}
	}
	return out
}

// revertByCommand reverts, and says what came of it: such a client has no other place for it.
func (s *server) revertByCommand(ctx context.Context, args wire.CommandArgs) (any, error) {
	r, err := s.revert(ctx, wire.TurnRevertParams{
		Turn: args.Turn, Session: args.Session, Paths: args.Paths, Since: args.Since, Revert: args.Revert, Undo: args.Undo,
	})
	if err != nil {
		return nil, err
	}
	verb := "reverted"
	if args.Undo || args.Revert != "" {
		verb = "put back"
	}
	s.showMessage(messageInfo, "Fermata: "+revertMessage(verb, r.Files))
	return r, nil
}

// revertMessage is one line about a revert: "reverted a.go, b.go; kept c.go (it was changed since)".
func revertMessage(verb string, files []wire.RevertedFile) string {
	var done, kept []string
	for _, f := range files {
		if f.State == transcript.RevertDone {
			done = append(done, f.Path)
		} else {
			kept = append(kept, f.Path+" ("+f.Why+")")
		}
	}
	short := func(names []string) string {
		const most = 10
		if n := len(names); n > most {
			names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", n-most))
		}
		return strings.Join(names, ", ")
	}
	text := "nothing was " + verb
	if len(done) > 0 {
		text = verb + " " + short(done)
	}
	if len(kept) > 0 {
		text += "; kept " + short(kept)
	}
	return text
}

// showChanges writes what a turn did to files as a unified diff, and shows it.
func (s *server) showChanges(ctx context.Context, args wire.CommandArgs) (any, error) {
	c, a, err := s.changes(ctx, args.Session, args.Turn)
	if err != nil {
		return nil, err
	}
	text, err := a.Unified(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(c.Files) == 0 {
		text = []byte("This turn changed no file.\n")
	}
	path, err := s.stateFile("changes", fileName(string(c.Session))+"-"+fileName(string(c.Turn))+".diff", text)
	if err != nil {
		return nil, err
	}
	return wire.CommandResult{Session: c.Session, Turn: c.Turn, URI: fileURI(path), Shown: s.show(ctx, path, "What the turn changed")}, nil
}

// withChanges adds to the controls of an ended turn those of its changes.
func (v view) withChanges(cmds []protocol.Command) []protocol.Command {
	if !v.changed {
		return cmds
	}
	return append(cmds, command("Changes", wire.CommandShowChanges, wire.CommandArgs{Turn: v.turn, Session: v.session}))
}

// changeActions are what can be done about the changes of a turn: of the one asked nearest in the document, else of the last
// one that ended with changes.
func (v *views) changeActions(key string, line uint32) []protocol.Command {
	v.mu.Lock()
	defer v.mu.Unlock()
	var best *view
	for _, t := range slices.Backward(v.turns) {
		if !t.changed || t.outcome == "" {
			continue
		}
		if best == nil || t.key == key && (best.key != key || t.distance(line) < best.distance(line)) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	args := wire.CommandArgs{Turn: best.turn, Session: best.session}
	return []protocol.Command{
		command("Show What Fermata Changed", wire.CommandShowChanges, args),
		command("Revert What Fermata Changed", wire.CommandRevert, args),
	}
}

// distance is how many lines there are from the anchor to a line.
func (v *view) distance(line uint32) int64 {
	return max(int64(v.anchor.Range.Start.Line)-int64(line), int64(line)-int64(v.anchor.Range.End.Line), 0)
}
