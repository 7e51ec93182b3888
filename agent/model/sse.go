package model

import (
	"bytes"
	"fmt"
	"io"
)

// MaxLine bounds a line of an event stream and the data of one event, in bytes. A whole file as a tool argument passes.
const MaxLine = 16 << 20

// Event is one event of a stream. Data is the reader's memory: it is valid until the next call of Next.
type Event struct {
	Type string // the event field, "" when there was none
	ID   string // the last id field so far, "" when there was none
	Data []byte // the data fields joined by "\n"
}

// EventReader reads an event stream as the WHATWG defines it
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream): lines end in CR, LF or CRLF,
// a byte order mark at the start is skipped, comments and unknown fields are ignored, an event is dispatched at an empty
// line and only there. It hands out an event as soon as its last byte is in, however the bytes were split. Bytes are not
// decoded: a character split over two events is the dialect's to join. It is not safe for concurrent use.
type EventReader struct {
	src     io.Reader
	buf     []byte // buf[pos:end] is read and not yet parsed; buf[pos:scanned] holds no line end
	pos     int
	end     int
	scanned int
	skipLF  bool // the line before ended in CR: an LF now belongs to it
	begun   bool // past the first line, where a byte order mark may stand

	hasData bool
	data    []byte
	typ     string // of the event being read; typeSet says whether it has one
	typeSet bool
	id      string
}

// NewEventReader reads events from src. It keeps no byte of src back: what it read beyond an event is lost with it.
func NewEventReader(src io.Reader) *EventReader {
	return &EventReader{src: src, buf: make([]byte, 4096)}
}

// Next returns the next event. At the end of the stream it returns io.EOF, also when an event was left unfinished: that
// one is not dispatched. A line or an event over [MaxLine] is an [*Error] of class Malformed; other errors are src's.
func (r *EventReader) Next() (Event, error) {
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, err
		}
		if !r.begun {
			r.begun = true
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(line) > 0 {
			if err := r.field(line); err != nil {
				return Event{}, err
			}
			continue
		}
		if !r.hasData {
			r.typeSet = false // an event without data is none
			continue
		}
		ev := Event{ID: r.id, Data: r.data[:len(r.data)-1]} // without the "\n" after the last line
		if r.typeSet {
			ev.Type = r.typ
		}
		r.data, r.hasData, r.typeSet = r.data[:0], false, false
		return ev, nil
	}
}

// field takes one line that is not empty into the event being read.
func (r *EventReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) { // "" is a comment
	case "data":
		if len(r.data)+len(value) > MaxLine {
			return tooLong("an event")
		}
		r.data = append(append(r.data, value...), '\n')
		r.hasData = true
	case "event":
		r.typeSet = len(value) > 0
		if string(value) != r.typ { // most streams repeat one type: no allocation then
			r.typ = string(value)
		}
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != r.id {
			r.id = string(value)
		}
	}
	return nil
}

// line returns the next line without its end; it is valid until the next call.
func (r *EventReader) line() ([]byte, error) {
	for {
		if r.skipLF && r.pos < r.end {
			r.skipLF = false
			if r.buf[r.pos] == '\n' {
				r.pos++
				r.scanned = r.pos
			}
		}
		if i := lineEnd(r.buf[r.scanned:r.end]); i >= 0 {
			i += r.scanned
			line := r.buf[r.pos:i]
			r.skipLF = r.buf[i] == '\r' // an LF to come is skipped when it comes: a CR at the end of a read does not wait
			r.pos, r.scanned = i+1, i+1
			if len(line) > MaxLine {
				return nil, tooLong("a line")
			}
			return line, nil
		}
		r.scanned = r.end
		if r.end-r.pos > MaxLine {
			return nil, tooLong("a line")
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill reads at least one byte, making room before.
func (r *EventReader) fill() error {
	if r.pos == r.end {
		r.pos, r.end, r.scanned = 0, 0, 0
	}
	if r.end == len(r.buf) {
		if r.pos > 0 {
			copy(r.buf, r.buf[r.pos:r.end])
			r.end, r.scanned, r.pos = r.end-r.pos, r.scanned-r.pos, 0
		} else {
			grown := make([]byte, 2*len(r.buf))
			copy(grown, r.buf)
			r.buf = grown
		}
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n > 0 {
			return nil // an error with it comes again at the next read
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

func tooLong(what string) error {
	return &Error{Class: Malformed, Message: fmt.Sprintf("the stream holds %s of more than %d MiB", what, MaxLine>>20)}
}
