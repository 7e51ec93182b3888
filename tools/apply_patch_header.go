package tools

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"fermata/tools/workspace"
)

// gitFile reads a file's part that begins with diff --git.
func (p *patchParser) gitFile() error {
	f := filePatch{line: p.at + 1}
	first, second, ok := gitNames(strings.TrimPrefix(p.lines[p.at], "diff --git "))
	if ok {
		f.old, f.new = first, second
		f.prefixed = prefixOf(first, second)
	}
	created, deleted, mode := false, false, ""
	for p.at++; p.at < len(p.lines); p.at++ {
		l := p.lines[p.at]
		key, value := gitHeader(l)
		switch key {
		case "new file mode ":
			created, f.mode = true, workspace.Mode(value)
		case "deleted file mode ":
			deleted = true
		case "new mode ":
			mode = value
		case "rename from ", "rename to ":
			name, err := patchName(value)
			if err != nil {
				return p.errorf("%v", err)
			}
			if f.rename = true; key == "rename from " {
				f.old = name
			} else {
				f.new = name
			}
			f.prefixed = prefixNo // these names have none
		case "copy from ":
			return p.errorf("copies are not made by a patch; create the file with all its lines")
		case "Binary files ", "GIT binary patch":
			return p.errorf("%s: binary files cannot be patched", workspace.Show(strings.TrimPrefix(second, "b/")))
		}
		if key == "" {
			break
		}
	}
	switch {
	case f.mode != "" && f.mode != workspace.ModeFile && f.mode != workspace.ModeExecutable:
		return p.errorf("a file of mode %s cannot be created; it must be 100644 or 100755", oneLine(string(f.mode), 20))
	case mode != "":
		return p.errorf("permissions are not changed by a patch; use run with chmod for mode %s", oneLine(mode, 20))
	}
	if f.rename && (created || deleted) {
		return p.errorf("a file is renamed, or created, or deleted: it cannot be two of them")
	}
	asSaid := func(f *filePatch) { // --- and +++ may name the file both
		if created {
			f.old = ""
		}
		if deleted {
			f.new = ""
		}
	}
	asSaid(&f)
	if !p.header(p.at) {
		if !ok && !f.rename {
			return p.errorf("its names cannot be told; add the lines --- and +++")
		}
		return p.hunks(f)
	}
	lines := f
	before := p.at
	switch err := p.names(&lines); {
	case err != nil:
		return err
	case !ok && !f.rename:
		asSaid(&lines)
		return p.hunks(lines)
	case !f.named(lines): // they begin another file's part
		p.files, p.at = append(p.files, f), before
		return nil
	case !f.rename: // else its names are those without a/ and b/
		f.old, f.new, f.prefixed = lines.old, lines.new, lines.prefixed
		asSaid(&f)
	}
	return p.hunks(f)
}

// named reports whether the lines --- and +++ of a part name the files that its other lines do.
func (f *filePatch) named(lines filePatch) bool {
	same := func(a, b, prefix string) bool {
		return a == b || strings.TrimPrefix(b, prefix) == a || b == "" && strings.HasPrefix(a, prefix)
	}
	return (same(f.old, lines.old, "a/") || f.old == "" || lines.old == "") && (same(f.new, lines.new, "b/") || f.new == "" || lines.new == "")
}

// gitHeader splits a line between diff --git and the hunks; key is "" for another line.
func gitHeader(l string) (key, value string) {
	for _, k := range []string{"index ", "similarity index ", "dissimilarity index ", "old mode ", "new mode ", "new file mode ", "deleted file mode ",
		"rename from ", "rename to ", "copy from ", "copy to ", "Binary files ", "GIT binary patch"} {
		if v, ok := strings.CutPrefix(l, k); ok {
			return k, strings.TrimSpace(v)
		}
	}
	return "", ""
}

// gitNames are the two names of a line diff --git, which can only be told apart when they are quoted or the same.
func gitNames(s string) (first, second string, ok bool) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", false
		}
		first, err1 := patchName(quoted)
		second, err2 := patchName(strings.TrimSpace(s[len(quoted):]))
		return first, second, err1 == nil && err2 == nil
	}
	for i := range s {
		if s[i] != ' ' {
			continue
		}
		first, second = s[:i], s[i+1:]
		if first == second || strings.HasPrefix(first, "a/") && strings.HasPrefix(second, "b/") && first[2:] == second[2:] {
			return first, second, true
		}
	}
	if first, second, ok = strings.Cut(s, " "); ok && !strings.Contains(second, " ") {
		return first, second, true
	}
	return "", "", false
}

// names reads the lines --- and +++.
func (p *patchParser) names(f *filePatch) error {
	for i, to := range []*string{&f.old, &f.new} {
		name, err := patchName(p.lines[p.at+i][4:])
		if err != nil {
			return p.errorf("%v", err)
		}
		*to = name
	}
	if known := prefixOf(f.old, f.new); known != prefixUnknown {
		f.prefixed = known
	}
	for _, name := range []*string{&f.old, &f.new} {
		if *name == "/dev/null" {
			*name = ""
		}
	}
	p.at += 2
	return nil
}

// prefixOf tells by two names whether they have git's prefixes.
func prefixOf(old, new string) prefixed {
	a, b := strings.HasPrefix(old, "a/"), strings.HasPrefix(new, "b/")
	switch {
	case a && b:
		return prefixYes
	case old == "/dev/null" && b, new == "/dev/null" && a:
		return prefixUnknown
	}
	return prefixNo
}

// patchName is a name as it stands behind ---, quoted as git does it where needed, less the time that diff adds.
func patchName(s string) (string, error) {
	s = strings.TrimRight(s, " \r")
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err == nil {
			s, err = strconv.Unquote(quoted)
		}
		if err != nil {
			return "", fmt.Errorf("the name %s is not quoted as git does it", oneLine(s, 80))
		}
	} else {
		s, _, _ = strings.Cut(s, "\t")
		s = strings.TrimRight(s, " ")
	}
	if s == "" {
		return "", errors.New("a file has no name here")
	}
	return s, nil
}
