package tools

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// bugs brings a panic of a goroutine into the one that waits for it: there whoever runs the tool recovers from it, and in the
// goroutine it would end the process with all of its sessions.
type bugs struct {
	stop func() // called when there is one

	mu    sync.Mutex
	first string // with its stack; "" for none
}

// catch is deferred in the goroutine.
func (b *bugs) catch() {
	p := recover()
	if p == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == "" {
		b.first = fmt.Sprintf("%v, in a goroutine:\n%s", p, debug.Stack())
	}
	b.stop()
}

// raise panics with the first that was caught; the goroutines have ended.
func (b *bugs) raise() {
	if b.first != "" {
		panic(b.first)
	}
}
