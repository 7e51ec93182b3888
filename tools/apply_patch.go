package tools

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"fermata/tools/workspace"
)

//go:embed apply_patch.md
var applyPatchDescription string

type applyPatchArgs struct {
	Patch string `json:"patch"`
}

// patchFiles bounds how many files a patch changes.
const patchFiles = 200

func applyPatch() Tool {
	return definition[applyPatchArgs]{
		name: "apply_patch", description: applyPatchDescription,
		schema:   `{"type":"object","properties":{"patch":{"type":"string","description":"unified diff, of any number of files"}},"required":["patch"]}`,
		required: []string{"patch"},
		example:  `{"patch": "--- a/main.go\n+++ b/main.go\n@@ -3,3 +3,3 @@\n func main() {\n-\trun(3)\n+\trun(5)\n }\n"}`,
		valid: func(a applyPatchArgs) error {
			files, err := parsePatch(a.Patch)
			if err == nil && len(files) > patchFiles {
				err = fmt.Errorf("it is about %d files; give at most %d at once", len(files), patchFiles)
			}
			return err
		},
		summary: func(a applyPatchArgs) string {
			files, _ := parsePatch(a.Patch)
			var names []string
			for _, f := range files {
				if name := workspace.Show(f.name()); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			return strings.Join(names, ", ")
		},
		reach: func(w *workspace.Workspace, a applyPatchArgs) (paths []string, failed error) {
			files, err := parsePatch(a.Patch)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				for _, name := range f.names() {
					real, err := f.resolve(w, name)
					if err != nil {
						failed = err
					} else if !slices.Contains(paths, real) {
						paths = append(paths, real)
					}
				}
			}
			return paths, failed
		},
		run: runPatch,
	}.tool()
}

// names are the file's two names, or the one.
func (f *filePatch) names() []string {
	if f.rename {
		return []string{f.old, f.new}
	}
	return []string{f.name()}
}

// resolve is the path of a name. What is changed in place is the file that a link leads to; a name is moved or deleted as it stands.
func (f *filePatch) resolve(w *workspace.Workspace, name string) (string, error) {
	if f.rename || f.new == "" {
		return w.ResolveName(name)
	}
	return w.Resolve(name)
}

func runPatch(ctx context.Context, env Env, a applyPatchArgs) Result {
	files, err := parsePatch(a.Patch)
	if err != nil {
		return failf("apply_patch: nothing was done: %v", err)
	}
	p := &patching{ctx: ctx, env: env}
	for _, f := range files {
		if ctx.Err() != nil {
			return Result{State: Stopped, Output: "stopped before anything was changed"}
		}
		p.file(f)
	}
	if r, bad := p.failed(); bad {
		return r
	}
	var steps []step
	for _, t := range p.targets {
		steps = append(steps, t.steps(env.Workspace)...)
	}
	if bad, made := changeAll(ctx, env, "apply_patch", steps); !made {
		return bad
	}
	var out strings.Builder
	for _, t := range p.targets {
		fmt.Fprintln(&out, t.says())
	}
	return done(strings.TrimSuffix(out.String(), "\n"))
}

// patching works out what a patch comes to, file by file, and changes nothing.
type patching struct {
	ctx      context.Context
	env      Env
	targets  []*patchTarget
	problems []string
	stale    []Result // files that changed since the model read them
}

// patchTarget is a file to be created, changed, moved or deleted.
type patchTarget struct {
	from           workspace.File // as it is; of one to be created it does not exist
	path           string         // where it will be
	after          []byte         // nil: it is deleted
	added, removed int
	notes          []string
}

func (p *patching) problem(f filePatch, format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf("%s: %s", workspace.Show(f.name()), fmt.Sprintf(format, args...)))
}

// file takes in one file's part.
func (p *patching) file(f filePatch) {
	t, again, err := p.target(f)
	if err != nil {
		p.problem(f, "%v", err)
		return
	}
	if !again && t.from.Exists() {
		if bad, ok := current(p.ctx, p.env, "apply_patch", t.from); !ok {
			p.stale = append(p.stale, bad)
			return
		}
	}
	content := t.from
	if again {
		content.Content = t.after
	}
	if f.new == "" {
		err := p.env.Workspace.CheckClosed(t.path)
		if t.from.Mode == workspace.ModeLink {
			err = errors.New("it is a link; use delete_path")
		}
		if err != nil {
			p.problem(f, "%v", err)
			return
		}
	}
	if f.rename && len(f.hunks) == 0 {
		t.after = content.Content
	} else if !p.change(f, t, content) {
		return
	}
	if f.new == "" {
		if len(t.after) > 0 {
			p.problem(f, "the patch deletes it, but takes away %s of %d; give all of them, or use delete_path",
				plural(t.removed, "line"), t.removed+countLines(t.after))
		}
		t.after = nil
	}
	if !again {
		p.targets = append(p.targets, t)
	}
}

// target finds what a part is about; again says that another part was about the same file.
func (p *patching) target(f filePatch) (t *patchTarget, again bool, err error) {
	w := p.env.Workspace
	path, err := f.resolve(w, f.name())
	if err != nil {
		return nil, false, err
	}
	source := path
	if f.rename {
		if source, err = f.resolve(w, f.old); err != nil {
			return nil, false, err
		}
	}
	for _, o := range p.targets {
		if o.path != path && o.path != source && o.from.Path != path && o.from.Path != source {
			continue
		}
		if o.after == nil || f.old == "" || f.new == "" || f.rename || o.path != path {
			return nil, false, errors.New("it is in the patch twice, and not only to be changed; give one part for it, or two patches")
		}
		return o, true, nil
	}
	t = &patchTarget{path: path}
	switch {
	case f.old == "":
		if t.from, err = w.ReadOrNew(path); err == nil && t.from.Exists() {
			err = fmt.Errorf("%w, and the patch creates it", fs.ErrExist)
		}
		t.from.Mode = ""
		if f.mode == workspace.ModeExecutable {
			t.from.Mode = f.mode
		}
		return t, false, err
	case f.rename || f.new == "":
		t.from, err = w.ReadItself(source)
	default:
		t.from, err = w.ReadOrNew(source)
	}
	if err == nil && !t.from.Exists() && !f.creates() {
		err = fmt.Errorf("%w; to create it, write --- /dev/null", fs.ErrNotExist)
		if source != path {
			err = fmt.Errorf("%s: %w", workspace.Show(source), fs.ErrNotExist)
		}
	}
	return t, false, err
}

// creates reports whether a part that names a file twice can only be about a new one.
func (f *filePatch) creates() bool {
	return !f.rename && f.new != "" && len(f.hunks) == 1 && f.hunks[0].nowNew && f.hunks[0].start == 1 && len(f.hunks[0].old()) == 0
}

// change applies the hunks of a part; false when that cannot be.
func (p *patching) change(f filePatch, t *patchTarget, content workspace.File) bool {
	if !content.Exists() {
		var b strings.Builder
		for _, h := range f.hunks {
			b.WriteString(strings.Join(h.new(), ""))
		}
		t.after = []byte(b.String())
		return true
	}
	if content.Mode == workspace.ModeLink {
		p.problem(f, "it is a link, which has no lines to change")
		return false
	}
	text, form, err := content.Text()
	if err != nil {
		p.problems = append(p.problems, err.Error())
		return false
	}
	out, problems := applyHunks(text, f.hunks)
	for _, why := range problems {
		p.problem(f, "%s", why)
	}
	if len(problems) > 0 {
		return false
	}
	after := []byte(nil)
	if out.text != "" || f.new != "" {
		if after, err = form.Bytes(out.text); err != nil {
			p.problem(f, "%v", err)
			return false
		}
	}
	if f.new != "" && bytes.Equal(after, content.Content) {
		p.problem(f, "with the patch it is the same: line endings are kept as they are")
		return false
	}
	t.after = after
	t.added += out.added
	t.removed += out.removed
	t.notes = append(t.notes, out.notes...)
	return true
}

// failed is the result of a patch that cannot be applied as a whole.
func (p *patching) failed() (Result, bool) {
	if len(p.stale) == 0 && len(p.problems) == 0 {
		return Result{}, false
	}
	r := Result{State: Failed}
	said := []string{"apply_patch: nothing was changed, because not all of the patch can be applied"}
	for i, why := range p.problems {
		if i == hunksExplained {
			said = append(said, fmt.Sprintf("… and %d more problems", len(p.problems)-i))
			break
		}
		said = append(said, why)
	}
	for _, bad := range p.stale {
		said = append(said, strings.TrimPrefix(bad.Output, "apply_patch: "))
		r.Seen = append(r.Seen, bad.Seen...)
	}
	r.Output = strings.Join(said, "\n")
	return r, true
}

// steps are what makes the change.
func (t *patchTarget) steps(w *workspace.Workspace) []step {
	switch {
	case t.after == nil:
		return []step{removeStep(w, t.from)}
	case t.path == t.from.Path || !t.from.Exists():
		return []step{writeStep(w, t.from, t.after)}
	}
	move := moveStep(w, t.from.Path, t.path, []workspace.File{t.from})
	if bytes.Equal(t.after, t.from.Content) {
		return []step{move}
	}
	move.changes[0].After = t.after
	moved := t.from
	moved.Path = t.path
	write := writeStep(w, moved, t.after)
	write.changes, write.check = nil, nil
	return []step{move, write}
}

// says is a line about what was done.
func (t *patchTarget) says() string {
	name, lines := workspace.Show(t.path), fmt.Sprintf("+%d -%d lines", t.added, t.removed)
	s := "changed " + name
	switch {
	case t.after == nil:
		return "deleted " + name
	case !t.from.Exists():
		s, lines = "created "+name, plural(countLines(t.after), "line")
	case t.path != t.from.Path:
		s = "moved " + workspace.Show(t.from.Path) + " to " + name
		if t.added+t.removed == 0 {
			return s
		}
	}
	if t.from.Buffer {
		s += " in the editor, where it is open; it is not saved to disk yet"
	}
	s += ": " + lines
	if t.from.Links > 1 {
		s += " (on disk it had other names, hard links, which keep the old content)"
	}
	for i, note := range t.notes {
		if i == hunksNoted {
			return s + "; and others"
		}
		s += "; " + note
	}
	return s
}
