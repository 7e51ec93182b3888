package rehearsal

import (
	"context"
	"net/http"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"fermata/transcript"
)

// stream writes the events of one answer. After the client is gone every method does nothing: callers go on to their end
// without looking.
type stream struct {
	ctx   context.Context
	w     http.ResponseWriter
	flush *http.ResponseController
	rate  float64 // words per second; not positive: as fast as possible
	size  int     // bytes of a delta; 0: a word
	stamp bool    // deltas of content begin with "@" Stamp " "
	due   time.Time
	buf   []byte
}

func newStream(ctx context.Context, w http.ResponseWriter, rate float64) *stream {
	return &stream{ctx: ctx, w: w, flush: http.NewResponseController(w), rate: rate}
}

func (s *stream) gone() bool { return s.ctx.Err() != nil }

// head sends the response headers.
func (s *stream) head(status int, contentType string) {
	if s.gone() {
		return
	}
	s.w.Header().Set("Content-Type", contentType)
	s.w.Header().Set("Cache-Control", "no-store")
	s.w.WriteHeader(status)
	_ = s.flush.Flush() // fails when the client is gone, which ctx tells
}

// raw sends bytes as they are.
func (s *stream) raw(b []byte) {
	if s.gone() {
		return
	}
	_, _ = s.w.Write(b)
	_ = s.flush.Flush()
}

// wait lets d pass, or the client go.
func (s *stream) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// text sends a text in deltas of a word, or of size bytes, at the rate.
func (s *stream) text(field, text string) {
	for _, piece := range pieces(text, s.size) {
		if s.gone() {
			return
		}
		s.pace()
		s.buf = append(s.buf[:0], `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"`...)
		s.buf = append(append(s.buf, field...), `":`...)
		if s.stamp && field == "content" {
			piece = "@" + strconv.FormatInt(Stamp(), 10) + " " + piece
		}
		s.buf = transcript.AppendString(s.buf, piece)
		s.buf = append(s.buf, "},\"finish_reason\":null}]}\n\n"...)
		s.raw(s.buf)
	}
}

// pace waits until the next delta is due. The deltas keep to the rate as a whole: one that was late is caught up with.
func (s *stream) pace() {
	if s.rate <= 0 {
		return
	}
	now := time.Now()
	if s.due.IsZero() {
		s.due = now
	}
	if d := s.due.Sub(now); d > 0 {
		s.wait(d)
	}
	s.due = s.due.Add(time.Duration(float64(time.Second) / s.rate))
}

// call sends a tool call: its name first, its arguments in two pieces.
func (s *stream) call(index int, id, name, args string) {
	half := len(args) / 2
	for half > 0 && !utf8.RuneStart(args[half]) {
		half--
	}
	s.callHead(index, id, name)
	s.callArgs(index, args[:half])
	s.callArgs(index, args[half:])
}

func (s *stream) callHead(index int, id, name string) {
	s.buf = append(s.buf[:0], `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":`...)
	s.buf = append(strconv.AppendInt(s.buf, int64(index), 10), `,"id":`...)
	s.buf = append(transcript.AppendString(s.buf, id), `,"type":"function","function":{"name":`...)
	s.buf = append(transcript.AppendString(s.buf, name), "}}]},\"finish_reason\":null}]}\n\n"...)
	s.raw(s.buf)
}

func (s *stream) callArgs(index int, args string) {
	if args == "" {
		return
	}
	s.buf = append(s.buf[:0], `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":`...)
	s.buf = append(strconv.AppendInt(s.buf, int64(index), 10), `,"function":{"arguments":`...)
	s.buf = append(transcript.AppendString(s.buf, args), "}}]},\"finish_reason\":null}]}\n\n"...)
	s.raw(s.buf)
}

// end sends the finish reason, the usage unless it is nil, and [DONE].
func (s *stream) end(finish string, u *transcript.Usage) {
	s.finish(finish)
	if u != nil {
		s.usage(u)
	}
	s.raw([]byte("data: [DONE]\n\n"))
}

func (s *stream) finish(reason string) {
	s.buf = append(s.buf[:0], `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":`...)
	s.raw(append(transcript.AppendString(s.buf, reason), "}]}\n\n"...))
}

func (s *stream) usage(u *transcript.Usage) {
	s.buf = append(s.buf[:0], `data: {"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":`...)
	s.buf = append(strconv.AppendInt(s.buf, u.Input, 10), `,"completion_tokens":`...)
	s.buf = append(strconv.AppendInt(s.buf, u.Output, 10), `,"total_tokens":`...)
	s.buf = append(strconv.AppendInt(s.buf, u.Input+u.Output, 10), `,"prompt_tokens_details":{"cached_tokens":`...)
	s.buf = append(strconv.AppendInt(s.buf, u.Cached, 10), `},"completion_tokens_details":{"reasoning_tokens":`...)
	s.raw(append(strconv.AppendInt(s.buf, u.Reasoning, 10), "}}}\n\n"...))
}

// pieces cuts text into deltas: of size bytes, rounded up to whole characters, or into words with the space that follows.
func pieces(text string, size int) []string {
	var out []string
	for text != "" {
		n := 0
		if size > 0 {
			n = min(size, len(text))
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
		} else {
			n = wordEnd(text)
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// wordEnd is where the first word of s ends, spaces around it included.
func wordEnd(s string) int {
	inWord, spaceAfter := false, false
	for i, r := range s {
		switch space := unicode.IsSpace(r); {
		case space && inWord:
			spaceAfter = true
		case !space && spaceAfter:
			return i
		case !space:
			inWord = true
		}
	}
	return len(s)
}
