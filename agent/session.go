package agent

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"fermata/agent/model"
	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// SessionOptions begin a session. Workspace is an existing folder, or "" for a conversation without file tools.
type SessionOptions struct {
	Workspace string
	Title     string
}

// Session is one conversation as this process holds it. Its methods may be called from any goroutine.
type Session struct {
	agent  *Agent
	opened transcript.SessionOpened
	log    *transcript.Log
	hub    hub

	mu              sync.Mutex
	current         *Turn           // the turn that runs, nil when none does
	currentClientID string          // its start's ClientID
	clientIDs       map[string]bool // of the messages recorded by this process
	grants          permit.Grants
	mode            permit.Mode // set by [Session.SetMode]; "" is the configured one
	past            past        // what the next notice tells
	stale           bool        // results came late while a turn ran: past is to be read again
	dirty           bool        // the log could not be written: repair it before the next turn
	elsewhere       elsewhere
	space           *workspace.Workspace
	spaceErr        error
	frames          map[frameKey]frame
	more            atomic.Pointer[[]tools.Tool] // what the source offers besides the agent's tools
	known           *known                       // what the model has read
	late            sync.WaitGroup               // tools that outlived their deadline (S7)
}

type frameKey struct{ dialect, model string }

// frame is what stands around the messages of a request.
type frame struct {
	head, tail          []byte
	instructions, tools string // sha256 in hex: why an epoch opens (M5)
}

// New makes an agent. Close it.
func New(o Options) *Agent {
	if o.MaxSteps == 0 {
		o.MaxSteps = 50
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	o.Retry = o.Retry.withDefaults()
	if o.Log == nil {
		o.Log = discard
	}
	return &Agent{o: o, state: registry{sessions: map[transcript.SessionID]*Session{}, last: map[transcript.SessionID]transcript.TurnID{}, gone: make(chan struct{})}}
}

// Close stops every turn with a cause and waits until all have ended; after that no turn begins. When ctx ends first its
// cause is returned and the turns go on ending by themselves.
func (a *Agent) Close(ctx context.Context, cause error) error {
	defer a.endFollowing()
	a.state.mu.Lock()
	if !a.state.closed {
		close(a.state.gone)
	}
	a.state.closed, a.state.cause = true, cause
	turns := append([]*Turn(nil), a.state.turns...)
	sessions := make([]*Session, 0, len(a.state.sessions))
	for _, s := range a.state.sessions {
		sessions = append(sessions, s)
	}
	a.state.mu.Unlock()
	for _, t := range turns {
		t.Stop(cause)
	}
	for _, t := range turns {
		select {
		case <-t.done:
		case <-ctx.Done():
			if a.o.More != nil {
				a.o.More.Close()
			}
			return context.Cause(ctx)
		}
	}
	if a.o.More != nil {
		a.o.More.Close() // late results are waited for no more
	}
	var errs []error
	for _, s := range sessions {
		errs = append(errs, s.close(ctx))
	}
	if a.o.Watcher != nil {
		errs = append(errs, a.o.Watcher.Close())
	}
	return errors.Join(errs...)
}

// NewSession begins a session.
func (a *Agent) NewSession(ctx context.Context, o SessionOptions) (*Session, error) {
	if o.Workspace != "" {
		abs, err := filepath.Abs(o.Workspace)
		if err != nil {
			return nil, fmt.Errorf("workspace %q: %w", o.Workspace, err)
		}
		if info, err := os.Stat(abs); err != nil {
			return nil, fmt.Errorf("workspace: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("workspace %s is not a folder", abs)
		} else if !utf8.ValidString(abs) { // the log is JSON: the session would never find its folder again
			return nil, fmt.Errorf("workspace %q: its name is no UTF-8 text: give the folder another name", abs)
		}
		o.Workspace = abs
	}
	log, err := a.o.Store.NewSession(ctx, transcript.SessionOpened{Workspace: o.Workspace, Title: o.Title})
	if err != nil {
		return nil, err
	}
	s := a.adopt(log)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = false
	return s, nil
}

// Open opens a session that exists. When the daemon that ran its last turn died, the log is repaired by new entries (C2).
func (a *Agent) Open(ctx context.Context, id transcript.SessionID) (*Session, error) {
	a.state.mu.Lock()
	s := a.state.sessions[id]
	if s != nil {
		a.state.newest = id
	}
	a.state.mu.Unlock()
	if s != nil {
		return s, nil
	}
	log, err := a.o.Store.Log(ctx, id)
	if err != nil {
		return nil, err
	}
	s = a.adopt(log)
	if err := s.repair(ctx); err != nil && !errors.Is(err, transcript.ErrLeased) {
		a.o.Log.Warn("the session could not be repaired", "session", id, "err", err)
	}
	return s, nil
}

// adopt makes the Session for a log, or finds the one another goroutine has made.
func (a *Agent) adopt(log *transcript.Log) *Session {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	id := log.Session()
	a.state.newest = id
	if s := a.state.sessions[id]; s != nil {
		return s
	}
	s := &Session{agent: a, opened: log.Opened(), log: log, frames: map[frameKey]frame{}, dirty: true, known: newKnown(a.o.Store, log.Session(), a.o.Watcher)}
	s.hub.session, s.hub.told = id, log.Seq()
	s.hub.load = func(after, upTo int64) ([]transcript.Entry, error) {
		return a.o.Store.Entries(context.Background(), id, after, int(upTo-after))
	}
	a.state.sessions[id] = s
	return s
}

// NewestSession is the session that this client used last.
func (a *Agent) NewestSession() (transcript.SessionID, bool) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	return a.state.newest, a.state.newest != ""
}

// ID is the session's id.
func (s *Session) ID() transcript.SessionID { return s.log.Session() }

// Workspace is the absolute path of the session's root, "" for none.
func (s *Session) Workspace() string { return s.opened.Workspace }

// Subscribe tells the entries after seq since, then whatever follows. since -1 means only what follows. A subscriber in
// the middle of an answer is first told what was said so far.
func (s *Session) Subscribe(_ context.Context, since int64) (*Subscription, error) {
	s.agent.startFollowing()
	return s.hub.subscribe(since)
}

// repair brings the log to where a turn can begin: it settles a turn that a dead daemon left behind, and reads what the
// next notice has to tell. It does nothing while another daemon runs a turn in the session.
func (s *Session) repair(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repairLocked(ctx)
}

func (s *Session) repairLocked(ctx context.Context) error {
	if s.current != nil {
		return nil
	}
	if err := s.catchUpLocked(ctx); err != nil || !s.dirty {
		return err
	}
	if err := s.leaseLocked(ctx); err != nil {
		return err
	}
	_ = s.log.Release(context.WithoutCancel(ctx)) // an expired lease is as good as a released one
	return nil
}

// evidence is what a file of the workspace holds now (C3).
func (s *Session) evidence(path string) (sum string, exists bool, err error) {
	w, err := s.workspaceLocked()
	if err != nil {
		return "", false, err
	}
	f, err := w.ReadItself(path)
	if err != nil {
		return "", false, err
	}
	if !f.Exists() || !f.Buffer && !w.HasName(f.Path) { // it was renamed in its letters' case
		return "", false, nil
	}
	return digest(f.Content), true, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *Session) workspace() (*workspace.Workspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workspaceLocked()
}

func (s *Session) workspaceLocked() (*workspace.Workspace, error) {
	if s.space == nil {
		if s.opened.Workspace == "" {
			return nil, errors.New("this session has no workspace")
		}
		s.space, s.spaceErr = workspace.Open(s.opened.Workspace, s.agent.o.Client.Overlay(s.opened.Workspace))
	}
	return s.space, s.spaceErr
}

// working keeps the session open until done is called. It is [ErrClosed] from the moment on in which [Agent.Close] begins, so that
// nothing begins to use a store that is about to be closed.
func (s *Session) working() (done func(), err error) {
	s.agent.state.mu.Lock()
	defer s.agent.state.mu.Unlock()
	if s.agent.state.closed {
		return nil, ErrClosed
	}
	s.late.Add(1)
	return s.late.Done, nil
}

// close waits for tools that outlived their deadline, then lets the workspace go.
func (s *Session) close(ctx context.Context) error {
	back := make(chan struct{})
	go func() { // ends when the last tool does
		defer close(back)
		s.late.Wait()
	}()
	select {
	case <-back:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.known.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.space == nil {
		return nil
	}
	return s.space.Close()
}

// tools are what this session's model is offered.
func (s *Session) tools() []tools.Tool {
	if s.opened.Workspace == "" {
		return nil
	}
	return slices.Concat(s.agent.o.Tools, s.offered())
}

//go:embed instructions.md
var instructions string

// frame is what stands around the messages; equal for every request to one model (M4).
func (s *Session) frame(m Model) (frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := m.Provider.Dialect()
	key := frameKey{d.Dialect(), m.Name}
	if f, ok := s.frames[key]; ok {
		return f, nil
	}
	h := model.Head{Model: m.Name, Instructions: s.instructions()}
	for _, t := range s.tools() {
		h.Tools = append(h.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	head, tail, err := d.Frame(h)
	if err != nil {
		return frame{}, fmt.Errorf("encode the head of the request: %w", err)
	}
	toolsJSON, err := json.Marshal(h.Tools)
	if err != nil {
		return frame{}, fmt.Errorf("encode the tools: %w", err)
	}
	f := frame{head: head, tail: tail, instructions: digest([]byte(h.Instructions)), tools: digest(toolsJSON)}
	s.frames[key] = f
	return f, nil
}

func (s *Session) instructions() string {
	where := "No workspace is open: there are no file tools."
	if s.opened.Workspace != "" {
		where = "The workspace root is " + s.opened.Workspace + ". Paths given to tools are relative to it."
	}
	return strings.TrimSpace(strings.ReplaceAll(instructions, "{{workspace}}", where))
}

// newestTurn is the session's last turn, "" when there was none.
func (s *Session) newestTurn() transcript.TurnID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.past.turn
}
