package lsp

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"go.lsp.dev/protocol"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// pumps write the events of the sessions that the client follows, one goroutine for each.
type pumps struct {
	mu   sync.Mutex
	subs map[transcript.SessionID]*agent.Subscription
}

// remove forgets a session that is deleted: its subscription is closed, and would keep all of it in memory.
func (p *pumps) remove(id transcript.SessionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, id)
}

// follow subscribes the client to a session, unless it is already. since is as in [agent.Session.Subscribe]. Nothing is
// written before begin is closed; nil means at once.
func (s *server) follow(ctx context.Context, sess *agent.Session, since int64, begin <-chan struct{}) error {
	s.pumps.mu.Lock()
	defer s.pumps.mu.Unlock()
	if s.pumps.subs[sess.ID()] != nil {
		return nil
	}
	sub, err := sess.Subscribe(ctx, since)
	if err != nil {
		return err
	}
	if s.pumps.subs == nil {
		s.pumps.subs = map[transcript.SessionID]*agent.Subscription{}
	}
	s.pumps.subs[sess.ID()] = sub
	s.work.Go(func() { // ends with life
		defer sub.Close()
		if begin != nil {
			select {
			case <-begin:
			case <-s.life.Done():
				return
			}
		}
		s.pump(sub)
	})
	return nil
}

// pump writes events until the client's time is over. It may block on a client that does not read; then the subscription
// joins deltas, and no turn waits (S13).
func (s *server) pump(sub *agent.Subscription) {
	var buf []byte
	for {
		ev, err := sub.Next(s.life)
		if err != nil {
			if !errors.Is(err, io.EOF) && s.life.Err() == nil {
				s.log.Error("events stopped", "err", err)
			}
			return
		}
		control := s.views.see(ev)
		buf = appendEvent(buf[:0], ev)
		if err := s.stream.Notify(wire.Event, buf); err != nil {
			return // the stream has hung up
		}
		if ev.Warning != nil && !s.client.fermata {
			s.showMessage(protocol.MessageTypeWarning, ev.Warning.Text)
		}
		s.progressOfNext(ev)
		if control && s.client.refreshLenses {
			s.lenses.changed(ev.Delta != nil)
		}
		if cap(buf) > 1<<20 {
			buf = nil
		}
	}
}

// drain waits until all events of a session so far were written, or ctx ends: neither a reply nor a question about a call must
// overtake them (S4).
func (s *server) drain(ctx context.Context, id transcript.SessionID) {
	s.pumps.mu.Lock()
	sub := s.pumps.subs[id]
	s.pumps.mu.Unlock()
	if sub == nil {
		return
	}
	if err := sub.Drain(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("wait for events", "err", err)
	}
}

// appendEvent appends the params of fermata/event. It is the path of every delta: no reflection, no allocation.
func appendEvent(dst []byte, ev agent.Event) []byte {
	dst = append(dst, `{"session":`...)
	dst = transcript.AppendString(dst, string(ev.Session))
	switch {
	case ev.Delta != nil:
		d := ev.Delta
		dst = appendStep(dst, wire.EventDelta, d.Turn, d.Step)
		dst = append(dst, `,"part":`...)
		dst = transcript.AppendString(dst, string(d.Part))
		dst = append(dst, `,"offset":`...)
		dst = strconv.AppendInt(dst, d.Offset, 10)
		dst = appendText(dst, `,"text":`, d.Text)
	case ev.Output != nil:
		o := ev.Output
		dst = appendStep(dst, wire.EventOutput, o.Turn, o.Step)
		dst = appendText(dst, `,"call":`, string(o.Call))
		dst = appendText(dst, `,"text":`, o.Text)
	case ev.Retracted != nil:
		dst = appendStep(dst, wire.EventRetracted, ev.Retracted.Turn, ev.Retracted.Step)
		dst = append(dst, `,"try":`...)
		dst = strconv.AppendInt(dst, int64(ev.Retracted.Try), 10)
		dst = appendText(dst, `,"why":`, ev.Retracted.Why)
	case ev.Stopping != nil:
		dst = appendText(dst, `,"kind":`, wire.EventStopping)
		dst = appendText(dst, `,"turn":`, string(ev.Stopping.Turn))
	case ev.Warning != nil:
		dst = appendText(dst, `,"kind":`, wire.EventWarning)
		dst = appendText(dst, `,"turn":`, string(ev.Warning.Turn))
		dst = appendText(dst, `,"text":`, ev.Warning.Text)
	case ev.Entry != nil:
		dst = append(dst, ',')
		dst = appendEntry(dst, *ev.Entry)
	}
	return append(dst, '}')
}

func appendStep(dst []byte, kind string, turn transcript.TurnID, step int) []byte {
	dst = appendText(dst, `,"kind":`, kind)
	dst = appendText(dst, `,"turn":`, string(turn))
	dst = append(dst, `,"step":`...)
	return strconv.AppendInt(dst, int64(step), 10)
}

func appendText(dst []byte, name, text string) []byte {
	return transcript.AppendString(append(dst, name...), text)
}

// appendEntry appends the members of an entry.
func appendEntry(dst []byte, e transcript.Entry) []byte {
	w := entry(e)
	dst = append(dst, `"seq":`...)
	dst = strconv.AppendInt(dst, w.Seq, 10)
	dst = appendText(dst, `,"kind":`, w.Kind)
	dst = append(dst, `,"at":"`...)
	dst = w.At.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	if w.Entry != nil {
		dst = append(append(dst, `,"entry":`...), w.Entry...)
	}
	if w.Damaged != "" {
		dst = appendText(dst, `,"damaged":`, w.Damaged)
	}
	return dst
}

// entry is an entry as it is sent.
func entry(e transcript.Entry) wire.Entry {
	w := wire.Entry{Seq: e.Seq, Kind: string(e.Kind()), At: e.At, Damaged: e.Damaged}
	if e.Body == nil {
		w.Kind = wire.EventDamaged
		return w
	}
	raw, err := rpc.Encode(e.Body)
	if err != nil {
		w.Kind, w.Damaged = wire.EventDamaged, err.Error()
		return w
	}
	w.Entry = jsonValue(raw)
	return w
}
