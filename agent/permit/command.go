package permit

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// commandBound is the length in bytes up to which a command is read; no rule can allow a longer one.
const commandBound = 64 << 10

// unknown stands for a word that is only known when the command runs.
const unknown = "\x00"

// command is what can be told of a command before it runs.
type command struct {
	// words are those of the one simple command that it is, quotes removed: a program and its arguments, nothing that the
	// shell replaces, redirects or runs besides. not says why it is not that; words is then nil.
	words []string
	not   string

	parts  [][]string // the words of each simple command within it, some of them unknown
	names  []string   // what of it could name a file
	unsure bool       // there may be commands in it that are not among parts
}

// read is readCommand for the policy's shell.
func (p Policy) read(text string) command { return readCommand(text, p.PlainWords) }

// readCommand reads a command as a POSIX shell does. plain is for another shell: a word with any character that could
// mean something to one makes it no simple command.
func readCommand(text string, plain bool) command {
	switch {
	case text == "":
		return command{}
	case len(text) > commandBound:
		return command{not: "it is too long", unsure: true}
	case !utf8.ValidString(text):
		return command{not: "it is not UTF-8", unsure: true}
	case plain:
		return readPlain(text)
	case strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }):
		return command{not: "it has control or invisible characters", unsure: true}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return command{not: "it is not a command that a POSIX shell reads", unsure: true}
	}
	var c command
	c.words, c.not = simple(file)
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			c.addPart(n)
		case *syntax.Word:
			c.addNames(n)
		case *syntax.FuncDecl:
			c.unsure = true
		}
		return true
	})
	return c
}

// plainWord are the characters that mean themselves to every shell.
func plainWord(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(`_./\:=+@-`, r))
}

func readPlain(text string) command {
	c := command{words: strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })}
	for _, w := range c.words {
		if strings.ContainsFunc(w, func(r rune) bool { return !plainWord(r) }) {
			return command{not: "its words are not all plain letters, digits and dashes", unsure: true}
		}
	}
	if len(c.words) == 0 {
		return command{not: "it is empty", unsure: true}
	}
	c.parts = [][]string{c.words}
	for _, w := range c.words {
		c.names = append(c.names, fileNames(strings.ReplaceAll(w, `\`, "/"))...)
	}
	return c
}

// simple gives the words of a file that is one simple command.
func simple(file *syntax.File) (words []string, not string) {
	switch {
	case len(file.Stmts) == 0:
		return nil, "it is empty"
	case len(file.Stmts) > 1:
		return nil, "it is more than one command"
	case len(file.Last) > 0:
		return nil, "it has a comment"
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	switch {
	case len(s.Comments) > 0:
		return nil, "it has a comment"
	case len(s.Redirs) > 0:
		return nil, "it redirects input or output"
	case s.Background || s.Coprocess || s.Disown:
		return nil, "it runs in the background"
	case s.Semicolon.IsValid():
		return nil, "it is more than one command"
	case s.Negated || !ok:
		return nil, "it is a compound command"
	case len(call.Assigns) > 0:
		return nil, "it sets variables"
	case len(call.Args) == 0:
		return nil, "it is empty"
	}
	for _, w := range call.Args {
		word, why := literal(w)
		if why != "" {
			return nil, why
		}
		words = append(words, word)
	}
	return words, ""
}

// literal is the text of a word that the shell takes as it stands; why says what else it does with it.
func literal(w *syntax.Word) (text, why string) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			switch {
			case strings.ContainsAny(part.Value, "$`"):
				return "", "it replaces variables or commands"
			case strings.Contains(part.Value, `\`):
				return "", "it has a backslash"
			case strings.ContainsAny(part.Value, "*?[]{}") || i == 0 && strings.HasPrefix(part.Value, "~"):
				return "", "it has a pattern that the shell replaces by names"
			}
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", "it has a quoted text with escapes"
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return "", "it has a quoted text with escapes"
			}
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				switch {
				case !ok || strings.ContainsAny(lit.Value, "$`"):
					return "", "it replaces variables or commands"
				case strings.Contains(lit.Value, `\`):
					return "", "it has a backslash"
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", "it replaces variables or commands"
		}
	}
	return b.String(), ""
}

// runners are programs that run what stands in their arguments.
var runners = []string{"sudo", "doas", "env", "nice", "nohup", "time", "timeout", "xargs", "command", "exec", "builtin",
	"stdbuf", "setsid", "busybox", "find", "ionice", "chroot", "unshare", "parallel", "watch"}

// readers are programs that read commands out of a text or a file.
var readers = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "eval", "source", ".", "alias", "trap", "busybox",
	"parallel", "watch", "su", "ssh", "script"}

func (c *command) addPart(call *syntax.CallExpr) {
	var words []string
	for _, w := range call.Args {
		text, why := literal(w)
		if why != "" {
			text = unknown
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return
	}
	c.parts = append(c.parts, words)
	for _, w := range words {
		first := path.Base(w)
		if w == unknown || slices.Contains(readers, first) {
			c.unsure = true
		}
		if !slices.Contains(runners, path.Base(words[0])) {
			break // what follows are arguments
		}
	}
}

// addNames collects what in a word could name a file.
func (c *command) addNames(w *syntax.Word) {
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			c.names = append(c.names, fileNames(lit.Value)...)
		}
	}
	if text, why := literal(w); why == "" && len(w.Parts) > 0 {
		c.names = append(c.names, fileNames(text)...)
	}
}

// fileNames are the names that a word could hold: itself, and what follows a "=", ":" or "@" in it.
func fileNames(word string) []string {
	names := []string{word}
	for i, r := range word {
		if r == '=' || r == ':' || r == '@' {
			names = append(names, word[i+1:])
		}
	}
	return names
}

// Names are what in a command could name a file, as it stands there.
func Names(text string) []string { return readCommand(text, false).names }

// beginsWith reports whether it is one simple command that begins with these words.
func (c command) beginsWith(words []string) bool {
	return c.not == "" && len(words) > 0 && len(words) <= len(c.words) && slices.Equal(c.words[:len(words)], words)
}

// mentions reports whether any command within it begins with these words, also by the path of the program, or as the
// argument of a program that runs others.
func (c command) mentions(words []string) bool {
	if len(words) == 0 {
		return false
	}
	at := func(have []string) bool {
		return len(words) <= len(have) && path.Base(have[0]) == path.Base(words[0]) && slices.Equal(have[1:len(words)], words[1:])
	}
	for _, part := range c.parts {
		if at(part) {
			return true
		}
		if !slices.Contains(runners, path.Base(part[0])) {
			continue
		}
		for i := range part {
			if at(part[i:]) {
				return true
			}
		}
	}
	return false
}

// opaque reports whether rules that deny or ask about commands may be about one that cannot be read.
func (p Policy) opaque(c command) bool { return c.unsure && p.hasCommandRule(Deny, Ask) }
