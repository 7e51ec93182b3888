package lsp

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"

	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// sessionFork answers before any event of the new session is sent.
func sessionFork(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error) {
	return func(ctx context.Context) (any, error) {
		var p wire.SessionForkParams
		if err := rpc.Decode(req.Params(), &p); err != nil {
			return nil, err
		}
		parent, err := s.session(ctx, p.Session)
		if err != nil {
			return nil, err
		}
		a, store, err := s.backend(ctx)
		if err != nil {
			return nil, err
		}
		sess, err := a.Fork(ctx, parent, p.After)
		if err != nil {
			if p.After != "" {
				err = rpc.About(p.After, err)
			}
			return nil, rpc.About(parent, err)
		}
		if model := s.models.get(parent); model != "" {
			s.models.set(sess.ID(), model)
		}
		if err := s.follow(ctx, sess, -1, s.answered(call)); err != nil {
			return nil, err
		}
		info, err := store.Session(ctx, sess.ID())
		return sessionInfo(info), err
	}, nil
}

// maxTitle is the length of the longest title, in characters.
const maxTitle = 200

func (s *server) sessionRename(ctx context.Context, p wire.SessionRenameParams) (any, error) {
	title := strings.TrimSpace(p.Title)
	switch {
	case p.Session == "":
		return nil, rpc.BadParam("session", "is missing")
	case title == "":
		return nil, rpc.BadParam("title", "is missing")
	case utf8.RuneCountInString(title) > maxTitle || strings.ContainsFunc(title, unicode.IsControl):
		return nil, rpc.BadParam("title", "expected one line of at most %d characters", maxTitle)
	}
	_, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	if err := store.Rename(ctx, p.Session, title); err != nil {
		return nil, rpc.About(p.Session, err)
	}
	info, err := store.Session(ctx, p.Session)
	return sessionInfo(info), rpc.About(p.Session, err)
}

func (s *server) sessionDelete(ctx context.Context, p wire.SessionDeleteParams) (any, error) {
	if p.Session == "" {
		return nil, rpc.BadParam("session", "is missing")
	}
	a, _, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	d, err := a.Delete(ctx, p.Session)
	if err != nil {
		return nil, rpc.About(p.Session, err)
	}
	s.models.remove(p.Session)
	s.pumps.remove(p.Session)
	if s.views.drop(p.Session) && s.client.refreshLenses {
		s.lenses.changed(false)
	}
	if err := RemoveStateFiles(s.o.StateDir, d); err != nil {
		s.log.Warn("files of a deleted session are left", "session", p.Session, "err", err)
	}
	return wire.SessionDeleteResult{
		Session: d.Session, Turns: d.Turns, Entries: d.Entries, Requests: len(d.Requests), Blobs: d.Blobs,
		Bytes: d.Bytes, Reclaimed: d.Reclaimed,
	}, nil
}

// drop forgets the turns of a session that is deleted, and reports whether a control in a document goes with them.
func (v *views) drop(session transcript.SessionID) (control bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turns = slices.DeleteFunc(v.turns, func(t *view) bool {
		gone := t.session == session
		control = control || gone && t.key != ""
		return gone
	})
	return control
}

// RemoveStateFiles removes the files that were written of a session for an editor to open: its transcript, its model
// inputs and what its turns changed. It goes on after an error and returns the first.
func RemoveStateFiles(stateDir string, d transcript.Deleted) error {
	paths := []string{filepath.Join(stateDir, "transcripts", fileName(string(d.Session))+".md")}
	for _, r := range d.Requests {
		name := filepath.Join(stateDir, "inputs", fileName(string(r)))
		paths = append(paths, name+".body", name+".json")
	}
	diffs, _ := os.ReadDir(filepath.Join(stateDir, "changes")) // no folder, no files
	for _, f := range diffs {
		if strings.HasPrefix(f.Name(), fileName(string(d.Session))+"-") {
			paths = append(paths, filepath.Join(stateDir, "changes", f.Name()))
		}
	}
	var first error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) && first == nil {
			first = err
		}
	}
	return first
}
