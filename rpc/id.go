package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.lsp.dev/jsonrpc2"
)

// numberMark begins the string id that stands for a number that no int64 holds: 1.5, 1e3, 2^70. jsonrpc2 knows no such
// ids; the response is written with the number as it was sent.
const numberMark = "\x00"

// markedID is how a response to such an id begins.
const markedID = `{"jsonrpc":"2.0","id":"\u0000`

// ParseID is the id that names a request in the params of $/cancelRequest.
func ParseID(raw json.RawMessage) (jsonrpc2.ID, error) {
	var n int64
	var str string
	switch {
	case json.Unmarshal(raw, &n) == nil && isNumber(raw):
		return jsonrpc2.NewNumberID(n), nil
	case isNumber(raw):
		return jsonrpc2.NewStringID(numberMark + string(raw)), nil
	case isID(raw) && json.Unmarshal(raw, &str) == nil:
		return jsonrpc2.NewStringID(str), nil
	}
	return jsonrpc2.ID{}, fmt.Errorf("%.40s is no id", raw)
}

// isID reports whether raw, which is JSON or empty, is a string or a number.
func isID(raw json.RawMessage) bool {
	return isNumber(raw) || len(raw) > 0 && raw[0] == '"'
}

func isNumber(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// restoreID turns the id of a response back into the number that it stands for, in place.
func restoreID(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte(markedID)) {
		return body
	}
	const quote = len(markedID) - len(`"\u0000`)
	number, rest, _ := bytes.Cut(body[len(markedID):], []byte(`"`))
	n := quote + copy(body[quote:], number)
	n += copy(body[n:], rest)
	return body[:n]
}
