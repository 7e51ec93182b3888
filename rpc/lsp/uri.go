package lsp

import (
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// filePath is the local path that a file URI names, ok false for any other URI. Clients encode the same path in many
// ways (%20, %3A, c: and C:); equal files give equal paths.
func filePath(uri string) (path string, ok bool) {
	return filePathOn(runtime.GOOS == "windows", uri)
}

func filePathOn(windows bool, uri string) (string, bool) {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || !strings.EqualFold(scheme, "file") || !strings.HasPrefix(rest, "/") {
		return "", false
	}
	rest = strings.TrimPrefix(rest, "//")          // file:/a, as of Java's, is file:///a: RFC 8089
	if i := strings.IndexAny(rest, "?#"); i >= 0 { // in a path they are encoded
		rest = rest[:i]
	}
	host, path, _ := strings.Cut(rest, "/")
	path, err := url.PathUnescape("/" + path)
	if err != nil || strings.ContainsRune(path, 0) {
		return "", false
	}
	if strings.EqualFold(host, "localhost") {
		host = ""
	}
	if !windows {
		if host != "" {
			return "", false
		}
		return cleanSlashes(path), true
	}
	if host != "" {
		return `\\` + host + backslashes(cleanSlashes(path)), true
	}
	path = cleanSlashes(path)
	if len(path) < 3 || path[2] != ':' || !isLetter(path[1]) {
		return "", false
	}
	drive := strings.ToUpper(path[1:2]) + ":"
	return drive + backslashes("/"+strings.TrimPrefix(path[3:], "/")), true
}

// cleanSlashes leaves out empty and dot parts.
func cleanSlashes(path string) string {
	var parts []string
	for p := range strings.SplitSeq(path, "/") {
		switch p {
		case "", ".":
		case "..":
			parts = parts[:max(0, len(parts)-1)]
		default:
			parts = append(parts, p)
		}
	}
	return "/" + strings.Join(parts, "/")
}

func backslashes(path string) string { return strings.ReplaceAll(path, "/", `\`) }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// fileURI is the URI of an absolute local path.
func fileURI(path string) string { return fileURIOn(runtime.GOOS == "windows", path) }

func fileURIOn(windows bool, path string) string {
	host := ""
	if windows {
		path = strings.ReplaceAll(path, `\`, "/")
		if rest, ok := strings.CutPrefix(path, "//"); ok {
			host, path, _ = strings.Cut(rest, "/")
		}
	}
	path = "/" + strings.TrimPrefix(path, "/")
	var b strings.Builder
	b.WriteString("file://" + host)
	for i := range len(path) {
		c := path[i]
		switch {
		case c == '/', c == '-', c == '.', c == '_', c == '~', isLetter(c), '0' <= c && c <= '9':
			b.WriteByte(c)
		default:
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// below is the slash-separated path of a file from a root, ok false when it does not lie in it.
func below(root, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// localPath is what a client means by a workspace: an absolute path or a file URI.
func localPath(s string) (path string, ok bool) {
	if path, ok := filePath(s); ok {
		return path, true
	}
	if filepath.IsAbs(s) {
		return filepath.Clean(s), true
	}
	return "", false
}

// realPath is path with its links resolved, so that one folder has one name; "" stays "".
func realPath(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
