package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// showDeadline is how long a client may take to open a file; some never answer.
const showDeadline = 10 * time.Second

// The types of messages to the user.
const (
	messageError = protocol.MessageTypeError
	messageInfo  = protocol.MessageTypeInfo
)

// stateFile writes a file below the state folder, for the user's eyes only, and returns its path.
func (s *server) stateFile(folder, name string, content []byte) (string, error) {
	dir := filepath.Join(s.o.StateDir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the state folder: %w", err)
	}
	f, err := os.CreateTemp(dir, ".new-*") // 0600
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(content)
	if closing := f.Close(); err == nil {
		err = closing
	}
	path := filepath.Join(dir, name)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // nothing refers to it
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return path, nil
}

// openTranscript writes a session to a file and shows it. Several clients open nothing but real files.
func (s *server) openTranscript(ctx context.Context, id transcript.SessionID) (any, error) {
	id, err := s.session(ctx, id)
	if err != nil {
		return nil, err
	}
	_, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	info, err := store.Session(ctx, id)
	if err != nil {
		return nil, rpc.About(id, err)
	}
	entries, said, err := store.News(ctx, id, transcript.Place{}) // with what is being said, and what a daemon that was killed had told
	if err != nil {
		return nil, rpc.About(id, err)
	}
	var text bytes.Buffer
	if _, err = transcript.Markdown(&text, info, entries); err == nil {
		err = transcript.MarkdownSaid(&text, said)
	}
	if err != nil {
		return nil, err
	}
	path, err := s.stateFile("transcripts", fileName(string(id))+".md", text.Bytes())
	if err != nil {
		return nil, err
	}
	return wire.CommandResult{Session: id, URI: fileURI(path), Shown: s.show(ctx, path, "The transcript")}, nil
}

// showModelInput writes the bytes a model was sent to a file, and an indented copy to another, and shows that one.
func (s *server) showModelInput(ctx context.Context, args wire.CommandArgs) (any, error) {
	in, err := s.input(ctx, wire.RequestInputParams{Request: args.Request, Session: args.Session})
	if err != nil {
		return nil, err
	}
	name := fileName(string(in.Info.ID))
	exact, err := s.stateFile("inputs", name+".body", in.Body)
	if err != nil {
		return nil, err
	}
	pretty := in.Body
	var b bytes.Buffer
	if json.Indent(&b, in.Body, "", "  ") == nil {
		pretty = append(b.Bytes(), '\n')
	}
	path, err := s.stateFile("inputs", name+".json", pretty)
	if err != nil {
		return nil, err
	}
	return wire.CommandResult{
		Session: in.Info.Session, Request: in.Info.ID, URI: fileURI(path), Bytes: fileURI(exact),
		Shown: s.show(ctx, path, "The model input"),
	}, nil
}

// fileName makes a name of an id that came from the client or the database.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z' {
			return r
		}
		return '_'
	}, id)
}

// show has the client open a file, or says where it is.
func (s *server) show(ctx context.Context, path, what string) bool {
	if s.client.showDocument {
		ctx, cancel := context.WithTimeout(ctx, showDeadline)
		defer cancel()
		yes := true
		var shown struct {
			Success bool `json:"success"`
		}
		err := s.call(ctx, protocol.MethodWindowShowDocument,
			&protocol.ShowDocumentParams{URI: uri.URI(fileURI(path)), TakeFocus: &yes}, &shown)
		if err == nil && shown.Success {
			return true
		}
	}
	s.showMessage(messageInfo, what+" is in "+path)
	return false
}

// showMessage tells the user something.
func (s *server) showMessage(t protocol.MessageType, text string) {
	if err := s.notify(protocol.MethodWindowShowMessage, &protocol.ShowMessageParams{Type: t, Message: text}); err != nil {
		s.log.Debug("show a message", "err", err)
	}
}
