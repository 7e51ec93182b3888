package workspace

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestTheEncodingOfAFileIsTold(t *testing.T) {
	long := strings.Repeat("plain line\n", 10_000) // longer than what is looked at first
	for name, tt := range map[string]struct {
		content string
		text    string
		form    Form
		says    string
	}{
		"empty":                     {"", "", Form{UTF8, false}, ""},
		"ASCII":                     {"hello\n", "hello\n", Form{UTF8, false}, ""},
		"UTF-8":                     {"grüß 漢 𝄞\n", "grüß 漢 𝄞\n", Form{UTF8, false}, ""},
		"UTF-8, marked":             {"\uFEFFgrüß\n", "grüß\n", Form{UTF8, true}, ""},
		"only a mark":               {"\uFEFF", "", Form{UTF8, true}, ""},
		"UTF-16LE":                  {"\xff\xfeh\x00\xfc\x00", "hü", Form{UTF16LE, true}, ""},
		"UTF-16BE":                  {"\xfe\xff\x00h\x00\xfc", "hü", Form{UTF16BE, true}, ""},
		"UTF-16, a pair":            {"\xff\xfe\x34\xd8\x1e\xdd", "𝄞", Form{UTF16LE, true}, ""},
		"UTF-16, empty":             {"\xff\xfe", "", Form{UTF16LE, true}, ""},
		"UTF-16, half a pair":       {"\xff\xfe\x34\xd8h\x00", "", Form{UTF16LE, true}, "damaged UTF-16LE"},
		"UTF-16, odd":               {"\xfe\xff\x00h\x00", "", Form{UTF16BE, true}, "damaged UTF-16BE"},
		"UTF-16, no mark":           {"h\x00e\x00", "", Form{}, "looks like UTF-16 without a byte order mark"},
		"UTF-32":                    {"\xff\xfe\x00\x00h\x00\x00\x00", "", Form{}, "UTF-32"},
		"Latin-1":                   {"gr\xfc\xdfe\n", "grüße\n", Form{Latin1, false}, ""},
		"Latin-1, far down":         {long + "\xe9\n", long + "é\n", Form{Latin1, false}, ""},
		"Latin-1 with UTF-8 in it":  {"\xabCAF\xc9\xbb \xe9t\xe9\n", "«CAFÉ» été\n", Form{Latin1, false}, ""},
		"Windows-1252":              {"\x93gr\xfc\xdf\x94 \x80\n", "“grüß” €\n", Form{Windows1252, false}, ""},
		"what Windows-1252 lacks":   {"gr\x81\xe1e\n", "", Form{}, "neither UTF-8 (byte 0x81 at offset 2) nor does it look like Latin-1"},
		"Cyrillic":                  {"\xcf\xf0\xe8\xe2\xe5\xf2\n", "", Form{}, "nor does it look like Latin-1"},
		"damaged UTF-8":             {"漢字 \xff\n", "", Form{}, "damaged UTF-8 (byte 0xFF at offset 7)"},
		"damaged UTF-8, marked":     {"\uFEFF\xff\n", "", Form{}, "damaged UTF-8"},
		"damaged UTF-8, far down":   {long + "漢字\xff\n", "", Form{}, "damaged UTF-8 (byte 0xFF at offset 110006)"},
		"UTF-8 cut at the end":      {"漢字\xe6\xbc", "", Form{}, "offset 6"},
		"NUL":                       {"a\x00b", "", Form{}, "binary"},
		"NUL, far down":             {long + "\x00", "", Form{}, "binary"},
		"control characters":        {"\xfc\x01\x02", "", Form{}, "binary"},
		"escapes and form feeds":    {"\x1b[1m\f\xfc\n", "\x1b[1m\fü\n", Form{Latin1, false}, ""},
		"UTF-8 over a piece's edge": {strings.Repeat("x", sniffed-1) + "漢", strings.Repeat("x", sniffed-1) + "漢", Form{UTF8, false}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text, form, err := File{Path: "f", Content: []byte(tt.content)}.Text()
			if text != tt.text || form != tt.form && tt.says == "" || (err == nil) != (tt.says == "") {
				t.Fatalf("%.100q, %v, %v", text, form, err)
			}
			if err != nil {
				if !errors.Is(err, ErrNotText) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("the error does not say %q: %v", tt.says, err)
				}
			} else if b, err := form.Bytes(text); err != nil || string(b) != tt.content {
				t.Errorf("written back as %.100q, %v", b, err)
			}

			w := tree(t, "", nil)
			put(t, w.Root()+"/f", tt.content)
			s, err := w.Stream("f")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r, form, err := s.Text()
			switch {
			case err != nil && !strings.Contains(err.Error(), tt.says):
				t.Errorf("as a stream: %v", err)
			case err == nil && tt.says == "":
				if b, err := io.ReadAll(r); err != nil || string(b) != tt.text || form != tt.form {
					t.Errorf("as a stream: %.100q, %v, %v", b, form, err)
				}
			case err == nil && !strings.Contains(tt.says, "damaged UTF-16") && name != "NUL, far down":
				t.Errorf("as a stream it passes for %v", form)
			}
		})
	}
}

// FuzzATextIsWrittenBackAsItWas: whatever is read as text is the same bytes when it is written back, in pieces of any size.
func FuzzATextIsWrittenBackAsItWas(f *testing.F) {
	for _, s := range []string{"a\r\nb", "\uFEFFü", "\xff\xfea\x00", "\xfe\xff\x00a", "gr\xfc\xdfe", "\x93\x80\x94", "漢\xe6", "\xff\xfe\x34\xd8"} {
		f.Add([]byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, content []byte, piece uint8) {
		text, form, err := File{Content: content}.Text()
		if err == nil {
			if b, err := form.Bytes(text); err != nil || !slices.Equal(b, content) {
				t.Errorf("%v %q: %q, %v", form, text, b, err)
			}
		}
		var whole, pieces census
		_, _ = whole.Write(content)
		for p := range slices.Chunk(content, int(piece)+1) {
			_, _ = pieces.Write(p)
		}
		f1, why1 := whole.form(true)
		f2, why2 := pieces.form(true)
		if f1 != f2 || why1 != why2 {
			t.Errorf("whole %v %q, in pieces %v %q", f1, why1, f2, why2)
		}
	})
}
