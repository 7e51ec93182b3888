package lsp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
)

// prompts are the prompt files that wait to be saved: how a client without an input for free text asks and redirects.
type prompts struct {
	mu    sync.Mutex
	byKey map[string]pending
}

// pending is what saving a prompt file does.
type pending struct {
	args     wire.CommandArgs
	redirect bool
	report   agent.Report // of the turn to redirect
}

const (
	promptOpen  = "<!--"
	promptClose = "-->"
)

// header is the comment at the top of a prompt file. What is in it is not sent.
func (p pending) header() string {
	head := promptOpen + " Fermata: write your question below this line, then save this file to send it. " + promptClose + "\n\n"
	if !p.redirect {
		return head
	}
	kept := "nothing was said"
	if p.report.Kept != nil {
		kept = words(p.report.Kept.Words) + " kept"
	}
	head = promptOpen + " Fermata: stopped here (" + kept + "). What should it do instead? Write it below, then save. " +
		promptClose + "\n\n"
	if p.report.Silent {
		for _, part := range p.report.Prompt {
			if part.Type == "text" {
				head += part.Text + "\n" // S6: to be edited
			}
		}
	}
	return head
}

// openPrompt opens a file to write a prompt in. It is sent when the client says that the file was saved.
func (s *server) openPrompt(ctx context.Context, p pending) (any, error) {
	if _, _, err := s.backend(ctx); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.o.StateDir, "prompts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	name := "ask-*.md"
	if p.redirect {
		name = "redirect-*.md"
	}
	f, err := os.CreateTemp(dir, name) // 0600
	if err != nil {
		return nil, fmt.Errorf("make a prompt file: %w", err)
	}
	path := f.Name()
	_, err = f.WriteString(p.header())
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, fmt.Errorf("write the prompt file: %w", err)
	}
	s.prompts.mu.Lock()
	if s.prompts.byKey == nil {
		s.prompts.byKey = map[string]pending{}
	}
	s.prompts.byKey[key(fileURI(path))] = p
	s.prompts.mu.Unlock()
	return wire.CommandResult{
		Session: p.report.Session, Turn: p.report.Turn, URI: fileURI(path), Shown: s.show(ctx, path, "The prompt to write and save"),
	}, nil
}

// didSave sends a prompt file. Registering happens here, where messages are read (S2).
func (s *server) didSave(params []byte) error {
	var p didSaveParams
	if err := rpc.Decode(params, &p); err != nil {
		return err
	}
	k := key(p.TextDocument.URI)
	s.prompts.mu.Lock()
	waiting, ok := s.prompts.byKey[k]
	s.prompts.mu.Unlock()
	if !ok {
		return nil
	}
	text, err := s.savedText(p)
	if err != nil {
		return err
	}
	if text = promptText(text); text == "" {
		return nil // saved before anything was written
	}
	s.prompts.mu.Lock()
	delete(s.prompts.byKey, k)
	s.prompts.mu.Unlock()
	q, err := s.register(waiting, textPrompt(text))
	if err != nil {
		s.work.Go(func() { s.showMessage(messageError, "Fermata: "+err.Error()) }) // may block on the client
		return err
	}
	q.file = true
	begun := s.launch(q)
	s.work.Go(func() { // ends when the turn has begun, or could not
		if _, err := begun(s.ctx); err != nil && s.ctx.Err() == nil {
			s.showMessage(messageError, "Fermata: "+err.Error())
		}
	})
	return nil
}

// savedText is the text of a saved document: as sent, as it is open, or as it is on disk.
func (s *server) savedText(p didSaveParams) (string, error) {
	if p.Text != nil {
		return *p.Text, nil
	}
	if d, ok := s.docs.get(p.TextDocument.URI); ok {
		return d.text, nil
	}
	path, _ := filePath(p.TextDocument.URI)
	b, err := os.ReadFile(path)
	return string(b), err
}

// promptText is what was written in a prompt file.
func promptText(text string) string {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), promptOpen); ok {
		if _, after, ok := strings.Cut(rest, promptClose); ok {
			text = after
		}
	}
	return strings.TrimSpace(text)
}
