package workspace

import (
	"slices"
	"strings"
)

// Bounds of what ignore files can ask for.
const (
	ignoreBytes = 1 << 20 // of one file; the rest of it is not read
	ignoreLine  = 4 << 10 // bytes of a rule: a longer one is dropped
	ignoreLines = 5000    // rules that hold for a folder; those of files further down are left out then
)

// ignoreRules are the lines of the ignore files from the root down to a folder. The last that matches decides. A value is
// never changed once it is made, so that sibling folders can share the rules above them.
type ignoreRules []ignoreRule

type ignoreRule struct {
	base    string // the folder of the file it stands in, "." for the root
	name    string // a plain name, at any depth
	suffix  string // instead of name: the ending of a name, at any depth
	glob    string // instead of these: a pattern of names, at any depth
	pattern string // instead of these: matched against the path from base
	prefix  string // of pattern: what such a path begins with
	last    string // of pattern: the last part of such a path, "" when it can be several
	keep    bool   // begins with "!"
	dirs    bool   // ends with "/": means folders only
}

// with adds the rules of an ignore file in dir, which has this text. Lines that are no pattern are dropped, as git does.
func (rules ignoreRules) with(dir, text string) ignoreRules {
	out := rules[:len(rules):len(rules)]
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		if len(out) >= ignoreLines {
			break
		}
		if r, ok := parseIgnore(strings.TrimSuffix(line, "\r")); ok {
			r.base = dir
			out = append(out, r)
		}
	}
	return out
}

// special are the characters that make a line more than a name.
const special = `*?[\`

// parseIgnore reads one line as gitignore(5) says.
func parseIgnore(line string) (r ignoreRule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimSpaces(line)
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.keep, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirs, line = true, rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" || len(line) > ignoreLine {
		return r, false
	}
	if !anchored && !strings.ContainsAny(line, special) {
		r.name = line
		return r, true
	}
	if rest, ok := strings.CutPrefix(line, "*"); ok && !anchored && !strings.ContainsAny(rest, special) {
		r.suffix = rest
		return r, true
	}
	if !anchored {
		r.glob = line
		return r, true
	}
	r.pattern = line
	r.prefix = line[:max(strings.IndexAny(line+"*", special), 0)]
	if last := line[strings.LastIndexByte(line, '/')+1:]; !strings.ContainsAny(last, special) && !strings.Contains(line, "[") {
		r.last = last
	}
	return r, true
}

// trimSpaces cuts the spaces at the end of a line that no backslash keeps.
func trimSpaces(line string) string {
	from := -1
	for i := 0; i < len(line); i++ {
		if line[i] == ' ' {
			if from < 0 {
				from = i
			}
			continue
		}
		from = -1
		if line[i] == '\\' {
			i++
		}
	}
	if from < 0 {
		return line
	}
	return line[:from]
}

// ignored reports whether name in the folder dir, which is not ignored itself, is.
func (rules ignoreRules) ignored(dir, name string, isDir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if r := &rules[i]; (isDir || !r.dirs) && r.matches(dir, name) {
			return !r.keep
		}
	}
	return false
}

func (r *ignoreRule) matches(dir, name string) bool {
	switch {
	case r.name != "":
		return name == r.name
	case r.glob != "":
		return wild(r.glob, name, false)
	case r.pattern == "":
		return strings.HasSuffix(name, r.suffix)
	case r.last != "" && r.last != name:
		return false
	}
	p := within(dir, name)
	if r.base != "." {
		p = strings.TrimPrefix(p, r.base+"/")
	}
	return strings.HasPrefix(p, r.prefix) && wild(r.pattern, p, true)
}

// rules adds those of a folder to those of the folders above it: the repository's own excludes, when it is one, and its
// .gitignore, which the editor may have open. As git does, a .gitignore that is a link is not followed.
func (k *walker) rules(dir string, d *folder, list []entry, above ignoreRules) ignoreRules {
	rules := above
	if lists(list, entry{name: ".git/"}) {
		rules = rules.with(dir, k.excludes(d))
	}
	name := within(dir, ".gitignore")
	switch {
	case k.open[name]:
		if _, text, ok := k.w.buffer(name); ok {
			return rules.with(dir, text)
		}
	case lists(list, entry{name: ".gitignore"}):
		return rules.with(dir, ignoreText(d, ".gitignore"))
	}
	return rules
}

func lists(list []entry, e entry) bool {
	i, ok := slices.BinarySearchFunc(list, e, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return ok && (list[i].mode.IsDir() || list[i].mode.IsRegular())
}

// excludes is the text of .git/info/exclude.
func (k *walker) excludes(d *folder) string {
	git, err := d.inside(".git")
	if err != nil {
		return ""
	}
	defer git.release()
	info, err := git.inside("info")
	if err != nil {
		return ""
	}
	defer info.release()
	return ignoreText(info, "exclude")
}

// ignoreText is what an ignore file says. A line that its bound cuts is left out.
func ignoreText(d *folder, name string) string {
	buf := make([]byte, 4<<10)
	n, size, err := d.head(name, buf)
	if err == nil && size > int64(n) {
		buf = make([]byte, min(size, ignoreBytes))
		n, size, err = d.head(name, buf)
	}
	if err != nil {
		return ""
	}
	text := string(buf[:n])
	if size > int64(n) {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	return text
}

// rulesAbove is rules for a folder that is not walked.
func (k *walker) rulesAbove(dir string, above ignoreRules) ignoreRules {
	d, err := k.w.openFolder(dir)
	if err != nil {
		return above
	}
	defer d.release()
	list := []entry{{name: ".git/"}, {name: ".gitignore"}} // or neither: then they say nothing
	return k.rules(dir, d, list, above)
}
