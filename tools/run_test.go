package tools

import (
	"slices"
	"strings"
	"testing"
)

func TestOutputIsCleaned(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"plain":                {"a\tb\nc", "a\tb\nc"},
		"UTF-8":                {"grüß 漢 🎼", "grüß 漢 🎼"},
		"colours":              {"\x1b[1;31mred\x1b[0m x", "red x"},
		"cursor":               {"a\x1b[2K\x1b[1Gb", "ab"},
		"title":                {"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"},
		"charset":              {"\x1b(Bx\x1b=y\x1bMz", "xyz"},
		"C1":                   {"\u009b31mx\u009dtitle\u009cy", "xy"},
		"CRLF":                 {"a\r\nb\r\n", "a\nb\n"},
		"progress bar":         {"10%\r20%\r\n", "10%\n20%\n"},
		"CR at the end":        {"a\r", "a\n"},
		"NUL":                  {"a\x00b", "a\uFFFDb"},
		"bell and backspace":   {"a\x07\x08b\x7f", "ab"},
		"not UTF-8":            {"gr\xfc\xdfe", "gr\uFFFD\uFFFDe"},
		"cut at the end":       {"a\xe6\xbc", "a\uFFFD\uFFFD"},
		"an escape broken off": {"\x1b[31\nx\x1b[3\x1b[0my", "\nxy"},
		"a string broken off":  {"\x1b]0;title\nx", "\nx"},
		"an escape at the end": {"a\x1b", "a"},
	} {
		for step := 1; step <= len(tt.in); step++ { // however it is split
			var c cleaner
			var got strings.Builder
			for b := range slices.Chunk([]byte(tt.in), step) {
				got.WriteString(c.write(b))
			}
			if got.WriteString(c.end()); got.String() != tt.want {
				t.Errorf("%s in pieces of %d: %q, want %q", name, step, got.String(), tt.want)
			}
		}
	}
}

func TestASinkKeepsHeadAndTail(t *testing.T) {
	var live strings.Builder
	s := newSink(func(p string) { live.WriteString(p) })
	line := strings.Repeat("é", 31) + "\n" // 63 bytes: cuts fall within a character
	const n = 100_000
	s.copy(strings.NewReader("first\n" + strings.Repeat(line, n) + "last\n"))
	s.close()
	text, full := s.output()
	total := len("first\nlast\n") + n*len(line)
	if len(text) > sinkHead+sinkTail+100 || !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "\nlast") {
		t.Errorf("%d bytes: %.20q … %q", len(text), text, text[len(text)-20:])
	}
	if strings.ContainsRune(text, '\uFFFD') || !strings.Contains(text, " bytes left out …)\n") {
		t.Errorf("cut badly: %q", text[sinkHead-50:sinkHead+100])
	}
	if len(full) > sinkFull+100 || !strings.Contains(string(full[len(full)-60:]), "bytes more were not kept") {
		t.Errorf("full has %d of %d bytes, ends %q", len(full), total, full[len(full)-60:])
	}
	if live.Len() > sinkLive+64<<10 || !strings.Contains(live.String(), "not shown live any more") {
		t.Errorf("%d bytes were passed on", live.Len())
	}
}

func TestShortOutputIsWhole(t *testing.T) {
	s := newSink(nil)
	s.copy(strings.NewReader("a\nb\n"))
	s.close()
	if text, full := s.output(); text != "a\nb" || full != nil {
		t.Errorf("%q, %q", text, full)
	}
}
