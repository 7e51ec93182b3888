package workspace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Encoding is how bytes stand for characters, by the name that people know.
type Encoding string

// The encodings that are read and written. UTF-16 is known by its byte order mark only. A file that is no UTF-8 is Latin-1
// (ISO 8859-1) as long as it has no byte from 0x80 to 0x9F, else Windows-1252: both read the same, but Latin-1 files get
// no character that ISO 8859-1 lacks.
const (
	UTF8        Encoding = "UTF-8"
	UTF16LE     Encoding = "UTF-16LE"
	UTF16BE     Encoding = "UTF-16BE"
	Latin1      Encoding = "Latin-1"
	Windows1252 Encoding = "Windows-1252"
)

// Form is what has to be kept of a file besides its text.
type Form struct {
	Encoding Encoding
	BOM      bool // begins with a byte order mark, which is no part of the text
}

// bom starts a UTF-8 file of some editors.
var bom = []byte("\uFEFF")

// CutBOM splits UTF-8's byte order mark from a file's content; mark is empty when there is none.
func CutBOM(b []byte) (mark, rest []byte) {
	if bytes.HasPrefix(b, bom) {
		return b[:len(bom)], b[len(bom):]
	}
	return nil, b
}

// Text is the file's content as text, and the form it has. A document open in the editor is UTF-8: how it is saved is the
// editor's business. Its errors wrap ErrNotText: binary, an encoding that is not known, or damaged. Invariant: when it
// succeeds, form.Bytes of the same text gives the same bytes.
func (f File) Text() (text string, form Form, err error) {
	if f.Buffer {
		mark, rest := CutBOM(f.Content)
		return string(rest), Form{UTF8, len(mark) > 0}, nil
	}
	text, form, why := decode(f.Content)
	if why != "" {
		return "", form, notText(f.Path, why)
	}
	return text, form, nil
}

func notText(name, why string) error { return fmt.Errorf("%s: %w: %s", Show(name), ErrNotText, why) }

// decode is the text that a file's bytes stand for; why is not empty when they stand for none.
func decode(b []byte) (text string, form Form, why string) {
	if form, ok := plain(b); ok {
		_, rest := CutBOM(b)
		return string(rest), form, ""
	}
	var c census
	_, _ = c.Write(b)
	if form, why = c.form(true); why == "" && c.lateNUL && !c.utf16() {
		why = "it is binary"
	}
	if why != "" {
		return "", form, why
	}
	out := make([]byte, 0, len(b)+len(b)/8)
	ok := true
	switch form.Encoding {
	case UTF16LE:
		out, ok = fromUTF16(out, b[2:], 0, 1)
	case UTF16BE:
		out, ok = fromUTF16(out, b[2:], 1, 0)
	default:
		for i := 0; i < len(b); i++ {
			n := asciiPrefix(b[i:])
			out = append(out, b[i:i+n]...)
			if i += n; i < len(b) {
				out = utf8.AppendRune(out, charmap.Windows1252.DecodeByte(b[i]))
			}
		}
	}
	if !ok {
		return "", form, fmt.Sprintf("it is damaged %s, with bytes that stand for no character", form.Encoding)
	}
	return string(out), form, ""
}

// plain tells UTF-8 without NUL, what most files are, faster than a census does.
func plain(b []byte) (form Form, ok bool) {
	ok = bytes.IndexByte(b, 0) < 0 && utf8.Valid(b)
	return Form{UTF8, bytes.HasPrefix(b, bom)}, ok
}

// fromUTF16 appends the UTF-8 of units whose low and high bytes stand there. It is strict, unlike the decoder of a stream, so that
// nothing is lost when the text is encoded again.
func fromUTF16(out, b []byte, low, high int) ([]byte, bool) {
	if len(b)%2 != 0 {
		return out, false
	}
	unit := func(i int) rune { return rune(b[i+low]) | rune(b[i+high])<<8 }
	for i := 0; i < len(b); i += 2 {
		r := unit(i)
		if utf16.IsSurrogate(r) {
			if i += 2; i == len(b) {
				return out, false
			}
			if r = utf16.DecodeRune(r, unit(i)); r == utf8.RuneError {
				return out, false
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out, true
}

// codec is for streams, and drops a byte order mark; nil for UTF-8.
func (e Encoding) codec() encoding.Encoding {
	switch e {
	case UTF16LE:
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
	case UTF16BE:
		return unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)
	case Latin1, Windows1252:
		return charmap.Windows1252 // without the bytes 0x80 to 0x9F they are the same
	}
	return nil
}

// Bytes is text in this form. It is an error, which says where, when the encoding lacks a character of the text, or when
// the bytes would be taken for another text the next time they are read.
func (form Form) Bytes(text string) ([]byte, error) {
	b, err := form.encode(text)
	if err != nil || form.Encoding == UTF8 {
		return b, err
	}
	var c census
	_, _ = c.Write(b)
	again, why := c.form(true)
	ascii := again.Encoding == UTF8 && c.valid == 0
	alike := form.Encoding != UTF16LE && form.Encoding != UTF16BE && (again.Encoding == Latin1 || again.Encoding == Windows1252)
	if why != "" || !ascii && !alike && again != form {
		return nil, fmt.Errorf("with this text the file could no longer be told to be %s; convert it to UTF-8 first", form.Encoding)
	}
	return b, nil
}

func (form Form) encode(text string) ([]byte, error) {
	switch form.Encoding {
	case UTF8, "":
		if form.BOM {
			return append(bytes.Clone(bom), text...), nil
		}
		return []byte(text), nil
	case UTF16LE:
		return toUTF16(text, 0, 8), nil
	case UTF16BE:
		return toUTF16(text, 8, 0), nil
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		n := asciiPrefix(text[i:])
		out = append(out, text[i:i+n]...)
		if i += n; i == len(text) {
			break
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		b, ok := charmap.Windows1252.EncodeRune(r)
		high := b >= 0x80 && b < 0xA0
		if !ok || r < 0xA0 || high && form.Encoding == Latin1 {
			return nil, fmt.Errorf("the file is %s, which has no %s (%U, in line %d); write it with other characters, or convert the file to UTF-8 first",
				form.Encoding, Show(string(r)), r, 1+strings.Count(text[:i], "\n"))
		}
		out = append(out, b)
		i += size
	}
	return out, nil
}

// asciiPrefix is how many bytes of ASCII s begins with.
func asciiPrefix[T string | []byte](s T) (n int) {
	const tops = 0x8080808080808080
	for ; n+8 <= len(s); n += 8 {
		w := s[n : n+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 | uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		if x&tops != 0 {
			break
		}
	}
	for n < len(s) && s[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// toUTF16 is text with a byte order mark, in units whose first and second byte are those bits of them.
func toUTF16(text string, first, second int) []byte {
	out := make([]byte, 0, 2*len(text)+2)
	put := func(u rune) { out = append(out, byte(u>>first), byte(u>>second)) }
	put(0xFEFF)
	for _, r := range text {
		if r < utf8.RuneSelf { // most
			put(r)
			continue
		}
		if r >= 0x10000 {
			var high rune
			high, r = utf16.EncodeRune(r)
			put(high)
		}
		put(r)
	}
	return out
}

// sniffed is how many bytes of a stream are looked at before it is read, unless it can be read twice.
const sniffed = 64 << 10

// Text reads the stream as UTF-8 without a byte order mark; call it once, instead of Read. It tells the encoding as File.Text
// does, by the whole file up to MaxRead bytes, but damage shows as U+FFFD, and so does a bad byte further down. An error that
// wraps ErrNotText comes with a reader of the bytes as they are when the file looks like text in an encoding that is
// not known, so that its ASCII can be searched; the reader is nil when the file is binary.
func (s *Stream) Text() (*bufio.Reader, Form, error) {
	r := bufio.NewReaderSize(s.ReadCloser, sniffed)
	head, err := r.Peek(sniffed)
	if err != nil && err != io.EOF {
		return nil, Form{}, fileError(s.Path, err)
	}
	if s.Buffer {
		mark, _ := CutBOM(head)
		_, _ = r.Discard(len(mark))
		return r, Form{UTF8, len(mark) > 0}, nil
	}
	whole := err == io.EOF
	if form, ok := plain(head); ok && (whole || s.plainBelow(head)) {
		if form.BOM {
			_, _ = r.Discard(len(bom))
		}
		return r, form, nil
	}
	var c census
	_, _ = c.Write(head)
	if s.again != nil && !whole && s.Size <= MaxRead && !c.utf16() && !c.binary() {
		if _, err := io.Copy(&c, io.NewSectionReader(s.again, int64(len(head)), s.Size-int64(len(head)))); err != nil {
			return nil, Form{}, fileError(s.Path, err)
		}
		whole = true
	}
	form, why := c.form(whole)
	switch {
	case why != "" && c.binary():
		return nil, form, notText(s.Path, why)
	case why != "":
		return r, form, notText(s.Path, why)
	case form.Encoding == UTF8:
		if form.BOM {
			_, _ = r.Discard(len(bom))
		}
		return r, form, nil
	}
	return bufio.NewReaderSize(form.Encoding.codec().NewDecoder().Reader(r), sniffed), form, nil
}

// plainBelow reports whether a stream that begins with head, which is plain, is UTF-8 to its end. It may say no too often.
func (s *Stream) plainBelow(head []byte) bool {
	if s.again == nil || s.Size > MaxRead {
		return false
	}
	buf := make([]byte, sniffed)
	for at := int64(len(head)); at < s.Size; {
		n, err := s.again.ReadAt(buf, at)
		if err != nil && err != io.EOF || n == 0 {
			return false
		}
		cut := n // in front of a character that goes on behind
		for i := max(0, n-utf8.UTFMax+1); i < n && at+int64(n) < s.Size; i++ {
			if !utf8.FullRune(buf[i:n]) {
				cut = i
				break
			}
		}
		if !utf8.Valid(buf[:cut]) {
			return false
		}
		at += int64(cut)
	}
	return true
}

// binaryWithin is how far into a file a NUL makes it binary at first sight.
const binaryWithin = 8 << 10

// census counts what tells the encoding of a file, whose bytes are written to it in pieces.
type census struct {
	size     int64
	head     []byte // at most 4
	nuls     [2]int // at even and odd offsets, within binaryWithin
	lateNUL  bool
	valid    int   // characters of UTF-8 that are not ASCII
	invalid  int   // bytes that are not UTF-8
	first    int64 // offset of the first of these
	bad      byte  // and what it is
	c1       int   // bytes from 0x80 to 0x9F
	unused   int   // of these, those that Windows-1252 lacks
	controls int   // that no text file has
	high     int   // bytes of 0xA0 and more, letters for the most part
	inRuns   int   // of these, those in a run of three or more: usual where each letter is such a byte, or two
	run      int   // length of the run up to here
	partial  []byte
}

// Write never fails.
func (c *census) Write(p []byte) (int, error) {
	if n := min(4-len(c.head), len(p)); n > 0 {
		c.head = append(c.head, p[:n]...)
	}
	if !c.utf16() {
		c.bytes(p)
		c.chars(p)
	}
	c.size += int64(len(p))
	return len(p), nil
}

// bytes counts bytes whatever they stand for.
func (c *census) bytes(p []byte) {
	for i := 0; i < len(p); {
		if c.run == 0 && ascii8(p[i:]) {
			i += 8
			continue
		}
		switch b := p[i]; {
		case b >= 0xA0:
			c.high++
			switch c.run++; {
			case c.run == 3:
				c.inRuns += 3
			case c.run > 3:
				c.inRuns++
			}
		case b >= 0x80:
			c.run = 0
			c.c1++
			if b == 0x81 || b == 0x8D || b == 0x8F || b == 0x90 || b == 0x9D {
				c.unused++
			}
		default:
			c.run = 0
			if b < ' ' {
				c.control(b, c.size+int64(i))
			}
		}
		i++
	}
}

func (c *census) control(b byte, at int64) {
	switch {
	case b == 0 && at < binaryWithin:
		c.nuls[at%2]++
	case b == 0:
		c.lateNUL = true
	case b < '\b' || b > '\r' && b != 0x1A && b != 0x1B:
		c.controls++
	}
}

// ascii8 reports whether the first eight bytes are printable ASCII.
func ascii8(p []byte) bool {
	if len(p) < 8 {
		return false
	}
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	x := binary.LittleEndian.Uint64(p)
	return (x|(x-0x20*ones))&tops == 0 // a byte below a space borrows from, or sets, a top bit
}

// chars counts characters of UTF-8. What may be the start of one at the end of p waits in partial for the next piece.
func (c *census) chars(p []byte) {
	i, at := 0, c.size
	if k := len(c.partial); k > 0 {
		p, at = append(c.partial, p...), at-int64(k) // a piece at a time is small, or the only one
		c.partial = nil
	}
	for i < len(p) {
		if i += asciiPrefix(p[i:]); i == len(p) {
			break
		}
		if !utf8.FullRune(p[i:]) {
			c.partial = bytes.Clone(p[i:])
			return
		}
		r, n := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && n == 1 {
			c.invalidByte(p[i], at+int64(i))
		} else {
			c.valid++
		}
		i += n
	}
}

func (c *census) invalidByte(b byte, at int64) {
	if c.invalid++; c.invalid == 1 {
		c.first, c.bad = at, b
	}
}

func (c *census) utf16() bool {
	return bytes.HasPrefix(c.head, []byte{0xFF, 0xFE}) || bytes.HasPrefix(c.head, []byte{0xFE, 0xFF})
}

func (c *census) binary() bool { return !c.utf16() && c.nuls != [2]int{} || c.utf32() }

func (c *census) utf32() bool {
	return bytes.Equal(c.head, []byte{0xFF, 0xFE, 0, 0}) || bytes.Equal(c.head, []byte{0, 0, 0xFE, 0xFF})
}

// form is what the bytes so far show; why is not empty when they are no text that can be read. whole says that there are
// no more bytes: a character that is cut off is damage then, and so is a NUL anywhere.
func (c *census) form(whole bool) (form Form, why string) {
	switch {
	case c.utf32():
		return form, "it is UTF-32; convert it to UTF-8 first"
	case c.utf16() && c.head[0] == 0xFF:
		return Form{UTF16LE, true}, ""
	case c.utf16():
		return Form{UTF16BE, true}, ""
	case c.nuls[0]+c.nuls[1] > 0 && c.nuls[0]*c.nuls[1] == 0 && c.size >= 4 && int64(c.nuls[0]+c.nuls[1]) > min(c.size, binaryWithin)/3:
		return form, "it looks like UTF-16 without a byte order mark, by which alone that can be told; convert it to UTF-8 first"
	case c.binary():
		return form, "it is binary"
	}
	if whole {
		for i, b := range c.partial {
			c.invalidByte(b, c.size-int64(len(c.partial)-i))
		}
		c.partial = nil
	}
	marked := bytes.HasPrefix(c.head, bom)
	where := fmt.Sprintf("byte 0x%02X at offset %d", c.bad, c.first)
	switch {
	case c.invalid == 0:
		return Form{UTF8, marked}, ""
	case c.controls > 0 && !marked:
		return form, "it is binary"
	case marked || c.valid > c.invalid:
		return form, "it is damaged UTF-8 (" + where + "); mend it first"
	case c.unused > 0 || 2*c.inRuns > c.high:
		return form, "it is neither UTF-8 (" + where + ") nor does it look like Latin-1; convert it to UTF-8 first"
	case c.c1 > 0:
		return Form{Windows1252, false}, ""
	}
	return Form{Latin1, false}, ""
}
