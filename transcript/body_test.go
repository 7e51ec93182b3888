package transcript

import (
	"io"
	"sync"
	"testing"
)

// net/http closes the body of a request whose connection broke while its writing goroutine still reads from it.
//
// guards M2
func TestABodyMayBeClosedWhileItIsRead(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	_, sent := start(t, l, prose(1<<20))
	for range 20 {
		body, _, err := s.Body(t.Context(), sent.Request)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, body) })
		wg.Go(func() { _ = body.Close() })
		wg.Wait()
		if n, err := body.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("after the close %d bytes were read, %v", n, err)
		}
	}
}
