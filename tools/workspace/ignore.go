package workspace

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreRules are the lines of the .gitignore files from the root down to a folder. The last that matches decides. A
// value is never changed once it is made, so that sibling folders can share the rules above them.
type ignoreRules []ignoreRule

type ignoreRule struct {
	base    string // the folder of the file it stands in, "." for the root
	pattern string // in doublestar's language; matched against the path from base
	name    string // instead of pattern: a plain name, at any depth
	suffix  string // instead of pattern: the ending of a name, at any depth
	keep    bool   // begins with "!"
	dirs    bool   // ends with "/": means folders only
}

// with adds the rules of the .gitignore in dir, which has this text. Lines that are no pattern are dropped, as git does.
func (rules ignoreRules) with(dir, text string) ignoreRules {
	out := rules[:len(rules):len(rules)]
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		if r, ok := parseIgnore(strings.TrimSuffix(line, "\r")); ok {
			r.base = dir
			out = append(out, r)
		}
	}
	return out
}

// parseIgnore reads one line as gitignore(5) says.
func parseIgnore(line string) (r ignoreRule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.keep, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirs, line = true, rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	if !anchored && !strings.ContainsAny(line, `*?[\`) {
		r.name = line
		return r, true
	}
	if rest, ok := strings.CutPrefix(line, "*"); ok && !anchored && !strings.ContainsAny(rest, `*?[\`) {
		r.suffix = rest
		return r, true
	}
	r.pattern = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line) // git has no alternatives
	if !anchored {
		r.pattern = "**/" + r.pattern
	}
	if strings.HasSuffix(r.pattern, "/**") {
		r.pattern += "/*" // what is inside, not the folder itself
	}
	return r, doublestar.ValidatePattern(r.pattern)
}

// ignored reports whether name, a path from the root whose parents are not ignored, is.
func (rules ignoreRules) ignored(name string, dir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].matches(name, dir) {
			return !rules[i].keep
		}
	}
	return false
}

func (r *ignoreRule) matches(name string, dir bool) bool {
	if r.dirs && !dir {
		return false
	}
	switch {
	case r.name != "":
		return path.Base(name) == r.name
	case r.pattern == "":
		return strings.HasSuffix(path.Base(name), r.suffix)
	}
	if r.base != "." {
		name = strings.TrimPrefix(name, r.base+"/")
	}
	return doublestar.MatchUnvalidated(r.pattern, name)
}
