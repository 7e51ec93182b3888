package transcript

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
)

// pages reads a database file and the write-ahead log beside it page by page, without SQLite and without trust: where the
// trees that lead to the rows are broken, or where one of the two files is missing, the rows themselves are mostly still
// there. The format is https://www.sqlite.org/fileformat2.html. Both files are only read.
type pages struct {
	db, wal *os.File         // nil: there is none
	size    int              // of a page in bytes
	usable  int              // of it
	count   uint32           // of pages
	newest  map[uint32]int64 // where in wal a page is that stands there
	stale   []int64          // where in wal pages are that were folded into a file that is not there
}

// openPages opens the files. It is [fs.ErrNotExist] when there is neither.
func openPages(path string) (*pages, error) {
	p := &pages{newest: map[uint32]int64{}}
	for name, f := range map[string]**os.File{path: &p.db, path + "-wal": &p.wal} {
		var err error
		if *f, err = os.Open(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, p.close())
		}
	}
	if p.db == nil && p.wal == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	head := make([]byte, 100)
	size, reserved := 0, 0
	if p.db != nil {
		if _, err := p.db.ReadAt(head, 0); err == nil && string(head[:16]) == "SQLite format 3\x00" {
			size, reserved = int(binary.BigEndian.Uint16(head[16:])), int(head[20])
		}
	}
	if size == 1 {
		size = 1 << 16
	}
	if !pageSize(size) && p.wal != nil {
		if _, err := p.wal.ReadAt(head[:32], 0); err == nil {
			size = int(binary.BigEndian.Uint32(head[8:]))
		}
	}
	if !pageSize(size) {
		size, reserved = 4096, 0 // what this program has always made
	}
	p.size, p.usable = size, size-reserved
	if p.db != nil {
		fi, err := p.db.Stat()
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.count = uint32(min((fi.Size()+int64(size)-1)/int64(size), math.MaxUint32-1))
	}
	p.readWAL()
	return p, nil
}

func pageSize(n int) bool { return n >= 512 && n <= 1<<16 && n&(n-1) == 0 }

func (p *pages) close() error {
	var errs []error
	for _, f := range []*os.File{p.db, p.wal} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// readWAL finds the newest committed version of each page in the write-ahead log, up to the first frame that is torn.
func (p *pages) readWAL() {
	if p.wal == nil {
		return
	}
	head := make([]byte, 32)
	if _, err := p.wal.ReadAt(head, 0); err != nil {
		return
	}
	magic := binary.BigEndian.Uint32(head)
	if magic&^1 != 0x377f0682 || int(binary.BigEndian.Uint32(head[8:])) != p.size {
		return
	}
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	var s0, s1 uint32
	sum := func(b []byte) {
		for ; len(b) >= 8; b = b[8:] {
			s0 += order.Uint32(b) + s1
			s1 += order.Uint32(b[4:]) + s0
		}
	}
	if sum(head[:24]); s0 != binary.BigEndian.Uint32(head[24:]) || s1 != binary.BigEndian.Uint32(head[28:]) {
		return
	}
	frame := make([]byte, 24+p.size)
	end := int64(32) // of the last commit
	defer func() { p.readStale(end) }()
	pending := map[uint32]int64{}
	for at := int64(32); ; at += int64(len(frame)) {
		if _, err := p.wal.ReadAt(frame, at); err != nil || string(frame[8:16]) != string(head[16:24]) {
			return
		}
		sum(frame[:8])
		sum(frame[24:])
		if s0 != binary.BigEndian.Uint32(frame[16:]) || s1 != binary.BigEndian.Uint32(frame[20:]) {
			return
		}
		n := binary.BigEndian.Uint32(frame)
		pending[n] = at + 24
		if binary.BigEndian.Uint32(frame[4:]) == 0 {
			continue
		}
		for n, at := range pending { // a commit
			p.newest[n] = at
			p.count = max(p.count, n)
		}
		clear(pending)
		end = at + int64(len(frame))
	}
}

// readStale finds what is left of an earlier round of the log behind the current one's end. It was folded into the file, so
// it counts only when there is no file. Nothing says that it is not torn but the hashes of what is found there.
func (p *pages) readStale(at int64) {
	if p.db != nil {
		return
	}
	fi, err := p.wal.Stat()
	if err != nil {
		return
	}
	frame := int64(24 + p.size)
	for ; at+frame <= fi.Size(); at += frame {
		p.stale = append(p.stale, at+24)
		p.count++ // no row is longer than all pages together
	}
}

// page reads page n, counted from 1. What the file does not have of it is zeros; false when it has nothing.
func (p *pages) page(n uint32) ([]byte, bool) {
	f, at := p.db, int64(n-1)*int64(p.size)
	if w, ok := p.newest[n]; ok {
		f, at = p.wal, w
	}
	if n == 0 || f == nil {
		return nil, false
	}
	b := make([]byte, p.size)
	got, err := f.ReadAt(b, at)
	return b, got > 0 && (err == nil || err == io.EOF)
}

// row is a record as it stands on a page. rowid counts only in a row of a table; index says that it is of an index, or of a
// table without rowid, which is stored as one.
type row struct {
	index  bool
	rowid  int64
	values []any // nil, int64, float64, string or []byte
}

// rows calls f with every record on every page that looks like one, also those of pages that are not in use any more.
// unread are the numbers of pages that cannot be read.
func (p *pages) rows(f func(row) error) (unread []uint32, err error) {
	for n := uint32(1); n <= p.count-uint32(len(p.stale)); n++ {
		b, ok := p.page(n)
		if !ok {
			unread = append(unread, n)
			continue
		}
		head := 0
		if n == 1 {
			head = 100
		}
		if err := p.cells(b[:p.usable], head, f); err != nil {
			return unread, err
		}
	}
	b := make([]byte, p.size)
	for _, at := range p.stale {
		if _, err := p.wal.ReadAt(b, at); err != nil {
			continue
		}
		if err := p.cells(b[:p.usable], 0, f); err != nil {
			return unread, err
		}
	}
	return unread, nil
}

// cells calls f with every record on a page, whose own header begins at head.
func (p *pages) cells(b []byte, head int, f func(row) error) error {
	kind := b[head]
	count, at := int(binary.BigEndian.Uint16(b[head+3:])), head+8
	switch kind {
	case 0x0d, 0x0a: // a leaf of a table, of an index
	case 0x02: // a node of an index holds records too
		at = head + 12
	default:
		return nil
	}
	for i := 0; i < count && at+2*i+2 <= len(b); i++ {
		r, ok := p.cell(b, int(binary.BigEndian.Uint16(b[at+2*i:])), kind)
		if !ok {
			continue
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// cell decodes the record at an offset of a page.
func (p *pages) cell(b []byte, at int, kind byte) (r row, ok bool) {
	r.index = kind != 0x0d
	if kind == 0x02 {
		at += 4 // the page on its left
	}
	size, at, ok := varint(b, at)
	if !ok {
		return r, false
	}
	if !r.index {
		if r.rowid, at, ok = varint(b, at); !ok {
			return r, false
		}
	}
	if size < 2 || size > int64(p.count)*int64(p.size) {
		return r, false
	}
	payload, ok := p.payload(b, at, int(size), r.index)
	if !ok {
		return r, false
	}
	r.values, ok = record(payload)
	return r, ok
}

// payload collects a record of size bytes that begins on page b and may go on on others.
func (p *pages) payload(b []byte, at, size int, index bool) ([]byte, bool) {
	most := p.usable - 35
	if index {
		most = (p.usable-12)*64/255 - 23
	}
	local := size
	if size > most {
		least := (p.usable-12)*32/255 - 23
		if local = least + (size-least)%(p.usable-4); local > most {
			local = least
		}
	}
	if at+local > len(b) {
		return nil, false
	}
	if local == size {
		return b[at : at+size], true
	}
	if at+local+4 > len(b) {
		return nil, false
	}
	out := append(make([]byte, 0, size), b[at:at+local]...)
	for next := binary.BigEndian.Uint32(b[at+local:]); len(out) < size; {
		more, ok := p.page(next)
		if !ok {
			return nil, false
		}
		out = append(out, more[4:min(p.usable, 4+size-len(out))]...)
		next = binary.BigEndian.Uint32(more)
	}
	return out, true
}

// varint reads SQLite's variable-length integer.
func varint(b []byte, at int) (v int64, next int, ok bool) {
	for i := range 9 {
		if at < 0 || at >= len(b) {
			return 0, 0, false
		}
		c := b[at]
		at++
		if i == 8 {
			return v<<8 | int64(c), at, true
		}
		v = v<<7 | int64(c&0x7f)
		if c < 0x80 {
			break
		}
	}
	return v, at, true
}

// record decodes a row's values.
func record(b []byte) ([]any, bool) {
	size, at, ok := varint(b, 0)
	if !ok || size > int64(len(b)) {
		return nil, false
	}
	data := int(size)
	var out []any
	for at < int(size) {
		var kind int64
		if kind, at, ok = varint(b[:size], at); !ok || kind < 0 || len(out) > 100 {
			return nil, false
		}
		n := 0
		switch {
		case kind >= 12:
			n = int((kind - 12) / 2)
		case kind == 5:
			n = 6
		case kind == 6 || kind == 7:
			n = 8
		case kind <= 4:
			n = int(kind)
		}
		if n < 0 || data+n > len(b) || kind == 10 || kind == 11 {
			return nil, false
		}
		v := b[data : data+n]
		data += n
		switch {
		case kind == 0:
			out = append(out, nil)
		case kind == 7:
			out = append(out, math.Float64frombits(binary.BigEndian.Uint64(v)))
		case kind == 8, kind == 9:
			out = append(out, kind-8)
		case kind >= 12 && kind%2 == 0:
			out = append(out, append([]byte{}, v...))
		case kind >= 12:
			out = append(out, string(v))
		default:
			i := int64(int8(v[0]))
			for _, c := range v[1:] {
				i = i<<8 | int64(c)
			}
			out = append(out, i)
		}
	}
	return out, data == len(b)
}
