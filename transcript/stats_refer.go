package transcript

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A message refers to an answer when it quotes it or asks for more of it. Both are decided so that a message that might be
// anything does not count (X2): what is asked about another thing in other words never does.
const (
	quotedWords   = 4
	quotedLetters = 20
	comparedWords = 5000 // of a message; nobody writes more by hand
)

// quotes reports whether a message repeats four words in a row, of 20 letters or more together, that are in the answer and
// not in the question. Case, space and punctuation do not count.
func quotes(message, answer, question string) bool {
	said := words(message)
	if len(said) > comparedWords {
		said = said[:comparedWords]
	}
	runs := map[string]bool{}
	for run := range wordRuns(said) {
		runs[run] = true
	}
	if len(runs) == 0 {
		return false
	}
	for run := range wordRuns(words(question)) {
		delete(runs, run)
	}
	for run := range wordRuns(words(answer)) {
		if runs[run] {
			return true
		}
	}
	return false
}

// wordRuns yields, for each word, the shortest run from it that has enough words and letters, joined by spaces.
func wordRuns(words []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		letters, end := 0, 0 // of the run that ends before end
		for i := range words {
			for end < len(words) && (end-i < quotedWords || letters < quotedLetters) {
				letters += utf8.RuneCountInString(words[end])
				end++
			}
			if end-i < quotedWords || letters < quotedLetters || !yield(strings.Join(words[i:end], " ")) {
				return
			}
			letters -= utf8.RuneCountInString(words[i])
		}
	}
}

// goings are whole messages, without "please", that ask for nothing but more.
var goings = []string{"go on", "go ahead", "continue", "keep going", "carry on", "proceed", "resume", "more"}

func goesOn(message string) bool {
	said := slices.DeleteFunc(words(message), func(w string) bool { return w == "please" })
	return len(said) > 0 && len(said) <= 2 && slices.Contains(goings, strings.Join(said, " "))
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// readMembers reads members of a stored body without decoding the rest of it: strings as their text, other values as their
// JSON. It stops at the first of want's members that are all found, and reports whether the body could be read so far.
func readMembers(body []byte, want map[string]*string) bool {
	if len(body) < 2 || body[0] != '{' || body[len(body)-1] != '}' {
		return false
	}
	found := 0
	for i := 1; i < len(body)-1; i++ {
		end := endOfString(body, i+1)
		if body[i] != '"' || end < 0 || end+1 >= len(body) || body[end+1] != ':' {
			return false
		}
		key, from := body[i+1:end], end+2
		if i = endOfValue(body, from); i <= from {
			return false
		}
		dst := want[string(key)]
		if dst == nil {
			continue
		}
		value := body[from:i]
		if value[0] == '"' {
			text, err := unescape(value[1 : len(value)-1])
			if err != nil {
				return false
			}
			value = text
		}
		*dst = string(value)
		if found++; found == len(want) {
			return true
		}
	}
	return true
}

// endOfValue is the index behind the JSON value that begins at i, -1 when it does not end.
func endOfValue(doc []byte, i int) int {
	depth := 0
	for i < len(doc) {
		switch doc[i] {
		case '"':
			end := endOfString(doc, i+1)
			if end < 0 {
				return -1
			}
			i = end
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		default:
			// Numbers and words: on to what can end them.
			if n := bytes.IndexAny(doc[i:], `"{}[],`); n > 0 {
				i += n - 1
			}
		}
		i++
	}
	return -1
}
