package lsp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"fermata/rpc/wire"
	"fermata/tools/workspace"
)

// overlay is the open documents below a root: the client's text is what tools read, and what they change.
type overlay struct {
	s     *server
	names []string // the root's: as given, with links resolved, and as the client's folder
}

// Overlay gives the open documents below a root.
func (s *server) Overlay(root string) workspace.Overlay {
	return &overlay{s: s, names: s.rootNames(root)}
}

// rootNames are the paths by which a client may call a root.
func (s *server) rootNames(root string) []string {
	if root == "" {
		return nil
	}
	names := []string{filepath.Clean(root)}
	real := realPath(root)
	for _, f := range append([]string{real}, s.folders.all()...) {
		if realPath(f) == real && !slices.Contains(names, f) {
			names = append(names, f)
		}
	}
	return names
}

// within is the slash-separated path from a root that has several names.
func within(names []string, path string) (rel string, ok bool) {
	for _, n := range names {
		if rel, ok := below(n, path); ok {
			return rel, true
		}
	}
	return "", false
}

// find is the document with a path from the root, or of the file that a link of another name leads to. Call it with the
// documents' lock held.
func (o *overlay) find(path string) *document {
	for _, open := range []map[string]*document{o.s.docs.byKey, o.s.docs.byReal} {
		for _, n := range o.names {
			if d := open[filepath.Join(n, filepath.FromSlash(path))]; d != nil {
				return d
			}
		}
	}
	return nil
}

// Paths are the open documents, in any order.
func (o *overlay) Paths() []string {
	o.s.docs.mu.Lock()
	defer o.s.docs.mu.Unlock()
	var paths []string
	for _, d := range o.s.docs.byKey {
		rel, ok := within(o.names, d.path)
		if ok {
			paths = append(paths, rel)
		}
		if real, in := within(o.names, d.real); in && (!ok || real != rel) {
			paths = append(paths, real)
		}
	}
	return paths
}

// Text is a document's text.
func (o *overlay) Text(path string) (string, bool) {
	o.s.docs.mu.Lock()
	defer o.s.docs.mu.Unlock()
	d := o.find(path)
	if d == nil {
		return "", false
	}
	return d.text, true
}

// errLate: neither the text nor a refusal came.
var errLate = errors.New("the editor did not make the edit in time")

// errStale: the user typed while the edit was on its way.
var errStale = errors.New("the document was changed in the editor meanwhile; read it again")

// Apply has the client change a document. The client's reply is not believed, because several clients say that they made
// an edit which they dropped: it has succeeded when the document's new text came with a didChange.
func (o *overlay) Apply(ctx context.Context, path string, before, after string) error {
	o.s.docs.mu.Lock()
	d := o.find(path)
	if d == nil {
		o.s.docs.mu.Unlock()
		return fmt.Errorf("%s is no longer open in the editor", path)
	}
	if d.text != before {
		o.s.docs.mu.Unlock()
		return errStale
	}
	if before == after {
		o.s.docs.mu.Unlock()
		return nil
	}
	a := &awaited{text: after, came: make(chan struct{})}
	d.awaited = append(d.awaited, a)
	start, end, with := difference(before, after)
	enc := o.s.docs.enc
	r := wire.Range{Start: enc.position(before, start), End: enc.position(before, end)}
	edit := o.s.workspaceEdit(d.uri, d.version, r, with)
	o.s.docs.mu.Unlock()
	defer o.s.docs.giveUp(d, a)

	ctx, cancel := context.WithTimeoutCause(ctx, o.s.o.EditDeadline, errLate)
	defer cancel()
	type reply struct {
		Applied bool   `json:"applied"`
		Reason  string `json:"failureReason"`
	}
	replied := make(chan error, 1)
	o.s.work.Go(func() { // ends with the reply, or at the deadline: a stop does not take back what the client has begun
		ctx, cancel := context.WithTimeoutCause(o.s.life, o.s.o.EditDeadline, errLate)
		defer cancel()
		var r reply
		err := o.s.call(ctx, protocol.MethodWorkspaceApplyEdit, edit, &r)
		if err == nil && !r.Applied {
			err = fmt.Errorf("the editor did not make the edit: %s", r.Reason)
		}
		replied <- err
	})
	for {
		select {
		case <-a.came:
			return nil
		case err := <-replied:
			select {
			case <-a.came: // the reply that says no is as little believed
				return nil
			default:
			}
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			replied = nil
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", path, context.Cause(ctx))
		}
	}
}

// giveUp ends waiting.
func (ds *documents) giveUp(d *document, a *awaited) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for i, b := range d.awaited {
		if a == b {
			d.awaited = append(d.awaited[:i], d.awaited[i+1:]...)
			return
		}
	}
}

// workspaceEdit is the params of workspace/applyEdit for one replacement, versioned if the client can.
func (s *server) workspaceEdit(in string, version int32, r wire.Range, with string) any {
	edit := protocol.TextEdit{Range: lspRange(r), NewText: with}
	label := "Fermata"
	p := &protocol.ApplyWorkspaceEditParams{Label: &label}
	if s.client.documentChanges {
		doc := &protocol.TextDocumentEdit{Edits: []protocol.TextDocumentEditElement{&edit}}
		doc.TextDocument.URI = uri.URI(in)
		doc.TextDocument.Version = &version
		p.Edit.DocumentChanges = []protocol.DocumentChange{doc}
	} else {
		p.Edit.Changes = map[uri.URI][]protocol.TextEdit{uri.URI(in): {edit}}
	}
	return p
}

func lspRange(r wire.Range) protocol.Range {
	return protocol.Range{
		Start: protocol.Position{Line: r.Start.Line, Character: r.Start.Character},
		End:   protocol.Position{Line: r.End.Line, Character: r.End.Character},
	}
}

// call sends a request to the client and decodes the result. When ctx ends first the client is told to drop it.
func (s *server) call(ctx context.Context, method string, params, result any) error {
	raw, err := encode(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	id, err := s.conn.Call(ctx, method, raw, result)
	if err != nil && ctx.Err() != nil {
		n, _ := id.Number()
		if err := s.notify(protocol.MethodCancelRequest, map[string]int64{"id": n}); err != nil {
			s.log.Debug("cancel a request to the client", "err", err)
		}
		return context.Cause(ctx)
	}
	return err
}

// notify sends a notification to the client.
func (s *server) notify(method string, params any) error {
	raw, err := encode(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	return s.stream.Notify(method, raw)
}

// encode is the JSON of a type of LSP, or of our own.
func encode(v any) (jsonrpc2.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return protocol.Marshal(v)
}
