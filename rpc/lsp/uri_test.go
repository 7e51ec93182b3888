package lsp

import "testing"

func TestAFileURINamesAPath(t *testing.T) {
	for _, tt := range []struct {
		windows bool
		uri     string
		path    string // "": none
	}{
		{false, "file:///home/me/a.go", "/home/me/a.go"},
		{false, "FILE:///a", "/a"},
		{false, "file://localhost/a", "/a"},
		{false, "file:/a%20b/c", "/a b/c"},
		{false, "file:a", ""},
		{false, "file:///a%20b/c d", "/a b/c d"},
		{false, "file:///%C3%A4/ä", "/ä/ä"},
		{false, "file:///a%2Bb%23c%3Fd", "/a+b#c?d"},
		{false, "file:///a?query#fragment", "/a"},
		{false, "file:///a/./b//c/../d/", "/a/b/d"},
		{false, "file:///../a", "/a"},
		{false, "file:///a%00", ""},
		{false, "file:///a%2", ""},
		{false, "file://server/share", ""},
		{false, "untitled:Untitled-1", ""},
		{false, "vscode-remote://ssh/a", ""},
		{false, "/a", ""},
		{false, "", ""},
		{true, "file:///c%3A/a/b.go", `C:\a\b.go`},
		{true, "file:///C:/a%20b", `C:\a b`},
		{true, "file:///c:", `C:\`},
		{true, "file:/c:/a", `C:\a`},
		{true, "file://server/share/a", `\\server\share\a`},
		{true, "file:///a/b", ""},
	} {
		got, ok := filePathOn(tt.windows, tt.uri)
		if got != tt.path || ok != (tt.path != "") {
			t.Errorf("%s: %q, %v, want %q", tt.uri, got, ok, tt.path)
		}
		if !ok {
			continue
		}
		if back, ok := filePathOn(tt.windows, fileURIOn(tt.windows, got)); !ok || back != got {
			t.Errorf("%q as URI is %s, and that is %q", got, fileURIOn(tt.windows, got), back)
		}
	}
	if got := fileURIOn(false, "/a b/ä#?%+.go"); got != "file:///a%20b/%C3%A4%23%3F%25%2B.go" {
		t.Error(got)
	}
	if got := fileURIOn(true, `C:\a b\c`); got != "file:///C%3A/a%20b/c" {
		t.Error(got)
	}
}
