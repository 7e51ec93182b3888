package rehearsal

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// helpPoints is the answer to what no rule fits. It is long so that there is something to stop.
var helpPoints = []string{
	"I have no rule for that, so here is what I can do, and what stopping me does.",
	"Ask me to find a word, and I search all files for it and tell you where it stands.",
	"Ask me to read a file, and I show how it begins and count its lines.",
	"Ask me to explain a file or this repository, and I read it and sum up what it says of itself: its headings, its first sentences, the names it exports.",
	"Ask me to list the TODOs, and I search for them.",
	"Ask me to replace one text by another in a file, and I read the file first and then make the edit, for which you may be asked.",
	"Ask me to run a command, and I run it once you allow it.",
	"",
	"While I talk you can stop me at any word.",
	"What I have said by then stays exactly as you saw it, and the model input of the next request holds the very same bytes.",
	"Then tell me what to do instead: shorter, in bullets, only one part of it, or another file.",
	"I treat what I had said as a first attempt, say what I keep of it, and follow your new words.",
	"You can stop that too, as often as you like.",
	"",
	"I do not think, and I know nothing beyond the files that the tools show me.",
	"When you have a provider, put its base URL and key into fermata's configuration, and a real model takes my place; everything else stays as you see it now.",
}

var match = pattern(`(?m)^([^\n:]+):(\d+):(.*)$`)

// searched tells what a search found.
func searched(what string, r result) []string {
	found := match().FindAllStringSubmatch(r.output, -1)
	if len(found) == 0 {
		if r.failed() {
			return notDone(r)
		}
		return []string{fmt.Sprintf("I found no match for %s.", what), "The search said: " + oneLine(r.output, 200)}
	}
	files := map[string]int{}
	var order []string
	for _, m := range found {
		if files[m[1]] == 0 {
			order = append(order, m[1])
		}
		files[m[1]]++
	}
	out := []string{fmt.Sprintf("I found %s in %s: %s.", counted(len(found), "match"), counted(len(order), "file"), what)}
	for i, m := range found {
		if i == 12 {
			out = append(out, fmt.Sprintf("- … and %d more", len(found)-i))
			break
		}
		out = append(out, fmt.Sprintf("- %s:%s %s", m[1], m[2], code(oneLine(m[3], 100))))
	}
	most := order[0]
	for _, f := range order {
		if files[f] > files[most] {
			most = f
		}
	}
	return append(out, "", fmt.Sprintf("Most of them are in %s (%d).", code(most), files[most]))
}

func notDone(r result) []string {
	return []string{fmt.Sprintf("That did not work; %s said: %s", cmpOr(r.tool, "the tool"), oneLine(r.output, 300))}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// surveyed tells what a repository says of itself.
func surveyed(names []string, read []result) []string {
	var folders, files []string
	for _, n := range names {
		if f, ok := strings.CutSuffix(n, "/"); ok {
			folders = append(folders, f)
		} else {
			files = append(files, n)
		}
	}
	out := []string{fmt.Sprintf("At its top the workspace has %s and %s.", counted(len(folders), "folder"), counted(len(files), "file"))}
	if len(folders) > 0 {
		out = append(out, "The folders are "+some(folders, 10)+".")
	}
	for _, r := range read {
		name := r.arg("path", "file")
		if text, ok := fileText(r); ok {
			out = append(append(out, ""), facts(name, text)...)
		} else {
			out = append(append(out, ""), notDone(r)...)
		}
	}
	return out
}

var numbered = pattern(`^ *\d+\t`)

// fileText is the text that a read_file result shows: its lines without numbers. ok is false for anything else.
func fileText(r result) (text string, ok bool) {
	var b strings.Builder
	for l := range strings.Lines(r.output) {
		if n := numbered().FindString(l); n != "" {
			b.WriteString(l[len(n):])
			ok = true
		}
	}
	return b.String(), ok
}

var (
	heading  = pattern(`(?m)^#{1,3} +(.+)$`)
	goName   = pattern(`(?m)^(?:func (?:\([^)]*\) )?|type |var |const )([A-Z]\w*)`)
	goPkg    = pattern(`(?m)^package (\w+)`)
	goModule = pattern(`(?m)^module (\S+)`)
	goRule   = pattern(`(?m)^go (\S+)`)
	goNeeds  = pattern(`(?m)^(?:require )?\t?[\w.-]+\.[\w.-]+/\S+ v\S+`)
	defined  = pattern(`(?m)^\s*(?:export\s+)?(?:async\s+)?(?:def|class|function|fn|struct|interface|local function)\s+([A-Za-z_]\w*)`)
)

// facts are sentences about a text that are true because they are copied from it or counted in it.
func facts(name, text string) []string {
	out := []string{fmt.Sprintf("%s has %s and %s.", code(name), counted(lines(text), "line"), counted(len(strings.Fields(text)), "word"))}
	base := baseName(name)
	switch {
	case base == "go.mod":
		if m := goModule().FindStringSubmatch(text); m != nil {
			out = append(out, fmt.Sprintf("It is the Go module %s.", code(m[1])))
		}
		if m := goRule().FindStringSubmatch(text); m != nil {
			out = append(out, fmt.Sprintf("It asks for Go %s.", m[1]))
		}
		return append(out, fmt.Sprintf("It requires %s.", counted(len(goNeeds().FindAllString(text, -1)), "module")))
	case base == "package.json":
		var p struct {
			Name, Description string
			Scripts           map[string]string
			Dependencies      map[string]string
		}
		if json.Unmarshal([]byte(text), &p) == nil {
			out = append(out, fmt.Sprintf("It is the package %s, with %s and %s.", code(p.Name), counted(len(p.Scripts), "script"), counted(len(p.Dependencies), "package")+" that it depends on"))
			if p.Description != "" {
				out = append(out, "It says of itself: “"+oneLine(p.Description, 200)+"”")
			}
		}
		return out
	case strings.HasSuffix(base, ".go"):
		if m := goPkg().FindStringSubmatch(text); m != nil {
			out = append(out, fmt.Sprintf("It belongs to the Go package %s.", code(m[1])))
		}
		if s := leadingComment(text); s != "" {
			out = append(out, "It says of itself: “"+s+"”")
		}
		return append(out, named("exports", goName().FindAllStringSubmatch(text, -1)))
	}
	if m := heading().FindAllStringSubmatch(text, -1); len(m) > 0 && (strings.HasSuffix(base, ".md") || strings.HasPrefix(base, "README")) {
		var titles []string
		for _, h := range m {
			titles = append(titles, "“"+strings.TrimSpace(h[1])+"”")
		}
		out = append(out, fmt.Sprintf("It has %s: %s.", counted(len(m), "heading"), some(titles, 8)))
	} else if m := defined().FindAllStringSubmatch(text, -1); len(m) > 0 {
		out = append(out, named("defines", m))
	}
	if s := firstSentence(prose(text)); s != "" {
		out = append(out, "It begins with: “"+s+"”")
	}
	return out
}

func named(verb string, found [][]string) string {
	var names []string
	seen := map[string]bool{}
	for _, m := range found {
		if !seen[m[1]] {
			seen[m[1]] = true
			names = append(names, code(m[1]))
		}
	}
	if len(names) == 0 {
		return "It " + verb + " no names."
	}
	return fmt.Sprintf("It %s %s: %s.", verb, counted(len(names), "name"), some(names, 12))
}

// some lists at most n of them.
func some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
}

// leadingComment is the first sentence of the comment before a Go file's package clause, or of the first comment.
func leadingComment(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		c, ok := strings.CutPrefix(l, "//")
		if ok && !strings.HasPrefix(c, "go:") {
			b.WriteString(c)
		} else if b.Len() > 0 {
			break
		}
	}
	return firstSentence(b.String())
}

// prose is a text without headings, code and mark-up lines.
func prose(text string) string {
	var b strings.Builder
	inCode := false
	for l := range strings.Lines(text) {
		t := strings.TrimSpace(l)
		if strings.HasPrefix(t, "```") {
			inCode = !inCode
			continue
		}
		if inCode || strings.HasPrefix(t, "#") || strings.HasPrefix(t, "<") || strings.HasPrefix(t, "[![") {
			continue
		}
		if t == "" && b.Len() > 0 {
			break
		}
		b.WriteString(l)
	}
	return b.String()
}

func firstSentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	for i, r := range s {
		if (r == '.' || r == '!' || r == '?') && (i+1 == len(s) || s[i+1] == ' ') {
			return oneLine(s[:i+1], 240)
		}
	}
	return oneLine(s, 240)
}

// oneLine is s with its white space joined, at most n bytes and three of them an ellipsis.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// block is the first n lines of a text as a code block.
func block(text string, n int) string {
	var b strings.Builder
	i := 0
	for l := range strings.Lines(text) {
		if i++; i > n {
			fmt.Fprintf(&b, "… (%d more lines)", lines(text)-n)
			break
		}
		b.WriteString(l)
	}
	fence := "```"
	for strings.Contains(b.String(), fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(b.String(), "\n") + "\n" + fence
}

func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
