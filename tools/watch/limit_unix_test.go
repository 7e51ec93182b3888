//go:build unix

package watch

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestWhenTheSystemGrantsNoWatchNoFileIsQuiet(t *testing.T) {
	for name, exhaust := range map[string]func(t *testing.T, w *watched) (free func()){
		"no more open files": func(t *testing.T, w *watched) func() {
			var was syscall.Rlimit
			w.must(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
			none := was
			none.Cur = 3
			w.must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
			return func() { w.must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)) }
		},
		"no more watches": func(_ *testing.T, w *watched) func() {
			w.w.add = func(string) error { return fmt.Errorf("watch: %w", syscall.ENOSPC) }
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, "a", "b")
			free := exhaust(t, w)
			var quiet bool
			for range 3 {
				quiet = w.Quiet("a") || w.Quiet("b") || quiet
			}
			free()
			if quiet {
				t.Error("a file that is not watched is quiet")
			}
			if n := strings.Count(w.log.String(), "not all files can be watched"); n != 1 {
				t.Errorf("the log said it %d times: %s", n, w.log.String())
			}
		})
	}
}
