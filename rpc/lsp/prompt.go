package lsp

import (
	"fmt"
	"path/filepath"
	"strings"

	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// checkPrompt checks what can be checked without reading a file.
func checkPrompt(parts []wire.PromptPart) error {
	if len(parts) == 0 {
		return rpc.BadParam("prompt", "expected at least one part")
	}
	for i, p := range parts {
		at := func(field string) string { return fmt.Sprintf("prompt[%d].%s", i, field) }
		switch {
		case p.Type == "text":
		case p.Type != "file" && p.Type != "selection":
			return rpc.BadParam(at("type"), `expected "text", "file" or "selection", got %q`, p.Type)
		case p.URI == "" && p.Path == "":
			return rpc.BadParam(at("uri"), "a %s needs a uri or a path", p.Type)
		case p.Type == "selection" && p.Range == nil:
			return rpc.BadParam(at("range"), "is missing")
		}
	}
	return nil
}

// readPrompt makes a prompt as it is logged: with the content, at this time, of the files it names.
func (s *server) readPrompt(root string, parts []wire.PromptPart) ([]transcript.PromptPart, error) {
	out := make([]transcript.PromptPart, 0, len(parts))
	for i, p := range parts {
		if p.Type == "text" {
			out = append(out, transcript.PromptPart{Type: "text", Text: p.Text})
			continue
		}
		part, err := s.readPart(root, p)
		if err != nil {
			return nil, rpc.BadParam(fmt.Sprintf("prompt[%d]", i), "%v", err)
		}
		out = append(out, part)
	}
	return out, nil
}

// readPart reads a file or selection: from the client's open document, else from the workspace.
func (s *server) readPart(root string, p wire.PromptPart) (transcript.PromptPart, error) {
	path, err := partPath(root, p)
	if err != nil {
		return transcript.PromptPart{}, err
	}
	name := path // of a document that is no file, its URI
	rel, inside := within(s.rootNames(root), path)
	if inside {
		name = rel
	}
	out := transcript.PromptPart{Type: p.Type, Text: p.Text, Path: filepath.ToSlash(name)}
	text := p.Text
	if text == "" {
		if text, err = s.readFile(root, rel, p.URI, path); err != nil {
			return out, err
		}
	}
	switch {
	case p.Text != "" && p.Range != nil:
		out.Start, out.End = int(p.Range.Start.Line)+1, int(p.Range.End.Line)+1
		if p.Range.End.Character == 0 && out.End > out.Start {
			out.End--
		}
	case p.Range == nil:
		out.Text, out.Start, out.End = text, 1, max(1, countLines(strings.TrimRight(text, "\r\n"))+1)
	case p.Type == "file":
		lines := wire.Range{Start: wire.Position{Line: p.Range.Start.Line}, End: wire.Position{Line: p.Range.End.Line}}
		if p.Range.End.Character > 0 || p.Range.End.Line <= p.Range.Start.Line {
			lines.End.Line = max(lines.End.Line, lines.End.Line+1) // the highest number there is means the end of the file
		}
		out.Text, out.Start, out.End = s.docs.enc.excerpt(text, lines)
	default:
		out.Text, out.Start, out.End = s.docs.enc.excerpt(text, *p.Range)
	}
	return out, nil
}

// partPath is the local path of a part, or the URI of one that is no file.
func partPath(root string, p wire.PromptPart) (string, error) {
	if p.URI != "" {
		if path, ok := filePath(p.URI); ok {
			return path, nil
		}
		return p.URI, nil
	}
	local := filepath.FromSlash(p.Path)
	if filepath.IsAbs(local) {
		return filepath.Clean(local), nil
	}
	if root == "" {
		return "", fmt.Errorf("%s is relative, but the session has no workspace", p.Path)
	}
	return filepath.Join(root, local), nil
}

// readFile reads what a user named. A file outside of the workspace, with no path from the root, is only read as an open
// document.
func (s *server) readFile(root, rel, uri, path string) (string, error) {
	if uri == "" {
		uri = fileURI(path)
	}
	if d, ok := s.docs.get(uri); ok {
		return d.text, nil
	}
	if rel == "" {
		return "", fmt.Errorf("%s is neither open in the editor nor in the session's workspace", path)
	}
	w, err := workspace.Open(root, s.Overlay(root))
	if err != nil {
		return "", err
	}
	defer w.Close()
	f, err := w.Read(rel)
	if err != nil {
		return "", err
	}
	text, _, err := f.Text()
	return text, err
}
