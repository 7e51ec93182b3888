package main

import (
	"os"
	"path/filepath"

	"fermata/tools/process"
)

// runConfig is [run]: how commands are run.
type runConfig struct {
	Sandbox any `toml:"sandbox"` // true, false or "if-available"; nil is false
}

const sandboxIfAvailable = "if-available"

// run reports what is wrong with [run].
func (v *validator) run(c runConfig) {
	switch s := c.Sandbox.(type) {
	case nil, bool:
	case string:
		if s != sandboxIfAvailable {
			v.at([]string{"run", "sandbox"}, "sandbox is %q; it must be true, false or %q%s", s, sandboxIfAvailable, didYouMean(s, []string{sandboxIfAvailable}))
		}
	default:
		v.at([]string{"run", "sandbox"}, "sandbox must be true, false or %q", sandboxIfAvailable)
	}
}

// sandbox is what commands are confined by, nil for nothing. protected are paths that they must not see.
func (c runConfig) sandbox(protected []string) *process.Sandbox {
	required, _ := c.Sandbox.(bool)
	if !required && c.Sandbox != any(sandboxIfAvailable) {
		return nil
	}
	s := &process.Sandbox{Required: required, Hide: protected}
	if dir, err := os.UserCacheDir(); err == nil && filepath.IsAbs(dir) {
		s.Caches = filepath.Join(dir, "fermata", "sandbox")
	}
	return s
}
