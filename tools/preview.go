package tools

import (
	"context"
	"encoding/json"
	"errors"
)

// errPreview keeps a tool that only shows what it would do from doing it.
var errPreview = errors.New("this is only a preview")

// preview runs a tool up to where it would change a file: change hands over what it was about to do instead, and for
// whatever does not go through it, no intent succeeds (C3).
func (d definition[A]) preview(ctx context.Context, env Env, args json.RawMessage) (changes []Change, result Result) {
	a, err := decodeArgs[A](args, d.required)
	if err != nil {
		return nil, failf("%s: %v", d.name, err)
	}
	env.Progress = nil
	env.Intent = func(context.Context, Change) error { return errPreview }
	env.preview = func(c Change) { changes = append(changes, c) }
	result = d.run(ctx, env, a)
	return changes, result
}
