package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// decodeArgs reads a call's arguments into an A. Unknown fields are ignored; null counts as missing. Its errors say
// precisely what was wrong, for the model that wrote the arguments.
func decodeArgs[A any](args json.RawMessage, required []string) (a A, err error) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	if !utf8.Valid(args) {
		return a, errors.New("the arguments are not valid UTF-8")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(args, &fields); err != nil {
		return a, jsonError(args, err)
	}
	for _, name := range required {
		if v, ok := fields[name]; !ok || string(v) == "null" {
			return a, fmt.Errorf("the argument %q is missing", name)
		}
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return a, jsonError(args, err)
	}
	return a, nil
}

func jsonError(args []byte, err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return fmt.Errorf("the arguments are not a JSON object but a JSON %s", e.Value)
		}
		return fmt.Errorf("the argument %q is a JSON %s, which it must not be: it must be %s", e.Field, e.Value, typeWord(e.Type.Kind().String()))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(max(int(e.Offset), 0), len(args))
		near := strings.ToValidUTF8(string(args[max(0, at-40):at]), "")
		// encoding/json takes the end within an escape for a space
		inEscape := at == len(args) && strings.HasPrefix(e.Error(), "invalid character ' '") && !bytes.HasSuffix(args, []byte(" "))
		if inEscape || strings.Contains(e.Error(), "unexpected end") {
			return fmt.Errorf("the arguments are cut off: their JSON ends after %d bytes, at …%q", len(args), near)
		}
		return fmt.Errorf("the arguments are not valid JSON: %v at byte %d, after …%q", e, at, near)
	}
	return fmt.Errorf("the arguments cannot be read: %v", err)
}

func typeWord(kind string) string {
	switch kind {
	case "int":
		return "an integer"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// given is the value p points to, or def when the argument was left out.
func given[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}
