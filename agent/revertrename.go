package agent

import (
	"context"
	"strings"

	"fermata/tools/workspace"
)

// spelledOtherwise looks at a file that goes back to a name which differs from the one it has now only in its letters' case. On
// systems that find a file by both, writing the one and deleting the other would delete it.
func (v *reverting) spelledOtherwise(t *revertTarget) {
	for _, o := range v.targets {
		if o == t || o.path == t.path || !strings.EqualFold(o.path, t.path) {
			continue
		}
		if t.file.Exists() && !t.file.Buffer && !v.w.HasName(t.path) {
			t.file = workspace.File{Path: t.path}
		}
		if t.before != "" && o.before == "" && !t.file.Exists() {
			t.twin = o
		}
	}
}

// renameBack gives a file that only has another name in letters' case the one that it had, and so settles two targets at once.
func (v *reverting) renameBack(ctx context.Context, t *revertTarget) {
	o := t.twin
	if o == nil || o.why != "" || string(o.file.Content) != string(t.content) {
		return
	}
	if err := v.w.Move(ctx, o.path, t.path, []workspace.File{o.file}); err != nil {
		t.why, o.why = err.Error(), err.Error()
		return
	}
	t.done, o.done = true, true
}
