package lsp

import (
	"sync"

	"fermata/rpc"
	"fermata/rpc/wire"
)

// documents are the client's open documents. They are changed in wire order, by the goroutine that reads messages, and
// read by any.
type documents struct {
	enc encoding // set by initialize, before there are documents

	mu     sync.Mutex
	byKey  map[string]*document
	byReal map[string]*document // by document.real; of several, one
}

// document is an open document. The client's text, saved or not, is the file.
type document struct {
	uri     string // as the client wrote it
	path    string // of a file URI, else ""
	real    string // path with its links resolved, when it was opened
	text    string
	version int32
	awaited []*awaited
}

// awaited is a text that an edit should bring about.
type awaited struct {
	text string
	came chan struct{} // closed when it did
}

// key is the same for every way to write a URI.
func key(uri string) string {
	if path, ok := filePath(uri); ok {
		return path
	}
	return uri
}

type textDocument struct {
	URI     string `json:"uri"`
	Version int32  `json:"version"`
	Text    string `json:"text"`
}

type didOpenParams struct {
	TextDocument textDocument `json:"textDocument"`
}

type didChangeParams struct {
	TextDocument   textDocument `json:"textDocument"`
	ContentChanges []change     `json:"contentChanges"`
}

type didCloseParams struct {
	TextDocument textDocument `json:"textDocument"`
}

type didSaveParams struct {
	TextDocument textDocument `json:"textDocument"`
	Text         *string      `json:"text"`
}

func (s *server) didOpen(params []byte) error {
	var p didOpenParams
	if err := rpc.Decode(params, &p); err != nil {
		return err
	}
	d := &document{uri: p.TextDocument.URI, text: p.TextDocument.Text, version: p.TextDocument.Version}
	d.path, _ = filePath(d.uri)
	d.real = realPath(d.path)
	s.docs.mu.Lock()
	defer s.docs.mu.Unlock()
	if s.docs.byKey == nil {
		s.docs.byKey, s.docs.byReal = map[string]*document{}, map[string]*document{}
	}
	s.docs.forget(key(d.uri))
	s.docs.byKey[key(d.uri)] = d
	s.docs.byReal[d.real] = d
	return nil
}

// forget takes a document out. Call it with the lock held.
func (ds *documents) forget(key string) {
	d := ds.byKey[key]
	if d == nil {
		return
	}
	delete(ds.byKey, key)
	if ds.byReal[d.real] != d {
		return
	}
	delete(ds.byReal, d.real)
	for _, other := range ds.byKey {
		if now := ds.byReal[d.real]; other.real == d.real && (now == nil || other.path < now.path) {
			ds.byReal[d.real] = other
		}
	}
}

func (s *server) didChange(params []byte) error {
	var p didChangeParams
	if err := rpc.Decode(params, &p); err != nil {
		return err
	}
	k := key(p.TextDocument.URI)
	s.docs.mu.Lock()
	d := s.docs.byKey[k]
	if d != nil {
		d.version = p.TextDocument.Version
		if len(d.awaited) == 0 {
			d.text = s.docs.enc.apply(d.text, p.ContentChanges)
		} else {
			for _, c := range p.ContentChanges {
				d.text = c.apply(s.docs.enc, d.text)
				d.arrived()
			}
		}
	}
	s.docs.mu.Unlock()
	for _, c := range p.ContentChanges {
		s.views.shift(k, c)
	}
	return nil
}

// arrived tells those who wait for the text that the document has now.
func (d *document) arrived() {
	kept := d.awaited[:0]
	for _, a := range d.awaited {
		if sameButEOL(d.text, a.text) {
			close(a.came)
		} else {
			kept = append(kept, a)
		}
	}
	d.awaited = kept
}

func (s *server) didClose(params []byte) error {
	var p didCloseParams
	if err := rpc.Decode(params, &p); err != nil {
		return err
	}
	s.docs.mu.Lock()
	defer s.docs.mu.Unlock()
	s.docs.forget(key(p.TextDocument.URI))
	return nil
}

// get is a copy of an open document.
func (ds *documents) get(uri string) (document, bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.byKey[key(uri)]
	if d == nil {
		return document{}, false
	}
	return *d, true
}

// excerpt is the text of a range, and the lines it covers, from 1, the last one included.
func (enc encoding) excerpt(text string, r wire.Range) (part string, first, last int) {
	start, end := enc.span(text, r)
	from, to := enc.position(text, start), enc.position(text, end)
	first, last = int(from.Line)+1, int(to.Line)+1
	if to.Character == 0 && last > first {
		last-- // the range ends with the line before
	}
	return text[start:end], first, last
}
