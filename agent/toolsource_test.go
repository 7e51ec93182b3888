package agent

import (
	"context"
	"testing"

	"fermata/tools"
	"fermata/transcript"
)

// slowSource is a source whose servers never come up.
type slowSource struct{ asked chan struct{} }

func (s slowSource) Tools(ctx context.Context, _ string) ([]tools.Tool, []string) {
	close(s.asked)
	<-ctx.Done()
	return nil, []string{"the servers did not come up"}
}

func (slowSource) Close() {}

// The user's words are in the log before the turn waits for servers, and a stop ends the wait.
//
// guards P4, S1, S6
func TestWhatTheUserSaidDoesNotWaitForServers(t *testing.T) {
	w := newWorld(t, tools.All())
	source := slowSource{asked: make(chan struct{})}
	w.agent.o.More = source
	turn, reports := w.start(say("Hello?"))
	w.until(is[*transcript.TurnStarted])
	<-source.asked
	turn.Stop(ErrStopped)
	r := <-reports
	if r.Outcome != transcript.TurnStopped || !r.Silent {
		t.Errorf("the turn ended %+v", r)
	}
}
