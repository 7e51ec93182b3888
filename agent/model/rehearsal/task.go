package rehearsal

import (
	"strings"
)

// task is what a user message asks for, as far as the rules understand it. The zero task is none of them.
type task struct {
	kind string // "find", "todo", "read", "explain", "survey" (the whole workspace), "replace", "run"
	what string // what to find or replace, or the command
	with string // what to put in its place
	path string

	attached string // the text of a file or selection in the message itself
}

var (
	opening   = pattern("(?:^|\n)([^\n]*), lines \\d+-\\d+:\n(```+)\n")
	replaceIn = pattern(`(?is)\b(?:replace|change|rename)\s+(.+?)\s+(?:by|with|to)\s+(.+?)\s+in\s+(\S+)`)
	runCmd    = pattern(`(?is)^(?:please\s+)?(?:run|execute)\s+(.+)$`)
	todos     = pattern(`\b(?i:todos?|fixmes?)\b`)
	find      = pattern(`(?is)\b(?:find|where(?:'s|\s+is|\s+are|\s+do(?:es)?)?|search(?:\s+for)?|grep(?:\s+for)?|look\s+for|who\s+(?:calls|uses))\s+(.+)$`)
	explain   = pattern(`(?is)\b(?:explain|describe|summari[sz]e|review|what(?:\s+is|'s|\s+does))\s+(.+)$`)
	read      = pattern(`(?is)\b(?:read|show|open|cat|print|view|look\s+at)\s+(.+)$`)
	wholeTree = pattern(`(?i)\b(?:repo(?:sitory)?|project|workspace|code ?base|folder)\b`)
	fileName  = pattern(`(?:[\w@~-][\w.@~-]*/)*(?:[\w-][\w.-]*\.[A-Za-z][\w]*|Makefile|Dockerfile|LICENSE|README)\b`)
)

// detach takes what is attached out of a user's words: the first file or selection is returned, with its path.
func detach(words string) (path, attached, rest string) {
	var b strings.Builder
	for {
		m := opening().FindStringSubmatchIndex(words)
		if m == nil {
			break
		}
		text, after, closed := strings.Cut(words[m[1]-1:], "\n"+words[m[4]:m[5]])
		if !closed {
			break
		}
		if path == "" {
			path, attached = words[m[2]:m[3]], strings.TrimPrefix(text, "\n")
		}
		b.WriteString(words[:m[0]])
		words = after
	}
	b.WriteString(words)
	return path, attached, strings.TrimSpace(b.String())
}

// taskOf reads a user's words, a prompt's attachments among them.
func taskOf(words string) task {
	t := task{}
	t.path, t.attached, words = detach(words)
	if m := replaceIn().FindStringSubmatch(words); m != nil {
		return task{kind: "replace", what: bare(m[1]), with: bare(m[2]), path: bare(m[3])}
	}
	if m := runCmd().FindStringSubmatch(words); m != nil {
		return task{kind: "run", what: command(m[1])}
	}
	if t.attached != "" {
		t.kind = "explain"
		return t
	}
	if todos().MatchString(words) {
		return task{kind: "todo", what: `\b(TODO|FIXME)\b`}
	}
	if m := explain().FindStringSubmatch(words); m != nil {
		if f := fileName().FindString(m[1]); f != "" {
			return task{kind: "explain", path: f}
		}
		if wholeTree().MatchString(m[1]) {
			return task{kind: "survey"}
		}
	}
	if m := find().FindStringSubmatch(words); m != nil {
		return task{kind: "find", what: subject(m[1])}
	}
	if m := read().FindStringSubmatch(words); m != nil {
		if f := fileName().FindString(m[1]); f != "" {
			return task{kind: "read", path: f}
		}
	}
	return task{}
}

// bare takes quotes and closing punctuation off.
func bare(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), ".?!;,")
	for _, q := range []string{"`", `"`, "'", "“", "”"} {
		if t, ok := strings.CutPrefix(s, q); ok {
			s = strings.TrimSuffix(t, q)
		}
	}
	return strings.TrimRight(s, "”")
}

// command is a command line out of a sentence: what is in backticks, else the first line without the full stop after its
// last word. "./..." keeps its dots.
func command(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if inside, ok := strings.CutPrefix(s, "`"); ok {
		inside, _, _ = strings.Cut(inside, "`")
		return inside
	}
	if end := len(s) - 1; end > 0 && s[end] == '.' && !strings.ContainsRune("./ ", rune(s[end-1])) {
		s = s[:end]
	}
	return s
}

var (
	quoted   = pattern("[`\"“]([^`\"”]+)[`\"”]")
	articles = pattern(`(?i)^(?:(?:the|a|an|all|any|every|me|function|method|type|word|text|string|uses? of|definition of)\s+)+`)
	trailing = pattern(`(?i)\s+(?:is|are|gets?)?\s*(?:defined|declared|used|called|implemented|handled|set|in (?:this|the) \w+|here)$`)
)

// subject finds the thing a sentence asks about: what is quoted, else the sentence without what is around it.
func subject(s string) string {
	if m := quoted().FindStringSubmatch(s); m != nil {
		return m[1]
	}
	s = bare(strings.SplitN(s, "\n", 2)[0])
	for range 3 {
		s = trailing().ReplaceAllString(articles().ReplaceAllString(s, ""), "")
	}
	return bare(s)
}

// style is how the user wants the answer.
type style struct {
	bullets bool
	most    int // sentences; 0: all
	only    []string
}

var (
	inBullets   = pattern(`(?i)\b(?:bullets?|bullet points|as a list|as points)\b`)
	oneSentence = pattern(`(?i)\bone (?:sentence|line)\b`)
	shorter     = pattern(`(?i)\b(?:short(?:er)?|brief(?:ly|er)?|concise(?:ly)?|less)\b`)
	onlyThat    = pattern(`(?i)\b(?:only|just)\s+([^.,;!?\n]+)`)
	fillers     = pattern(`(?i)^(?:the|what|about|with|that|this|tell|show|give|names?|part|and|in|one|sentences?|bullets?|points|short|brief|list|me|for|please|are|is|you)$`)
)

func styleOf(words string) style {
	s := style{bullets: inBullets().MatchString(words)}
	if shorter().MatchString(words) {
		s.most = 3
	}
	if oneSentence().MatchString(words) {
		s.most = 1
	}
	if m := onlyThat().FindStringSubmatch(words); m != nil {
		for w := range strings.FieldsSeq(m[1]) {
			if w = strings.Trim(w, "`\"'()"); len(w) > 2 && !fillers().MatchString(w) {
				s.only = append(s.only, w)
			}
		}
	}
	return s
}

func (s style) isSet() bool { return s.bullets || s.most > 0 || len(s.only) > 0 }

// apply shapes points: sentences, list items ("- …") and code blocks ("```…"); "" begins a paragraph.
func (s style) apply(points []string) string {
	if len(s.only) > 0 {
		points = s.filter(points)
	}
	if s.most > 0 {
		var kept []string
		for _, p := range points {
			if p != "" && len(kept) < s.most {
				kept = append(kept, p)
			}
		}
		points = kept
	}
	var b strings.Builder
	gap := "" // what stands before the next point
	for _, p := range points {
		own := strings.HasPrefix(p, "- ") || strings.HasPrefix(p, "```")
		switch {
		case p == "":
			if b.Len() > 0 {
				gap = "\n\n"
			}
			continue
		case s.bullets && !own:
			p, own = "- "+p, true
		}
		if own && b.Len() > 0 && gap != "\n\n" {
			gap = "\n"
		}
		b.WriteString(gap)
		b.WriteString(p)
		gap = " "
		if own {
			gap = "\n"
		}
	}
	return b.String()
}

func (s style) filter(points []string) []string {
	var out []string
	for _, p := range points {
		for _, w := range s.only {
			if p != "" && strings.Contains(strings.ToLower(p), stem(w)) {
				out = append(out, p)
				break
			}
		}
	}
	if out == nil {
		return []string{"Nothing in what I found mentions " + strings.Join(s.only, " or ") + "."}
	}
	return out
}

// stem is what the forms of an English word mostly share: "stopping", "stops" and "stopped" give "stop".
func stem(w string) string {
	w = strings.ToLower(w)
	for _, suffix := range []string{"ing", "ed", "s"} {
		if t, ok := strings.CutSuffix(w, suffix); ok && len(t) > 2 {
			if n := len(t); suffix != "s" && t[n-1] == t[n-2] {
				t = t[:n-1]
			}
			return t
		}
	}
	return w
}
