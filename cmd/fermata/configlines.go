package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// lineIndex knows at which line each key of a TOML document stands, in the document's order.
type lineIndex []keyLine

type keyLine struct {
	key  []string
	line int
}

// indexLines indexes a document, up to where it stops being TOML.
func indexLines(data []byte) lineIndex {
	var (
		x      lineIndex
		p      unstable.Parser
		prefix []string
	)
	p.Reset(data)
	var walk func(prefix []string, n *unstable.Node)
	walk = func(prefix []string, n *unstable.Node) {
		key, line := keyOf(&p, n)
		full := append(slices.Clone(prefix), key...)
		x = append(x, keyLine{full, line})
		if n.Kind != unstable.KeyValue || n.Value().Kind != unstable.InlineTable {
			return
		}
		for it := n.Value().Children(); it.Next(); {
			walk(full, it.Node())
		}
	}
	for p.NextExpression() {
		n := p.Expression()
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			prefix = nil
			walk(nil, n)
			prefix, _ = keyOf(&p, n)
		case unstable.KeyValue:
			walk(prefix, n)
		}
	}
	return x
}

func keyOf(p *unstable.Parser, n *unstable.Node) (key []string, line int) {
	for it := n.Key(); it.Next(); {
		key = append(key, string(it.Node().Data))
		if line == 0 {
			line = p.Shape(it.Node().Raw).Start.Line
		}
	}
	return key, line
}

// line is the line of a key, of the nearest table above it that is there, or 1.
func (x lineIndex) line(key ...string) int {
	for ; len(key) > 0; key = key[:len(key)-1] {
		for _, k := range x {
			if len(k.key) >= len(key) && slices.Equal(k.key[:len(key)], key) {
				return k.line
			}
		}
	}
	return 1
}

// element is the line of a key in the nth table, from 0, of an array of tables, or of that table where it has no such key.
func (x lineIndex) element(array string, n int, key string) int {
	line := x.line(array)
	for _, k := range x {
		switch {
		case len(k.key) == 1 && k.key[0] == array:
			if n--; n == -1 {
				line = k.line
			}
		case n == -1 && slices.Equal(k.key, []string{array, key}):
			return k.line
		}
	}
	return line
}

func (x lineIndex) has(key ...string) bool {
	return slices.ContainsFunc(x, func(k keyLine) bool { return slices.Equal(k.key, key) })
}

// keyAt is the last key that begins at or before a line; nil when none does.
func (x lineIndex) keyAt(line int) []string {
	var key []string
	for _, k := range x {
		if k.line <= line {
			key = k.key
		}
	}
	return key
}

// children are the names right below a table, each once, in the document's order.
func (x lineIndex) children(table string) []string {
	var names []string
	for _, k := range x {
		if len(k.key) >= 2 && k.key[0] == table && !slices.Contains(names, k.key[1]) {
			names = append(names, k.key[1])
		}
	}
	return names
}

// unknownKey is the message for a key that config does not have.
func unknownKey(key []string) string {
	for i := range key {
		if fieldType(key[:i+1]) == nil {
			key = key[:i+1] // a table that is unknown is, not what stands in it
			break
		}
	}
	last := key[len(key)-1]
	valid := validKeys(key[:len(key)-1])
	switch strings.ToLower(strings.ReplaceAll(last, "-", "_")) {
	case "key", "api_key", "apikey", "token", "api_token", "secret", "password":
		if len(key) > 2 {
			return fmt.Sprintf("%q: a key does not belong in a file; name the variable that holds it (key_env = \"…\") or a program that prints it (key_command = [\"…\"])", last)
		}
	}
	where := ""
	if len(key) > 1 {
		where = fmt.Sprintf(" in [%s]", strings.Join(key[:len(key)-1], "."))
	}
	hint := didYouMean(last, valid)
	if hint == "" && len(valid) > 0 {
		hint = "; there are: " + strings.Join(valid, ", ")
	}
	return fmt.Sprintf("unknown key %q%s%s", last, where, hint)
}

// validKeys are the keys that config has in a table, in its order.
func validKeys(table []string) []string {
	t := fieldType(table)
	if t != nil && t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for f := range t.Fields() {
		if tag := f.Tag.Get("toml"); tag != "" {
			keys = append(keys, tag)
		}
	}
	return keys
}

// fieldType is the Go type of a key of config, nil when there is no such key.
func fieldType(key []string) reflect.Type {
	t := reflect.TypeFor[config]()
	for _, k := range key {
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct { // an array of tables
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			var next reflect.Type
			for f := range t.Fields() {
				if f.Tag.Get("toml") == k {
					next = f.Type
				}
			}
			if next == nil {
				return nil
			}
			t = next
		default:
			return nil
		}
	}
	return t
}

// decodeProblem is the message for a document that does not decode: not TOML at all, or a value of the wrong type. The
// value itself is not repeated; it could be a key.
func decodeProblem(err *toml.DecodeError, key []string) string {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	if k := err.Key(); len(k) > 0 {
		key = k
	}
	t := fieldType(key)
	if t == nil || !strings.Contains(text, "cannot decode ") && !strings.Contains(text, "cannot store ") {
		return "this is not TOML: " + text
	}
	want := map[reflect.Kind]string{
		reflect.String: "a text in quotes",
		reflect.Int:    "a whole number",
		reflect.Bool:   "true or false",
		reflect.Slice:  "a list of texts, like [\"a\", \"b\"]",
		reflect.Map:    "a table",
		reflect.Struct: "a table",
	}[t.Kind()]
	name := strings.Join(key, ".")
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		want = "tables, each under a line [[" + name + "]]"
	}
	return fmt.Sprintf("%s must be %s", name, want)
}

// didYouMean is a hint at the word of a list that is nearest to what was written, "" when none is near.
func didYouMean(written string, words []string) string {
	best, word := max(len(written)/3, 1)+1, ""
	for _, w := range words {
		if d := distance(strings.ToLower(written), w); d < best {
			best, word = d, w
		}
	}
	if word == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", word)
}

// distance is the number of inserted, removed, replaced and swapped bytes between two words.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
