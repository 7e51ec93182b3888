package permit

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
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
	c := parseCommand(text, plain)
	if c.unsure {
		c.names = append(c.names, roughNames(text, plain)...)
	}
	return c
}

func parseCommand(text string, plain bool) command {
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
			c.addPart(known(n.Args))
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
	for i, w := range c.words {
		if i == 0 && strings.ContainsAny(w, "@=/+") { // cmd.exe may take a part of it for the program
			c.unsure = true
		}
		if strings.ContainsFunc(w, func(r rune) bool { return !plainWord(r) }) {
			return command{not: "its words are not all plain letters, digits and dashes", unsure: true}
		}
	}
	if len(c.words) == 0 {
		return command{not: "it is empty", unsure: true}
	}
	c.addPart(c.words)
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
	"stdbuf", "setsid", "busybox", "find", "ionice", "chroot", "unshare", "parallel", "watch", "coproc", "toybox", "flock",
	"taskset", "chrt", "strace", "ltrace", "runuser", "pkexec", "setpriv", "nsenter", "bwrap", "systemd-run", "caffeinate",
	"fakeroot", "start", "call"}

// readers are programs that read commands out of a text or a file.
var readers = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "eval", "source", ".", "alias", "trap", "busybox",
	"parallel", "watch", "su", "ssh", "script", "csh", "tcsh", "mksh", "yash", "rbash", "at", "batch", "toybox",
	"cmd", "powershell", "pwsh", "wsl", "forfiles"}

// program is the name of a program without its folder, and without what systems ignore in it.
func program(word string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(word, `\`, "/")))
	for _, end := range []string{".exe", ".com", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// appends are assignments of shells that know more than POSIX; what follows one is the command.
var appends = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+=`)

// known gives words, those that are only known when the command runs as unknown.
func known(args []*syntax.Word) (words []string) {
	for _, w := range args {
		text, why := literal(w)
		if why != "" {
			text = unknown
		}
		words = append(words, text)
	}
	return words
}

func (c *command) addPart(words []string) {
	for len(words) > 0 && appends.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	c.parts = append(c.parts, words)
	first := program(words[0])
	for i, w := range words {
		switch {
		case i > 0 && w == "." && first != "command" && first != "builtin": // a folder
		case w == unknown, slices.Contains(readers, program(w)):
			c.unsure = true
		case i > 0 && first != "find" && strings.ContainsAny(w, " \t\n"): // it may be a command in one word
			c.unsure = true
		case first == "env" && (strings.HasPrefix(w, "--s") || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, "S")):
			c.unsure = true // it splits what follows into words
		}
		if !slices.Contains(runners, first) {
			break // what follows are arguments
		}
	}
}

// addNames collects what in a word could name a file.
func (c *command) addNames(w *syntax.Word) {
	if text, why := literal(w); why == "" {
		c.names = append(c.names, fileNames(text)...)
		return
	}
	text := spelled(w.Parts)
	for i, piece := range strings.Split(text, unknown) {
		c.names = append(c.names, fileNames(piece)...)
		if i > 0 && strings.HasPrefix(piece, "/") { // what stands before it may be the home folder
			c.names = append(c.names, "~"+piece)
		}
	}
	c.names = append(c.names, globNames(text)...)
}

// spelled is a word as far as it is known, without quotes and backslashes; unknown stands for what the shell replaces.
func spelled(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(strings.ReplaceAll(part.Value, "\\\n", ""), `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			b.WriteString(spelled(part.Parts))
		default:
			b.WriteString(unknown)
		}
	}
	return b.String()
}

// globbed are names that a pattern of the shell may stand for.
var globbed = func() []string {
	names := []string{".git", ".ssh", ".aws", ".kube", ".docker", ".gnupg", ".azure", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
	for _, s := range secretFiles {
		if !strings.ContainsAny(s, "*/") {
			names = append(names, s)
		}
	}
	return names
}()

// globNames are the guarded names that a word with a pattern of the shell could become. A pattern that says less than two
// letters of how a name begins is about all files rather than about these.
func globNames(word string) (names []string) {
	if len(word) > 4096 || !strings.ContainsAny(word, "*?[{") {
		return nil
	}
	parts := strings.Split(word, "/")
	for i, part := range parts {
		if strings.IndexAny(part, "*?[{") < 2 {
			continue
		}
		for _, name := range globbed {
			if doublestar.MatchUnvalidated(part, name) {
				names = append(names, strings.Join(slices.Concat(parts[:i], []string{name}, parts[i+1:]), "/"))
			}
		}
	}
	return names
}

// fileNames are the names that a word could hold: itself, what stands between and after any of "=:@," in it, and what an option
// of one letter is followed by.
func fileNames(word string) []string {
	const suffixes = 8 // each is as long as the word
	names := []string{word}
	if len(word) > 2 && word[0] == '-' && word[1] != '-' {
		names = append(names, word[2:])
	}
	start, found := 0, 0
	for i, r := range word {
		if !strings.ContainsRune("=:@,", r) {
			continue
		}
		if found++; found <= suffixes {
			names = append(names, word[i+1:])
		}
		if i > start {
			names = append(names, word[start:i])
		}
		start = i + 1
	}
	if found > suffixes && start < len(word) {
		names = append(names, word[start:])
	}
	return names
}

// roughNames are what could name a file in a text that is not read as the shell will read it.
func roughNames(text string, plain bool) []string {
	if plain {
		text = strings.ReplaceAll(text, `\`, "/")
	} else {
		text = strings.ReplaceAll(text, `\`, "")
	}
	return strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Cf) && !strings.ContainsRune("_./~-+%", r)
	})
}

// Names are what in a command could name a file, as it stands there.
func Names(text string) []string { return readCommand(text, false).names }

// beginsWith reports whether it is one simple command that begins with these words.
func (c command) beginsWith(words []string) bool {
	return c.not == "" && len(words) > 0 && len(words) <= len(c.words) && slices.Equal(c.words[:len(words)], words)
}

// mentions reports whether any command within it begins with these words, also by the path of the program, behind options,
// or as the argument of a program that runs others; maybe, whether it could, by what is only known when it runs.
func (c command) mentions(words []string) (yes, maybe bool) {
	if len(words) == 0 {
		return false, false
	}
	for _, part := range c.parts {
		starts := 1
		if slices.Contains(runners, program(part[0])) {
			starts = len(part)
		}
		for i := range starts {
			is, could := begins(part[i:], words)
			if maybe = maybe || could; is {
				return true, maybe
			}
		}
	}
	return false, maybe
}

// begins reports whether have begins with words, options between them left aside: "git -C x push" begins with "git push".
// A word behind an option may belong to it.
func begins(have, words []string) (yes, maybe bool) {
	if program(have[0]) != program(words[0]) {
		return false, false
	}
	met := make([]bool, len(words)+1) // how many of words may have been met
	met[1] = true
	for i := 1; i < len(have) && !met[len(words)] && slices.Contains(met, true); i++ {
		if have[i] == unknown {
			maybe = true
		}
		option := func(word string) bool { return strings.HasPrefix(word, "-") }
		aside := option(have[i]) || i > 1 && option(have[i-1])
		for n := len(words) - 1; n > 0; n-- {
			met[n+1] = met[n+1] || met[n] && have[i] == words[n]
			met[n] = met[n] && aside
		}
	}
	return met[len(words)], maybe
}

// opaque reports whether rules that deny or ask about commands may be about one that cannot be read.
func (p Policy) opaque(c command) bool {
	return c.unsure && p.hasCommandRule(Deny, Ask) || slices.ContainsFunc(p.Rules, func(r Rule) bool {
		if r.Command == "" || r.Decision == Allow {
			return false
		}
		_, maybe := c.mentions(readCommand(r.Command, false).words)
		return maybe
	})
}
