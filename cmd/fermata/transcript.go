package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fermata/transcript"
)

func newTranscriptCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "transcript [SESSION]",
		Short:             "Print a conversation as markdown; by default the newest of this workspace",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, names []string) error {
			store, err := a.readStore()
			if err != nil {
				return err
			}
			id, err := a.chosenSession(cmd.Context(), store, names)
			if err != nil {
				return err
			}
			info, err := store.Session(cmd.Context(), id)
			if errors.Is(err, transcript.ErrNoSession) {
				return fmt.Errorf("%w: %s; fermata sessions --all lists them", transcript.ErrNoSession, printable(string(id)))
			}
			if err != nil {
				return err
			}
			entries, said, err := store.News(cmd.Context(), id, transcript.Place{}) // also what a process that was killed had been told
			if err != nil {
				return err
			}
			if asJSON {
				return writeEntriesJSON(a.out, entries)
			}
			var text bytes.Buffer
			if _, err := transcript.Markdown(&text, info, entries); err != nil {
				return err
			}
			if err := transcript.MarkdownSaid(&text, said); err != nil {
				return err
			}
			return a.printText(text.Bytes())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the entries as JSON")
	return cmd
}

// chosenSession is the session that the arguments name, else the newest of this workspace.
func (a *app) chosenSession(ctx context.Context, store *transcript.Store, names []string) (transcript.SessionID, error) {
	if len(names) > 0 {
		return transcript.SessionID(names[0]), nil
	}
	workspace, err := a.workspace()
	if err != nil {
		return "", err
	}
	id, err := newestSession(ctx, store, workspace)
	if err == nil && id == "" {
		err = fmt.Errorf("there is no session in %s yet: name one of fermata sessions --all", tilde(workspace))
	}
	return id, err
}

// printText writes a text that models and tools had a part in: on a terminal without what would act on it.
func (a *app) printText(text []byte) error {
	if term.IsTerminal(int(a.out.Fd())) {
		_, err := io.WriteString(a.out, printable(string(text)))
		return err
	}
	_, err := a.out.Write(text)
	return err
}

type entryJSON struct {
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at"`
	Kind    transcript.Kind `json:"kind,omitzero"`
	Body    transcript.Body `json:"body,omitzero"`
	Damaged string          `json:"damaged,omitzero"`
	Hash    string          `json:"hash"`
}

func writeEntriesJSON(w io.Writer, entries []transcript.Entry) error {
	out := make([]entryJSON, len(entries))
	for i, e := range entries {
		out[i] = entryJSON{e.Seq, e.At, e.Kind(), e.Body, e.Damaged, hex.EncodeToString(e.Hash[:])}
	}
	return writeJSON(w, out)
}
