package rehearsal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path"
	"regexp"
	"slices"
	"strings"
)

// answer is what one request is answered with.
type answer struct {
	reasoning, text string
	calls           []call
}

type call struct{ tool, args string }

// step is what a task needs next: calls with a word before them, or, without calls, the points of the answer.
type step struct {
	why    string // for the reasoning
	say    string
	calls  []call
	points []string
}

const introduction = "I am fermata's built-in rehearsal model, not an AI: I follow simple rules, so that you can try stopping and redirecting without a key."

// plan answers a request (deterministic: the request and the seed are all it looks at).
func plan(q *request, seed uint64) answer {
	notice, words := user(q.messages[q.last])
	revise := revises(notice)
	shape := styleOf(words)
	t, from := taskOf(words), q.last
	for again := revise; again && t.kind == ""; { // the new words shape what was asked before
		prev := q.userBefore(from)
		if prev < 0 {
			break
		}
		n, w := user(q.messages[prev])
		t, from, again = taskOf(w), prev, revises(n)
		if !shape.isSet() {
			shape = styleOf(w)
		}
	}
	s := q.next(t, q.results(from))
	var a answer
	a.calls = s.calls
	a.reasoning = s.why
	if q.steps == 0 {
		a.reasoning = pick(seed, words, "Let me see what is asked. ", "First, what do the words ask for? ", "I read the request again. ") + s.why
	}
	body := s.say
	if len(s.calls) == 0 {
		body = shape.apply(s.points)
	}
	a.text = strings.TrimSpace(strings.Join(q.opening(notice, words, revise), "\n\n") + "\n\n" + body)
	return a
}

// revises says whether a notice asks to revise what the model was stopped at (D3).
func revises(notice string) bool {
	return strings.Contains(notice, "first attempt") || strings.Contains(notice, "replaces the request")
}

// userBefore is the index of the user message before message i, or -1.
func (q *request) userBefore(i int) int {
	for i--; i >= 0; i-- {
		if q.messages[i].Role == "user" {
			return i
		}
	}
	return -1
}

// opening are the paragraphs before a turn's first words: who speaks, and what becomes of a stopped answer.
func (q *request) opening(notice, words string, revise bool) []string {
	if q.steps > 0 {
		return nil
	}
	var out []string
	if !q.spoke() {
		out = append(out, introduction)
	}
	attempt := ""
	if q.last > 0 && q.messages[q.last-1].Role == "assistant" {
		attempt = q.messages[q.last-1].Content
	}
	n := len(strings.Fields(attempt))
	spoken, stays := fmt.Sprintf("%d words", n), "they stay as they are"
	if n == 1 {
		spoken, stays = "one word", "it stays as it is"
	}
	switch {
	case revise && n > 0:
		out = append(out, fmt.Sprintf("Revised, because you stopped me after %s. I keep how I began: “%s” What changes: %s.",
			spoken, firstSentence(withoutIntroduction(attempt)), strings.TrimRight(oneLine(words, 160), ".!?")))
	case revise:
		out = append(out, fmt.Sprintf("Changed course, as you asked: %s.", strings.TrimRight(oneLine(words, 160), ".!?")))
	case strings.Contains(notice, "stopped") && n == 0:
		out = append(out, "You stopped me before I had said a word, and I go on with your new message.")
	case strings.Contains(notice, "stopped"):
		out = append(out, fmt.Sprintf("You stopped me after %s; %s, and I go on with your new message.", spoken, stays))
	}
	return out
}

// withoutIntroduction is an answer without who speaks, unless it says nothing else.
func withoutIntroduction(s string) string {
	return cmp.Or(strings.TrimSpace(strings.TrimPrefix(s, introduction)), s)
}

// next is the next step of a task, given the results of its calls so far.
func (q *request) next(t task, done []result) step {
	switch t.kind {
	case "find", "todo":
		return q.search(t, done)
	case "read", "explain":
		return q.read(t, done)
	case "survey":
		return q.survey(t, done)
	case "replace":
		return q.replace(t, done)
	case "run":
		return q.run(t, done)
	}
	return step{why: "None of my rules fits, so I say honestly what I can do.", points: helpPoints}
}

func (q *request) search(t task, done []result) step {
	tool := q.tool("grep", "search")
	what := "the places that say " + code(t.what)
	pattern := regexp.QuoteMeta(t.what)
	if t.kind == "todo" {
		what, pattern = "what is marked TODO or FIXME", t.what
	}
	if len(done) == 0 {
		if tool == "" {
			return lacks("grep", "search for "+what)
		}
		return step{
			why:   fmt.Sprintf("To find %s I search the text of all files with %s.", what, tool),
			say:   fmt.Sprintf("I look for %s.", what),
			calls: []call{{tool, q.args(tool, [][]string{{"pattern", "query"}}, pattern)}},
		}
	}
	return step{why: "The search came back. I count the matches and name the places.", points: searched(what, done[len(done)-1])}
}

func (q *request) read(t task, done []result) step {
	if t.attached != "" {
		return step{why: "The text is in the message itself: no tool is needed.", points: facts(t.path, t.attached)}
	}
	tool := q.tool("read_file", "read")
	if len(done) == 0 {
		if tool == "" {
			return lacks("read_file", "read "+t.path)
		}
		return step{
			why:   fmt.Sprintf("%s is a file: I read it before I say anything about it.", t.path),
			say:   fmt.Sprintf("I read %s.", code(t.path)),
			calls: []call{{tool, q.args(tool, [][]string{{"path", "file"}}, t.path)}},
		}
	}
	r := done[len(done)-1]
	text, ok := fileText(r)
	if !ok {
		return step{why: "The file could not be read.", points: notDone(r)}
	}
	points := facts(t.path, text)
	if t.kind == "read" {
		points = append(points, "", "It begins:", block(text, 12))
	}
	return step{why: "I have the file. I take what it says of itself, and count.", points: points}
}

func (q *request) survey(_ task, done []result) step {
	list, reader := q.tool("list_dir", "ls", "list_files"), q.tool("read_file", "read")
	switch {
	case list == "":
		return lacks("list_dir", "list the folder")
	case len(done) == 0:
		return step{
			why:   "To explain a repository I list it, then read what it says of itself.",
			say:   "I look at the folder first.",
			calls: []call{{list, q.args(list, [][]string{{"path", "dir"}}, ".")}},
		}
	case done[0].failed():
		return step{why: "The folder could not be listed.", points: notDone(done[0])}
	}
	var names []string
	for l := range strings.Lines(done[0].output) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "(") {
			names = append(names, l)
		}
	}
	if len(done) == 1 && reader != "" {
		var calls []call
		for _, n := range []string{"README.md", "README", "README.rst", "go.mod", "package.json", "Cargo.toml", "pyproject.toml"} {
			if slices.Contains(names, n) && len(calls) < 3 {
				calls = append(calls, call{reader, q.args(reader, [][]string{{"path", "file"}}, n)})
			}
		}
		if len(calls) > 0 {
			return step{why: fmt.Sprintf("The folder has %d names; these tell what it is.", len(names)), say: "I read what it says of itself.", calls: calls}
		}
	}
	return step{why: "I have what I need for a summary.", points: surveyed(names, done[1:])}
}

func (q *request) replace(t task, done []result) step {
	reader, edit := q.tool("read_file", "read"), q.tool("edit_file", "edit", "str_replace")
	switch {
	case reader == "" || edit == "":
		return lacks("edit_file", "change "+t.path)
	case len(done) == 0:
		return step{
			why:   "A file is read before it is changed.",
			say:   fmt.Sprintf("I read %s first.", code(t.path)),
			calls: []call{{reader, q.args(reader, [][]string{{"path", "file"}}, t.path)}},
		}
	case len(done) == 1:
		text, ok := fileText(done[0])
		if !ok {
			return step{why: "The file could not be read.", points: notDone(done[0])}
		}
		n := strings.Count(text, t.what)
		if n == 0 {
			return step{why: "The text is not in the file: nothing to change.", points: []string{
				fmt.Sprintf("%s does not hold %s, so I changed nothing.", code(t.path), code(t.what))}}
		}
		args := [][]string{{"path", "file"}, {"old", "old_string", "old_text"}, {"new", "new_string", "new_text"}}
		raw := q.args(edit, args, t.path, t.what, t.with)
		if n > 1 && strings.Contains(string(q.tools[edit]), `"replace_all"`) {
			raw = strings.TrimSuffix(raw, "}") + `,"replace_all":true}`
		}
		return step{
			why:   fmt.Sprintf("The text is there %s.", times(n)),
			say:   fmt.Sprintf("It holds %s %s. I replace it by %s.", code(t.what), times(n), code(t.with)),
			calls: []call{{edit, raw}},
		}
	}
	r := done[len(done)-1]
	return step{why: "The edit came back. I say what it says.", points: []string{
		fmt.Sprintf("%s answered about %s:", r.tool, code(t.path)), block(r.output, 10)}}
}

func (q *request) run(t task, done []result) step {
	tool := q.tool("run", "bash", "shell", "run_command")
	if len(done) == 0 {
		if tool == "" {
			return lacks("run", "run "+code(t.what))
		}
		return step{
			why:   "A command is to be run. It may need permission.",
			say:   fmt.Sprintf("I run %s.", code(t.what)),
			calls: []call{{tool, q.args(tool, [][]string{{"command", "cmd"}}, t.what)}},
		}
	}
	r := done[len(done)-1]
	return step{why: "The command came back.", points: []string{
		fmt.Sprintf("%s came back with %s:", code(t.what), counted(lines(r.output), "line")), block(r.output, 15)}}
}

func lacks(tool, purpose string) step {
	return step{why: "I would need a tool that this request does not offer.", points: []string{
		fmt.Sprintf("I would %s, but this request offers no %s tool.", purpose, tool)}}
}

// args makes the JSON arguments of a call: each value under the first of its names that the tool's schema has.
func (q *request) args(tool string, names [][]string, values ...string) string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(q.tools[tool], &schema) // a schema that cannot be read names nothing
	var b strings.Builder
	for i, v := range values {
		name := names[i][0]
		for _, n := range names[i] {
			if _, ok := schema.Properties[n]; ok {
				name = n
				break
			}
		}
		value, _ := json.Marshal(v) // a string always encodes
		fmt.Fprintf(&b, ",%q:%s", name, value)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func pick(seed uint64, words string, from ...string) string {
	h := fnv.New64a()
	fmt.Fprint(h, seed, words)
	return from[h.Sum64()%uint64(len(from))]
}

func code(s string) string { return "`" + s + "`" }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func baseName(p string) string { return path.Base(strings.ReplaceAll(p, `\`, "/")) }
