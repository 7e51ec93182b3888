package rpc

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.lsp.dev/jsonrpc2"
)

// maxHeader is the length of the longest header block, in bytes.
const maxHeader = 8 << 10

// lengthField is the one field of a header that matters, in lower case.
const lengthField = "content-length:"

// garbage is where the reader stands in what is no message.
type garbage struct {
	lost  bool   // looking for the next header
	told  bool   // this run of garbage was answered
	carry []byte // the end of a line that is longer than the buffer: a field may begin in it
}

// header is a header block as far as it was read.
type header struct {
	size   int
	length int64 // -1: none yet
	bad    string
}

// next is the body of the next message. It refuses what is no message and fails only when the input does.
func (s *Stream) next() ([]byte, error) {
	if cap(s.body) > maxKept {
		s.body = nil
	}
	for {
		n, err := s.header()
		if err != nil {
			return nil, err
		}
		if n > s.o.MaxMessage {
			s.refuse(nil, jsonrpc2.InvalidRequest,
				fmt.Sprintf("the message has %d bytes and the limit is %d; it was skipped", n, s.o.MaxMessage))
			if _, err := io.CopyN(io.Discard, s.in, n); err != nil {
				return nil, err
			}
			continue
		}
		return s.read(n)
	}
}

// read reads n bytes. The buffer grows with what has arrived, not with what was announced.
func (s *Stream) read(n int64) ([]byte, error) {
	const first = 64 << 10
	buf := s.body[:0]
	for int64(len(buf)) < n {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(n, int64(max(first, 2*cap(buf)))))
			copy(grown, buf)
			buf = grown
		}
		m, err := s.in.Read(buf[len(buf):min(int64(cap(buf)), n)])
		buf = buf[:len(buf)+m]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	s.body = buf
	return buf, nil
}

// header reads a header block and returns its Content-Length. Garbage before it is skipped and answered once.
func (s *Stream) header() (int64, error) {
	h := header{length: -1}
	for {
		line, err := s.in.ReadSlice('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
		if h.size += len(line); !s.garb.lost && (h.size > maxHeader || !whole) {
			s.lose(fmt.Sprintf("the header is longer than %d bytes", maxHeader))
		}
		if s.garb.lost {
			if line = s.find(line, whole); line == nil {
				continue
			}
			h = header{length: -1, size: len(line)}
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if h.length >= 0 && h.bad == "" {
				s.garb.told = false
				return h.length, nil
			}
			if h.size > 2 { // not just an empty line between messages
				s.lose(cmp.Or(h.bad, "the header has no Content-Length"))
			}
			h = header{length: -1}
			continue
		}
		if !isField(line) {
			s.lose(notHeader(line))
			if line = s.find(line, true); line == nil {
				continue
			}
			h = header{length: -1, size: len(line)}
		}
		h.add(line)
	}
}

// lose answers a run of garbage, once.
func (s *Stream) lose(why string) {
	s.garb.lost = true
	if !s.garb.told {
		s.garb.told = true
		s.refuse(nil, jsonrpc2.ParseError, why)
	}
}

// find looks for a Content-Length in garbage. It returns the line from there on, nil when there is none in it.
func (s *Stream) find(line []byte, whole bool) []byte {
	window := append(s.garb.carry, line...)
	s.garb.carry = nil
	i := bytes.LastIndex(bytes.ToLower(window), []byte(lengthField))
	switch {
	case i >= 0 && whole:
		s.garb.lost = false
		return window[i:]
	case whole:
		return nil
	case i >= 0 && len(window)-i <= 64:
		s.garb.carry = window[i:]
	default:
		s.garb.carry = window[max(0, len(window)-len(lengthField)):]
	}
	s.garb.carry = bytes.Clone(s.garb.carry)
	return nil
}

// isField reports whether a line looks like a field of a header: a name, then a colon.
func isField(line []byte) bool {
	name, _, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 {
		return false
	}
	for _, c := range name {
		if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

func notHeader(line []byte) string {
	const why = "there should be a header with a Content-Length here"
	if line[0] == '{' {
		return why + "; one message per line is not LSP's framing"
	}
	return why
}

func (h *header) add(line []byte) {
	if !bytes.EqualFold(line[:min(len(line), len(lengthField))], []byte(lengthField)) {
		return
	}
	value := string(bytes.TrimSpace(line[len(lengthField):]))
	n, err := strconv.ParseUint(value, 10, 63)
	switch {
	case err != nil:
		h.bad = fmt.Sprintf("the Content-Length %.40q is no number of bytes", value)
	case h.length >= 0 && h.length != int64(n):
		h.bad = "the header has two Content-Lengths"
	default:
		h.length = int64(n)
	}
}

// putHeader writes the header of the body at msg[room:] right before it and returns where it starts.
func putHeader(msg []byte) (start int) {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], int64(len(msg)-room), 10)
	start = room - len("\r\n\r\n") - len(d) - len("Content-Length: ")
	h := append(msg[start:start], "Content-Length: "...)
	h = append(h, d...)
	_ = append(h, "\r\n\r\n"...)
	return start
}
