package lsp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
)

type jsonValue = json.RawMessage

// phase is where the connection stands in LSP's life cycle. The zero value is before initialize.
type phase struct{ now atomic.Int32 }

const (
	phaseNew int32 = iota
	phaseRunning
	phaseShutdown
)

// admits says why a request is not in order now.
func (p *phase) admits(method string) error {
	switch now := p.now.Load(); {
	case now == phaseNew && method != "initialize":
		return jsonrpc2.NewError(jsonrpc2.ServerNotInitialized, "initialize first")
	case now == phaseRunning && method == "initialize":
		return jsonrpc2.NewError(jsonrpc2.InvalidRequest, "initialize was sent before")
	case now == phaseShutdown:
		return jsonrpc2.NewError(jsonrpc2.InvalidRequest, "the client has asked for a shutdown")
	}
	return nil
}

func (p *phase) shutdown() bool { return p.now.Load() == phaseShutdown }

// initializeParams is what matters of LSP's.
type initializeParams struct {
	RootPath         *string           `json:"rootPath"`
	RootURI          *string           `json:"rootUri"`
	WorkspaceFolders []workspaceFolder `json:"workspaceFolders"`
	Capabilities     jsonValue         `json:"capabilities"` // [capabilities]
}

type workspaceFolder struct {
	URI string `json:"uri"`
}

// capabilities is what matters of the client's.
type capabilities struct {
	General struct {
		PositionEncodings []string `json:"positionEncodings"`
	} `json:"general"`
	Workspace struct {
		WorkspaceEdit struct {
			DocumentChanges bool `json:"documentChanges"`
		} `json:"workspaceEdit"`
		CodeLens struct {
			RefreshSupport bool `json:"refreshSupport"`
		} `json:"codeLens"`
	} `json:"workspace"`
	TextDocument struct {
		CodeAction struct {
			CodeActionLiteralSupport jsonValue `json:"codeActionLiteralSupport"`
		} `json:"codeAction"`
	} `json:"textDocument"`
	Window struct {
		WorkDoneProgress bool `json:"workDoneProgress"`
		ShowDocument     struct {
			Support bool `json:"support"`
		} `json:"showDocument"`
	} `json:"window"`
	Experimental jsonValue `json:"experimental"`
}

// client is what a client can do.
type client struct {
	fermata         bool // speaks the fermata/* protocol
	ownCommands     bool
	documentChanges bool
	refreshLenses   bool
	actionLiterals  bool
	progress        bool
	showDocument    bool
}

func initialize(s *server, _ *rpc.Call, req *jsonrpc2.Request) (then, error) {
	var p initializeParams
	if err := rpc.Decode(req.Params(), &p); err != nil {
		return nil, err
	}
	var c capabilities
	_ = json.Unmarshal(p.Capabilities, &c) // what has another type than LSP's, as Lua's empty table [], is as if it were not there
	var experimental struct {
		Fermata *wire.Capability `json:"fermata"`
	}
	if json.Unmarshal(c.Experimental, &experimental) != nil { // anything may stand there
		experimental.Fermata = nil
	}
	literals := c.TextDocument.CodeAction.CodeActionLiteralSupport
	s.client = client{
		fermata:         experimental.Fermata != nil && experimental.Fermata.Protocol == wire.Protocol,
		ownCommands:     experimental.Fermata != nil && experimental.Fermata.OwnCommands,
		documentChanges: c.Workspace.WorkspaceEdit.DocumentChanges,
		refreshLenses:   c.Workspace.CodeLens.RefreshSupport,
		actionLiterals:  len(literals) > 0 && string(literals) != "null",
		progress:        c.Window.WorkDoneProgress,
		showDocument:    c.Window.ShowDocument.Support,
	}
	if slices.Contains(c.General.PositionEncodings, string(protocol.PositionEncodingKindUTF8)) {
		s.docs.enc = utf8Bytes
	}
	s.folders.init(p)
	s.phase.now.Store(phaseRunning)
	return func(context.Context) (any, error) { return encode(s.serverCapabilities()) }, nil
}

func (s *server) serverCapabilities() *protocol.InitializeResult {
	yes, change := true, protocol.TextDocumentSyncKindIncremental
	r := &protocol.InitializeResult{}
	r.ServerInfo = protocol.ServerInfo{Name: "fermata"}
	if s.o.Version != "" {
		r.ServerInfo.Version = protocol.NewOptional(s.o.Version)
	}
	c := &r.Capabilities
	c.PositionEncoding = protocol.PositionEncodingKindUTF16
	if s.docs.enc == utf8Bytes {
		c.PositionEncoding = protocol.PositionEncodingKindUTF8
	}
	c.TextDocumentSync = &protocol.TextDocumentSyncOptions{
		OpenClose: &yes, Change: &change, Save: &protocol.SaveOptions{IncludeText: &yes},
	}
	if !s.client.ownCommands {
		c.ExecuteCommandProvider.Commands = slices.Clone(commandNames)
	}
	c.CodeLensProvider = &protocol.CodeLensOptions{}
	c.CodeActionProvider = protocol.Boolean(true)
	c.Workspace = &protocol.WorkspaceOptions{WorkspaceFolders: &protocol.WorkspaceFoldersServerCapabilities{
		Supported: &yes, ChangeNotifications: protocol.Boolean(true),
	}}
	raw, _ := rpc.Encode(map[string]wire.Capability{"fermata": {Protocol: wire.Protocol}}) // two words and a number
	c.Experimental = protocol.LSPAny(raw)
	return r
}

// shutdown stops what runs, and answers when all of it has ended.
func shutdown(s *server, _ *rpc.Call, _ *jsonrpc2.Request) (then, error) {
	s.phase.now.Store(phaseShutdown)
	return func(context.Context) (any, error) {
		ctx, cancel := s.deadline()
		defer cancel()
		s.closeAgent(ctx, agent.ErrShutdown)
		return nil, nil
	}, nil
}

func (s *server) exit([]byte) error {
	select {
	case <-s.left:
	default:
		close(s.left)
	}
	return nil
}

// folders are the client's workspace folders as local paths, in its order.
type folders struct {
	mu    sync.Mutex
	paths []string
}

func (f *folders) init(p initializeParams) {
	for _, w := range p.WorkspaceFolders {
		f.add(w.URI)
	}
	if len(f.paths) == 0 && p.RootURI != nil {
		f.add(*p.RootURI)
	}
	if len(f.paths) == 0 && p.RootPath != nil {
		f.add(*p.RootPath)
	}
}

func (f *folders) add(s string) {
	if path, ok := localPath(s); ok && !slices.Contains(f.paths, path) {
		f.paths = append(f.paths, path)
	}
}

// first is the root of a session that names none, "" for none.
func (f *folders) first() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.paths) == 0 {
		return ""
	}
	return f.paths[0]
}

func (f *folders) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.paths)
}

// of is the folder that a file lies in, the first one for any other.
func (f *folders) of(path string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	best := ""
	for _, root := range f.paths {
		if _, ok := below(root, path); ok && len(root) > len(best) {
			best = root
		}
	}
	if best == "" && len(f.paths) > 0 {
		best = f.paths[0]
	}
	return best
}

func (s *server) didChangeFolders(params []byte) error {
	var p struct {
		Event struct {
			Added   []workspaceFolder `json:"added"`
			Removed []workspaceFolder `json:"removed"`
		} `json:"event"`
	}
	if err := rpc.Decode(params, &p); err != nil {
		return err
	}
	f := &s.folders
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range p.Event.Removed {
		path, _ := localPath(w.URI)
		f.paths = slices.DeleteFunc(f.paths, func(have string) bool { return have == path })
	}
	for _, w := range p.Event.Added {
		f.add(w.URI)
	}
	return nil
}
