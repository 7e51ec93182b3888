package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"fermata/transcript"
)

// ErrBadPrompt is wrapped by the errors of a prompt that cannot be sent; their text says what to change.
var ErrBadPrompt = errors.New("bad prompt")

// quoteBound is the most bytes of one file that a prompt quotes.
const quoteBound = 1 << 20

// fill checks a prompt and puts the text into file ranges that came without it, as the user sees it: from the open
// buffer, else from the disk. The result is a copy.
func (s *Session) fill(ctx context.Context, prompt []transcript.PromptPart) ([]transcript.PromptPart, error) {
	out := append([]transcript.PromptPart(nil), prompt...)
	said := false
	for i := range out {
		p := &out[i]
		switch p.Type {
		case "text":
			said = said || strings.TrimSpace(p.Text) != ""
			continue
		case "file", "selection":
		default:
			return nil, fmt.Errorf("%w: part %d has the type %q; it is one of \"text\", \"file\", \"selection\"", ErrBadPrompt, i+1, p.Type)
		}
		if p.Path == "" || p.Start < 0 || p.End < 0 || p.End > 0 && p.End < p.Start {
			return nil, fmt.Errorf("%w: part %d needs a path, and lines counted from 1 with start before end", ErrBadPrompt, i+1)
		}
		said = true
		if p.Text != "" {
			p.Start = max(p.Start, 1)
			p.End = max(p.End, p.Start+strings.Count(strings.TrimSuffix(p.Text, "\n"), "\n"))
			continue
		}
		w, err := s.workspace()
		if err != nil {
			return nil, fmt.Errorf("%w: part %d quotes %s: %w", ErrBadPrompt, i+1, p.Path, err)
		}
		f, err := w.Read(p.Path)
		if err != nil {
			return nil, fmt.Errorf("%w: part %d: %w", ErrBadPrompt, i+1, err)
		}
		p.Text, p.Start, p.End = lines(f.Content, p.Start, p.End)
		if len(p.Text) > quoteBound {
			return nil, fmt.Errorf("%w: part %d quotes %d bytes of %s; name a range of at most %d bytes", ErrBadPrompt, i+1, len(p.Text), p.Path, quoteBound)
		}
	}
	if !said {
		return nil, fmt.Errorf("%w: it says nothing", ErrBadPrompt)
	}
	for i := range out {
		if out[i].Type != "text" {
			if err := s.quote(ctx, &out[i]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// lines cuts the lines start to end, 1-based and included, out of content; 0 means the first and the last one.
func lines(content []byte, start, end int) (text string, from, to int) {
	all := bytes.SplitAfter(content, []byte("\n"))
	if n := len(all); n > 1 && len(all[n-1]) == 0 {
		all = all[:n-1]
	}
	from, to = min(max(start, 1), len(all)), len(all)
	if end > 0 {
		to = max(min(end, len(all)), from)
	}
	return strings.ToValidUTF8(string(bytes.Join(all[from-1:to], nil)), "\uFFFD"), from, to
}
