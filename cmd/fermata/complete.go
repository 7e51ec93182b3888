package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fermata/transcript"
)

// completeSessions completes a session id: those of this workspace, newest first, with their titles. A completion never
// fails: where it knows nothing it offers nothing.
func (a *app) completeSessions(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if len(given) > 0 {
		return nil, directive
	}
	workspace, err := a.workspace()
	if err != nil {
		return nil, directive
	}
	store, err := a.readStore()
	if err != nil {
		return nil, directive
	}
	list, _, err := store.Sessions(cmd.Context(), transcript.SessionQuery{Workspace: workspace, Limit: 50})
	if err != nil {
		return nil, directive
	}
	var out []string
	for _, s := range list {
		if strings.HasPrefix(string(s.ID), begun) {
			out = append(out, cobra.CompletionWithDesc(string(s.ID), ago(s.Updated, time.Now())+": "+oneLine(s.Title, 50)))
		}
	}
	return out, directive
}

// completeRequests completes a request id: those of this workspace's newest session, newest first.
func (a *app) completeRequests(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if len(given) > 0 {
		return nil, directive
	}
	store, err := a.readStore()
	if err != nil {
		return nil, directive
	}
	session, err := a.chosenSession(cmd.Context(), store, nil)
	if err != nil {
		return nil, directive
	}
	requests, err := store.Requests(cmd.Context(), session)
	if err != nil {
		return nil, directive
	}
	var out []string
	for i := len(requests) - 1; i >= 0; i-- {
		if r := requests[i]; strings.HasPrefix(string(r.ID), begun) {
			out = append(out, cobra.CompletionWithDesc(string(r.ID), fmt.Sprintf("step %d, %s, %s", r.Step, r.Model, r.Outcome)))
		}
	}
	return out, directive
}

// completeTurns completes a turn by its number: those of the session that is named, else of this workspace's newest, with
// what was asked.
func (a *app) completeTurns(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	store, err := a.readStore()
	if err != nil {
		return nil, directive
	}
	session, err := a.chosenSession(cmd.Context(), store, given)
	if err != nil {
		return nil, directive
	}
	turns, err := turnsOf(cmd.Context(), store, session)
	if err != nil {
		return nil, directive
	}
	var out []string
	for i, t := range turns {
		if n := fmt.Sprint(i + 1); strings.HasPrefix(n, begun) {
			out = append(out, cobra.CompletionWithDesc(n, oneLine(t.PromptText(), 50)))
		}
	}
	return out, directive
}
