package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fermata/agent/model"
	"fermata/transcript"
)

func newInputCommand(a *app) *cobra.Command {
	var raw, parts, diff bool
	cmd := &cobra.Command{
		Use:   "input [REQUEST]",
		Short: "Show exactly what a model was sent; by default the newest request of this workspace",
		Long: "input shows the body of a request to a model, made again from the log, and whether it is the very one that was sent:\n" +
			"its SHA-256 is compared with the one taken then.",
		Example: "  fermata input                 the newest request, readable\n" +
			"  fermata input --raw | sha256sum\n" +
			"  fermata input --diff          what is new in it",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeRequests,
		RunE: func(cmd *cobra.Command, names []string) error {
			store, err := a.readStore()
			if err != nil {
				return err
			}
			id, err := a.chosenRequest(cmd.Context(), store, names)
			if err != nil {
				return err
			}
			in, err := store.Input(cmd.Context(), id)
			if err != nil {
				return explainRequest(err, id)
			}
			if raw {
				_, err = a.out.Write(in.Body) // to a terminal too: exact is what was asked for
			} else {
				var text bytes.Buffer
				v := inputView{in: in, style: styleOf(a.out, environment), lost: a.unsendable(cmd.Context(), store, in)}
				switch {
				case parts:
					v.parts(&text)
				case diff:
					v.header(&text)
					v.diff(&text)
				default:
					v.header(&text)
					text.Write(indentJSON(in.Body))
					text.WriteByte('\n')
				}
				_, err = io.WriteString(a.out, text.String())
			}
			if err == nil && !in.Verified {
				err = fmt.Errorf("the body of request %s is not the one that was sent: run fermata verify", id)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the exact bytes and nothing else")
	cmd.Flags().BoolVar(&parts, "parts", false, "list what it is made of and where each part came from")
	cmd.Flags().BoolVar(&diff, "diff", false, "show what differs from the request before")
	cmd.MarkFlagsMutuallyExclusive("raw", "parts", "diff")
	return cmd
}

// chosenRequest is the request that the arguments name, else the newest of this workspace.
func (a *app) chosenRequest(ctx context.Context, store *transcript.Store, names []string) (transcript.RequestID, error) {
	if len(names) > 0 {
		return transcript.RequestID(names[0]), nil
	}
	workspace, err := a.workspace()
	if err != nil {
		return "", err
	}
	id, err := store.NewestRequest(ctx, "", workspace)
	if errors.Is(err, transcript.ErrNoRequest) || err == nil && id == "" {
		return "", fmt.Errorf("no model was asked in %s yet: name a request of another session", tilde(workspace))
	}
	return id, err
}

// unsendable says for answers in the input, by seq, what of them is not in it (T2).
func (a *app) unsendable(ctx context.Context, store *transcript.Store, in *transcript.Input) map[int64][]string {
	dialect, err := dialectByName(in.Info.Dialect)
	if err != nil {
		return nil
	}
	messages, err := store.Messages(ctx, in.Info.ID)
	if err != nil {
		return nil // a damaged log is verify's business
	}
	return model.Unsendable(dialect, messages)
}

// inputView writes a model input for people. All it writes is printable.
type inputView struct {
	in    *transcript.Input
	style style
	lost  map[int64][]string // what is not sendable, by the seq of its entry
}

func (v *inputView) header(w io.Writer) {
	in, r := v.in, v.in.Info
	badge := v.style.pick("✓ ", "ok ") + "sha256 " + in.SHA256 + ", as sent"
	if !in.Verified {
		now := sha256.Sum256(in.Body)
		badge = v.style.bad(v.style.pick("✗ ", "NOT VERIFIED ") + "sha256 " + in.SHA256 + " was sent, but this is " + hex.EncodeToString(now[:]))
	}
	fmt.Fprintf(w, "%s  %s\n", v.style.bold("request "+string(r.ID)), badge)
	fmt.Fprintf(w, "%s, model %s, %s\n", oneLine(r.Route, 0), oneLine(r.Model, 0), r.At.Local().Format(time.DateTime))
	fmt.Fprintf(w, "session %s, turn %s, step %d, try %d, epoch %d\n", r.Session, r.Turn, r.Step, r.Try, r.Epoch)
	line := fmt.Sprintf("%d bytes, %s; ", r.Bytes, plural(r.N, "message"))
	switch {
	case r.Outcome == "":
		line += "not ended"
	case r.Status != 0:
		line += fmt.Sprintf("%s, HTTP %d, %s", r.Outcome, r.Status, time.Duration(r.Millis)*time.Millisecond)
	default:
		line += fmt.Sprintf("%s, %s", r.Outcome, time.Duration(r.Millis)*time.Millisecond)
	}
	if r.Error != "" {
		line += ": " + oneLine(r.Error, 0)
	}
	if u := r.Usage; u != nil {
		line += fmt.Sprintf("; tokens in %d (cached %d), out %d", u.Input, u.Cached, u.Output)
	}
	fmt.Fprintln(w, line)
	for _, p := range in.Parts {
		for _, why := range v.lost[p.Source] {
			fmt.Fprintln(w, v.style.warn(fmt.Sprintf("entry %d: %s", p.Source, oneLine(why, 0))))
		}
	}
	fmt.Fprintln(w)
}

// parts lists what the body is made of.
func (v *inputView) parts(w io.Writer) {
	fmt.Fprintf(w, "%9s %9s  %-10s %6s  %-22s  %s\n", "offset", "length", "role", "entry", "turn", "begins")
	for _, p := range v.in.Parts {
		role, entry, turn := string(p.Role), "-", "-"
		if role == "" {
			role = p.Kind
		}
		if p.Source > 0 {
			entry = fmt.Sprint(p.Source)
		}
		if p.Turn != "" {
			turn = string(p.Turn)
		}
		fmt.Fprintf(w, "%9d %9d  %-10s %6s  %-22s  %s\n", p.Offset, p.Length, role, entry, turn, firstWords(v.bytes(p)))
		for _, why := range v.lost[p.Source] {
			fmt.Fprintf(w, "%64s%s\n", "", v.style.warn(oneLine(why, 0)))
		}
	}
}

// diff shows what is new against the request before.
func (v *inputView) diff(w io.Writer) {
	in := v.in
	if in.Previous == "" {
		fmt.Fprintln(w, "There is no request before it in its session: all of it is new. See it without --diff.")
		return
	}
	fmt.Fprintf(w, "The first %d of %d bytes are those of request %s.\n", in.SharedPrefix, len(in.Body), in.Previous)
	added := 0
	for _, p := range in.Parts {
		if p.Role == "" || p.Offset+p.Length <= in.SharedPrefix {
			continue
		}
		added++
		fmt.Fprintf(w, "\n+ %s, entry %d, %d bytes\n", p.Role, p.Source, p.Length)
		text := indentJSON(v.bytes(p))
		fmt.Fprintf(w, "  %s\n", bytes.ReplaceAll(text, []byte("\n"), []byte("\n  ")))
	}
	if added == 0 {
		fmt.Fprintln(w, "No message was added: what differs is around them.")
	}
}

func (v *inputView) bytes(p transcript.InputPart) []byte {
	end := min(p.Offset+p.Length, int64(len(v.in.Body)))
	return v.in.Body[min(p.Offset, end):end]
}

// indentJSON is JSON for people; what is no JSON stays as it is. Control characters are gone.
func indentJSON(b []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, bytes.Trim(b, ", \n"), "", "  ") != nil {
		return []byte(printable(string(b)))
	}
	return []byte(printable(out.String()))
}

// firstWords is how a part begins: the text of a message, the name of its first call, else the bytes.
func firstWords(b []byte) string {
	const n = 60
	var m struct {
		Content   any `json:"content"`
		ToolCalls []struct {
			Function struct{ Name, Arguments string } `json:"function"`
		} `json:"tool_calls"`
	}
	if json.Unmarshal(bytes.Trim(b, ", \n"), &m) == nil {
		if text, ok := m.Content.(string); ok && strings.TrimSpace(text) != "" {
			return oneLine(text, n)
		}
		if len(m.ToolCalls) > 0 {
			return oneLine("calls "+m.ToolCalls[0].Function.Name+" "+m.ToolCalls[0].Function.Arguments, n)
		}
	}
	return oneLine(string(b[:min(len(b), 4*n)]), n)
}
