package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tools"
)

// Bounds of an answer, in bytes, as those of a command's output.
const (
	outputHead = 16 << 10
	outputTail = 16 << 10
	outputFull = 4 << 20
)

// resultOf is a server's answer as the model reads it.
func resultOf(r *sdk.CallToolResult) tools.Result {
	if r.InputRequests != nil {
		return failf("it asks for input from the user, which fermata does not give it: it has not done what was asked")
	}
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, textOf(c))
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if b, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, plain(string(b)))
		}
	}
	res := tools.Result{State: tools.Done}
	if r.IsError {
		res.State = tools.Failed
	}
	res.Output, res.Full = cut(strings.TrimSuffix(strings.Join(parts, "\n"), "\n"))
	return res
}

// textOf is a piece of an answer as text; what is none is named.
func textOf(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return plain(c.Text)
	case *sdk.ImageContent:
		return fmt.Sprintf("(an image, %s, %d bytes: not shown)", readable(c.MIMEType, 100), len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("(sound, %s, %d bytes: not shown)", readable(c.MIMEType, 100), len(c.Data))
	case *sdk.ResourceLink:
		var text strings.Builder
		text.WriteString("(a link to " + readable(c.URI, 1000))
		for _, more := range []string{c.Name, c.Description} {
			if more = readable(more, 500); more != "" {
				text.WriteString(": " + more)
			}
		}
		return text.String() + ")"
	case *sdk.EmbeddedResource:
		switch r := c.Resource; {
		case r == nil:
			return "(an empty resource)"
		case r.Blob != nil:
			return fmt.Sprintf("(the resource %s, %s, %d bytes: not shown)", readable(r.URI, 1000), readable(r.MIMEType, 100), len(r.Blob))
		default:
			return readable(r.URI, 1000) + ":\n" + plain(r.Text)
		}
	}
	return fmt.Sprintf("(content of a kind that fermata does not know: %T)", c)
}

// cut keeps the head and the tail of a long text, and all of it for people, up to outputFull bytes.
func cut(text string) (output string, full []byte) {
	if text == "" {
		return "(no output)", nil
	}
	if len(text) <= outputHead+outputTail {
		return text, nil
	}
	head, tail := outputHead, len(text)-outputTail
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for !utf8.RuneStart(text[tail]) {
		tail++
	}
	whole := text
	if len(whole) > outputFull {
		whole = strings.ToValidUTF8(whole[:outputFull], "")
		whole += fmt.Sprintf("\n(%d bytes more were not kept)\n", len(text)-len(whole))
	}
	return fmt.Sprintf("%s\n(… %d bytes left out …)\n%s", text[:head], tail-head, text[tail:]), []byte(whole)
}
