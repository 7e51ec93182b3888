package lsp

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// VS Code draws once it was not asked for 375 ms: asked every 300 ms, it showed no lens of an answer that streamed.
func TestLensesAreLeftAloneLongEnoughToBeDrawnWhileWordsCome(t *testing.T) {
	for name, tt := range map[string]struct {
		states []int64 // when what can be done changes; words come all the time
		want   []int64 // when the client is asked
	}{
		"words alone":                {nil, []int64{0, 1000, 2000, 3000}},
		"a stop is drawn at once":    {[]int64{1700}, []int64{0, 1000, 1700, 2700}},
		"but not right behind words": {[]int64{1100}, []int64{0, 1000, 1500, 2500}},
		"nor all of many":            {[]int64{1700, 1710, 1720}, []int64{0, 1000, 1700, 2200, 3200}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				life, end := context.WithCancel(t.Context())
				r, begun := newRefresher(), time.Now()
				var asked []int64
				done := make(chan struct{})
				go func() { // ends with life
					defer close(done)
					r.run(life, func() { asked = append(asked, time.Since(begun).Milliseconds()) })
				}()
				tick := time.NewTicker(10 * time.Millisecond)
				for r.changed(true); ; r.changed(true) {
					now := time.Since(begun).Milliseconds()
					if slices.Contains(tt.states, now) {
						r.changed(false)
					}
					if now >= 3500 {
						break
					}
					<-tick.C
				}
				end()
				<-done
				if len(asked) < len(tt.want) {
					t.Fatalf("asked at %d, want %d", asked, tt.want)
				}
				for i, want := range tt.want {
					if d := asked[i] - want; d < 0 || d > 10 {
						t.Errorf("asked at %d, want %d", asked, tt.want)
						break
					}
				}
			})
		})
	}
}
