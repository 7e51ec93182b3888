package workspace

import "bytes"

// LooksBinary reports whether a file that begins with b, which has all of it or at least 8 KiB, is binary at first sight.
// What is not may be binary all the same.
func LooksBinary(b []byte) bool {
	c := census{head: b[:min(len(b), 4)]}
	return c.utf32() || !c.utf16() && bytes.IndexByte(b[:min(len(b), binaryWithin)], 0) >= 0
}

// LooksUTF16 reports whether a file that begins with b is UTF-16, if it is text.
func LooksUTF16(b []byte) bool {
	c := census{head: b[:min(len(b), 4)]}
	return c.utf16()
}
