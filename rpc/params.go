package rpc

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
)

// Decode decodes params into a pointer to a struct; absent params are an empty object. Members that v does not have are
// ignored. An error is an invalid-params error that names the field, e.g. "prompt[0].text: expected string, got number".
// Half of a surrogate pair is U+FFFD: JavaScript's strings hold such halves, and a document with one must not be lost.
// What is decoded owns its bytes.
func Decode(params []byte, v any) error {
	if len(params) == 0 {
		return nil
	}
	err := json.Unmarshal(params, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return BadParam("params", "%v", err)
	}
	got := kindName(e.JSONKind)
	if e.Err != nil && len(e.JSONValue) > 0 {
		got = string(e.JSONValue)
	}
	if e.GoType == nil || expected(e.GoType) == "" {
		return BadParam(fieldPath(e.JSONPointer), "%v", cause(e))
	}
	return BadParam(fieldPath(e.JSONPointer), "expected %s, got %s", expected(e.GoType), got)
}

func cause(e *json.SemanticError) error {
	if e.Err != nil {
		return e.Err
	}
	return e
}

// BadParam is an error about one field of the params.
func BadParam(path, format string, args ...any) error {
	return jsonrpc2.NewError(jsonrpc2.InvalidParams, path+": "+fmt.Sprintf(format, args...))
}

// Encode is the JSON of a result. A string that is not UTF-8 is made so.
func Encode(v any) (jsonrpc2.RawMessage, error) {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	return b, err
}

// fieldPath is a pointer as people write it: prompt[0].text.
func fieldPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			fmt.Fprintf(&b, "[%s]", token)
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	if b.Len() == 0 {
		return "params"
	}
	return b.String()
}

// expected is the JSON type that a Go type is decoded from, "" when it is not plain.
func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return expected(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer of at least 0"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return ""
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 't', 'f':
		return "boolean"
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return k.String()
}
