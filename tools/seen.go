package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"fermata/tools/workspace"
)

// Bounds of what is remembered of a file that a model has read.
const (
	MaxSeen  = 16 << 20  // bytes of a file up to which a read of it is remembered
	MaxKept  = 256 << 10 // bytes up to which its content is kept too, to tell later what changed
	newsSize = 16 << 10  // bytes shown of what changed
)

// Seen is a file as the model knows it after a run, whole: it was shown it, or told exactly how it differs from what it knew.
type Seen struct {
	Path    string // as [workspace.File].Path
	SHA256  string // of the content in hex; "": there is no such file any more
	Content []byte // nil when it is longer than MaxKept, or there is no file
}

// Memory is what the model of a session has read. Its methods may be called from any goroutine.
type Memory interface {
	// Known is the hash of a file as the model read it last, or as a tool of its own left it after that; ok is false when
	// it has not read it.
	Known(path string) (sha256 string, ok bool)
	// Content is what a known hash is of, nil when it was not kept.
	Content(ctx context.Context, sha256 string) []byte
}

// See is what there is to remember of a content that the model was shown, nil when it is too long.
func See(path string, content []byte) []Seen {
	if len(content) > MaxSeen {
		return nil
	}
	s := Seen{Path: path, SHA256: Digest(content)}
	if len(content) <= MaxKept {
		s.Content = content
	}
	return []Seen{s}
}

// Digest is the SHA-256 of a file's content in hex.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// SameText reports whether two contents of a file read the same: they differ at most in their encoding, in a byte order mark
// and in line endings, of which editors have a view of their own.
func SameText(a, b []byte) bool { return bytes.Equal(plainText(a), plainText(b)) }

// Before is the content of a known file that has another hash now, nil when it is not to be had. One that was too long to be kept is
// still on the disk when the file is only open in the editor.
func Before(ctx context.Context, m Memory, w *workspace.Workspace, path, sha256 string) []byte {
	if content := m.Content(ctx, sha256); content != nil {
		return content
	}
	if w.IsOpen(path) {
		if disk, err := w.ReadDisk(path, MaxSeen); err == nil && Digest(disk.Content) == sha256 {
			return disk.Content
		}
	}
	return nil
}

func plainText(content []byte) []byte {
	if text, _, err := (workspace.File{Content: content}).Text(); err == nil {
		content = []byte(text)
	}
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
}

// current checks that a file is still what the model read last; if not, bad is the tool's result, and tells what changed.
// What that shows whole counts as read, so that the next try can succeed. A file that the model has not read passes.
func current(ctx context.Context, env Env, tool string, f workspace.File) (bad Result, ok bool) {
	if env.Memory == nil {
		return Result{}, true
	}
	sum, known := env.Memory.Known(f.Path)
	if !known || f.Exists() && sum == Digest(f.Content) {
		return Result{}, true
	}
	name := workspace.Show(f.Path)
	if !f.Exists() {
		bad = failf("%s: %s was deleted since you last read it; nothing was done. Create it anew only if that is what the user wants", tool, name)
		bad.Seen = []Seen{{Path: f.Path}}
		return bad, false
	}
	where := ""
	if f.Buffer {
		where = " (in the editor, where it is open)"
	}
	before := Before(ctx, env.Memory, env.Workspace, f.Path, sum)
	if before != nil && SameText(before, f.Content) {
		return Result{}, true
	}
	if before == nil || max(len(before), len(f.Content)) > diffInput {
		return failf("%s: %s changed since you last read it%s; nothing was done. Read it again first", tool, name, where), false
	}
	text, _, _, whole := boundedDiff(before, f.Content, newsSize)
	if !whole {
		return failf("%s: %s changed since you last read it%s; nothing was done. Read it again first. What changed begins with:\n%s", tool, name, where, text), false
	}
	bad = failf("%s: %s changed since you last read it%s; nothing was done. This is what changed; take it into account and try again:\n%s", tool, name, where, text)
	bad.Seen = See(f.Path, f.Content)
	return bad, false
}

// haveRead is current for a tool that replaces the whole content: it must not bury what the model has not read.
func haveRead(ctx context.Context, env Env, tool string, f workspace.File) (bad Result, ok bool) {
	if env.Memory != nil && len(f.Content) > 0 {
		if _, known := env.Memory.Known(f.Path); !known {
			return failf("%s: %s exists, and you have not read it; nothing was done. Read it first with read_file, or change part of it with edit_file",
				tool, workspace.Show(f.Path)), false
		}
	}
	return current(ctx, env, tool, f)
}

// look watches a stream being read to its end, to remember what it was. The result of what reads it goes through seen.
func look(s *workspace.Stream) *sighting {
	g := &sighting{ReadCloser: s.ReadCloser, path: s.Path, sum: sha256.New()}
	s.ReadCloser = g
	return g
}

type sighting struct {
	io.ReadCloser
	path string
	sum  hash.Hash
	n    int64
	kept []byte
	end  bool
}

func (g *sighting) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	g.end = g.end || errors.Is(err, io.EOF)
	if g.n += int64(n); g.n <= MaxSeen {
		g.sum.Write(p[:n])
	}
	if g.n <= MaxKept {
		g.kept = append(g.kept, p[:n]...)
	}
	return n, err
}

// seen adds to the result of a tool that showed part of the file that the file was read.
func (g *sighting) seen(r Result) Result {
	if r.State != Done || !g.end || g.n > MaxSeen {
		return r
	}
	s := Seen{Path: g.path, SHA256: hex.EncodeToString(g.sum.Sum(nil))}
	if g.n <= MaxKept {
		s.Content = append([]byte{}, g.kept...)
	}
	r.Seen = append(r.Seen, s)
	return r
}
