package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes a path that a model gave relative to the root, slash-separated and without "." or "..": "." is the root.
// Absolute paths are accepted when they lie inside. It looks at no file. Errors wrap ErrPath or ErrOutside.
func (w *Workspace) Clean(name string) (string, error) {
	switch {
	case name == "":
		return "", fmt.Errorf(`%w: the path is empty; give one relative to the workspace, such as "src/main.go"`, ErrPath)
	case !utf8.ValidString(name):
		return "", fmt.Errorf("%w: %s is not valid UTF-8, and such a file cannot be named here; rename it first", ErrPath, Show(name))
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%w: %s contains a NUL character; leave it out", ErrPath, Show(name))
	}
	rel := filepath.ToSlash(name)
	if filepath.IsAbs(name) || strings.HasPrefix(rel, "/") {
		in, ok := w.relative(name)
		if !ok {
			return "", fmt.Errorf("%w: %s; the workspace is %s, give a path relative to it", ErrOutside, Show(name), Show(w.dir))
		}
		rel = in
	}
	rel = path.Clean(rel)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", fmt.Errorf("%w: %s leads above the root; give a path inside the workspace", ErrOutside, Show(name))
	}
	if strings.Count(rel, "/") > maxDepth {
		return "", fmt.Errorf("%w: it leads more than %d folders deep; such files cannot be used", ErrPath, maxDepth)
	}
	if !filepath.IsLocal(filepath.FromSlash(rel)) {
		return "", fmt.Errorf("%w: %s is not a name that this system allows here; give a path relative to the workspace", ErrPath, Show(name))
	}
	return rel, nil
}

// relative is the slash-separated path of an absolute name from the root, by either of the root's own names.
func (w *Workspace) relative(name string) (string, bool) {
	for _, root := range []string{w.dir, w.real} {
		clean := filepath.Clean(name)
		if samePath(clean, root) {
			return ".", true
		}
		if !strings.HasSuffix(root, string(filepath.Separator)) {
			root += string(filepath.Separator)
		}
		if len(clean) > len(root) && samePath(clean[:len(root)], root) {
			return filepath.ToSlash(clean[len(root):]), true
		}
	}
	return "", false
}

func samePath(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// resolve follows the links in name, which is clean, to the file it means, which need not exist. A link may be relative
// or absolute but must stay inside. [os.Root] checks the result again when it is opened, so that a link that changes in
// between leads nowhere.
func (w *Workspace) resolve(name string) (string, error) {
	done, rest := ".", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			if done == "." {
				return "", outsideLink(name)
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		fi, err := w.root.Lstat(filepath.FromSlash(next))
		if errors.Is(err, fs.ErrNotExist) {
			if slices.Contains(rest, "..") { // the system finds nothing there, and what a link behind it leads to would go unseen
				return "", fmt.Errorf("%w: %s is or goes through a link that leads nowhere", ErrPath, Show(name))
			}
			next = path.Join(next, path.Join(rest...))
			if !filepath.IsLocal(filepath.FromSlash(next)) {
				return "", outsideLink(name)
			}
			return next, nil
		}
		if err != nil {
			return "", fileError(name, err)
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > 40 {
			return "", fmt.Errorf("%w: %s is a link that leads to itself", ErrPath, Show(name))
		}
		target, err := w.root.Readlink(filepath.FromSlash(next))
		if err != nil {
			return "", fileError(name, err)
		}
		if filepath.IsAbs(target) {
			in, ok := w.relative(target)
			if !ok {
				return "", outsideLink(name)
			}
			done, target = ".", in
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return done, nil
}

func outsideLink(name string) error {
	return fmt.Errorf("%w: %s is or goes through a link that leads out; only files inside the workspace can be used", ErrOutside, Show(name))
}

// Resolve is the path from the root of the file that a name means, with its links followed; it need not exist. Errors
// wrap ErrPath or ErrOutside, or are the system's.
func (w *Workspace) Resolve(name string) (string, error) {
	_, real, err := w.locate(name)
	return real, err
}

// locate cleans and resolves.
func (w *Workspace) locate(name string) (clean, real string, err error) {
	if clean, err = w.Clean(name); err != nil {
		return "", "", err
	}
	real, err = w.resolve(clean)
	return clean, real, err
}

// fileError puts an error of the system in words, without the absolute paths and system calls it names.
func fileError(name string, err error) error {
	show := Show(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", show, fs.ErrNotExist)
	}
	if strings.Contains(err.Error(), "path escapes") {
		return outsideLink(name)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", show, err)
}

// inGitDir reports whether a resolved path is, or lies in, something that a file system may take for ".git".
func inGitDir(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		part = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) { // HFS+ ignores such characters in names
				return -1
			}
			return unicode.ToLower(r)
		}, part)
		part, _, _ = strings.Cut(part, ":")  // NTFS: a stream of .git
		part = strings.TrimRight(part, " .") // Windows ignores these
		if part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}

// Show is a file name as it can be put before people and models: itself, or quoted like a Go string when it has
// control, invisible or direction-changing characters or is not UTF-8.
func Show(name string) string {
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}
