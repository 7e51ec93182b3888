package agent

import (
	"math/rand/v2"
	"time"

	"fermata/agent/model"
)

// Retry says how often and after how long a request that failed is tried again (F2). The zero value has useful defaults.
type Retry struct {
	Tries int           // in all, the first included; 0 means 5, 1 means never again
	Base  time.Duration // the wait before the second try, doubled for each further one; 0 means 1 s
	Max   time.Duration // of a wait, also of one that the provider asks for; 0 means 60 s
}

func (r Retry) withDefaults() Retry {
	if r.Tries == 0 {
		r.Tries = 5
	}
	if r.Base == 0 {
		r.Base = time.Second
	}
	if r.Max == 0 {
		r.Max = time.Minute
	}
	return r
}

// wait is how long to wait after a try that failed; ok is false when it makes no sense to try again: the tries are used
// up, the failure is not transient, or the provider asks for more patience than Max. What the provider asks for is never
// cut short; a wait of our own is somewhere in the upper half of its bound, so that many daemons do not come back at once.
func (r Retry) wait(try int, failure *model.Error) (d time.Duration, ok bool) {
	if try >= r.Tries || !failure.Transient() || failure.RetryAfter > r.Max {
		return 0, false
	}
	bound := r.Max
	if shift := try - 1; shift < 20 {
		bound = min(r.Base<<shift, r.Max)
	}
	d = bound/2 + rand.N(bound/2+1)
	return max(d, failure.RetryAfter), true
}
