package rehearsal

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: the daemon starts without those of a model that
// it may never need.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
