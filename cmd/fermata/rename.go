package main

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"fermata/transcript"
)

// maxTitle is the length of the longest title, in characters.
const maxTitle = 200

func newRenameCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "rename SESSION TITLE...",
		Short:             "Give a session another title; no model sees it",
		Example:           "  fermata rename s_0jv3k9q2 the parser, second attempt",
		Args:              args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, words []string) error {
			title := oneLine(strings.Join(words[1:], " "), 0)
			if title == "" || utf8.RuneCountInString(title) > maxTitle {
				return usage("a title has 1 to %d characters", maxTitle)
			}
			store, err := a.editStore()
			if err != nil {
				return err
			}
			return explainSession(store.Rename(cmd.Context(), transcript.SessionID(words[0]), title))
		},
	}
}
