package lsp

import (
	"context"
	"fmt"
	"os"
	"sync"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// models are the models that clients chose for their sessions.
type models struct {
	mu   sync.Mutex
	byID map[transcript.SessionID]string
}

func (m *models) set(id transcript.SessionID, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil {
		m.byID = map[transcript.SessionID]string{}
	}
	m.byID[id] = name
}

func (m *models) remove(id transcript.SessionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byID, id)
}

func (m *models) get(id transcript.SessionID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byID[id]
}

// workspaceParam is the real path of what a client names as workspace; "" stays "".
func workspaceParam(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	path, ok := localPath(s)
	if !ok {
		return "", rpc.BadParam("workspace", "expected an absolute path or a file URI, got %q", s)
	}
	return realPath(path), nil
}

// sessionNew answers before any event of the session is sent.
func sessionNew(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error) {
	return func(ctx context.Context) (any, error) {
		var p wire.SessionNewParams
		if err := rpc.Decode(req.Params(), &p); err != nil {
			return nil, err
		}
		root, err := workspaceParam(p.Workspace)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(root); root != "" && (err != nil || !info.IsDir()) {
			return nil, rpc.BadParam("workspace", "%s is not a folder", root)
		}
		if root == "" {
			root = realPath(s.folders.first())
		}
		a, store, err := s.backend(ctx)
		if err != nil {
			return nil, err
		}
		sess, err := a.NewSession(ctx, agent.SessionOptions{Workspace: root, Title: p.Title})
		if err != nil {
			return nil, err
		}
		if p.Model != "" {
			s.models.set(sess.ID(), p.Model)
		}
		if err := s.follow(ctx, sess, -1, s.answered(call)); err != nil {
			return nil, err
		}
		info, err := store.Session(ctx, sess.ID())
		return sessionInfo(info), err
	}, nil
}

// answered is closed when the request was answered.
func (s *server) answered(call *rpc.Call) <-chan struct{} {
	done := make(chan struct{})
	s.stream.After(call.ID, func() { close(done) })
	return done
}

// sessionOpen answers with the entries so far; those that follow are sent as events after that.
func sessionOpen(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error) {
	return func(ctx context.Context) (any, error) {
		var p wire.SessionOpenParams
		if err := rpc.Decode(req.Params(), &p); err != nil {
			return nil, err
		}
		if p.Session == "" {
			return nil, rpc.BadParam("session", "is missing")
		}
		a, store, err := s.backend(ctx)
		if err != nil {
			return nil, err
		}
		sess, err := a.Open(ctx, p.Session)
		if err != nil {
			return nil, rpc.About(p.Session, err)
		}
		entries, err := store.Entries(ctx, p.Session, max(0, p.Since), 0)
		if err != nil {
			return nil, rpc.About(p.Session, err)
		}
		entries = sess.Shown(entries)
		info, err := store.Session(ctx, p.Session)
		if err != nil {
			return nil, rpc.About(p.Session, err)
		}
		since := min(max(0, p.Since), info.Seq) // a log that was mended can be shorter than the one that the client knows
		if n := len(entries); n > 0 {
			since = entries[n-1].Seq
		}
		if err := s.follow(ctx, sess, since, s.answered(call)); err != nil {
			return nil, rpc.About(p.Session, err)
		}
		r := wire.SessionOpenResult{Session: sessionInfo(info), Entries: make([]wire.Entry, 0, len(entries))}
		for _, e := range entries {
			r.Entries = append(r.Entries, entry(e))
		}
		for _, t := range a.Running() {
			if t.Session() == p.Session && !t.Over() {
				r.Running = t.ID()
			}
		}
		return r, nil
	}, nil
}

func (s *server) sessionList(ctx context.Context, p wire.SessionListParams) (any, error) {
	root, err := workspaceParam(p.Workspace)
	if err != nil {
		return nil, err
	}
	_, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	infos, cursor, err := store.Sessions(ctx, transcript.SessionQuery{
		Workspace: root, Query: p.Query, Cursor: p.Cursor, Limit: p.Limit,
	})
	if err != nil {
		return nil, err
	}
	r := wire.SessionListResult{Sessions: make([]wire.Session, 0, len(infos)), Cursor: cursor}
	for _, i := range infos {
		r.Sessions = append(r.Sessions, sessionInfo(i))
	}
	return r, nil
}

func sessionInfo(i transcript.SessionInfo) wire.Session {
	return wire.Session{
		Session: i.ID, Workspace: i.Workspace, Title: i.Title, Parent: i.Parent,
		Created: i.Created, Updated: i.Updated, Turns: i.Turns, LastOutcome: i.LastOutcome, Seq: i.Seq,
	}
}

// session is the id that a client named, else the one it used last, else the newest of its first folder.
func (s *server) session(ctx context.Context, id transcript.SessionID) (transcript.SessionID, error) {
	if id != "" {
		return id, nil
	}
	a, store, err := s.backend(ctx)
	if err != nil {
		return "", err
	}
	if id, ok := a.NewestSession(); ok {
		return id, nil
	}
	infos, _, err := store.Sessions(ctx, transcript.SessionQuery{Workspace: realPath(s.folders.first()), Limit: 1})
	if err != nil {
		return "", err
	}
	if len(infos) == 0 {
		return "", fmt.Errorf("nothing was asked here yet: %w", transcript.ErrNoSession)
	}
	return infos[0].ID, nil
}
