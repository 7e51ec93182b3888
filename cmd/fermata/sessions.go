package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"fermata/transcript"
)

func newSessionsCommand(a *app) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions [WORDS]",
		Short: "List the sessions of this workspace, newest first",
		Long:  "sessions lists the sessions of this workspace, newest first; with --all those of every workspace. WORDS keep only sessions that mention them.",
		Args:  args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			q := transcript.SessionQuery{}
			if len(words) > 0 {
				q.Query = words[0]
			}
			if !all {
				workspace, err := a.workspace()
				if err != nil {
					return err
				}
				q.Workspace = workspace
			}
			list, err := a.listSessions(cmd, q)
			if err != nil {
				return err
			}
			if asJSON {
				return writeSessionsJSON(a.out, list)
			}
			switch {
			case len(list) > 0:
			case q.Query != "":
				fmt.Fprintf(a.err, "no session mentions %q\n", oneLine(q.Query, 72))
			default:
				fmt.Fprintln(a.err, "no sessions here yet; fermata ask begins one, fermata sessions --all lists other workspaces'")
			}
			return writeSessions(a.out, styleOf(a.out, environment), list, all, time.Now())
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "sessions of every workspace")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listSessions reads all pages of a query; none when nothing was ever recorded.
func (a *app) listSessions(cmd *cobra.Command, q transcript.SessionQuery) ([]transcript.SessionInfo, error) {
	store, err := a.readStore()
	if errors.Is(err, errNoDatabase) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []transcript.SessionInfo
	for {
		page, next, err := store.Sessions(cmd.Context(), q)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" {
			return all, nil
		}
		q.Cursor = next
	}
}

func writeSessions(w io.Writer, st style, list []transcript.SessionInfo, withWorkspace bool, now time.Time) error {
	for _, s := range list {
		turns := plural(s.Turns, "turn")
		outcome := string(s.LastOutcome)
		if s.LastOutcome == "" {
			outcome = "open"
		}
		title := oneLine(s.Title, 72)
		if title == "" {
			title = "(nothing asked yet)"
		}
		line := fmt.Sprintf("%s  %-16s  %-9s  %-9s  %s", s.ID, ago(s.Updated, now), turns, outcome, title)
		if withWorkspace {
			line += "  " + st.dim(oneLine(tilde(s.Workspace), 0))
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// ago is a time as people say it; the date when that is shorter.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return t.Local().Format("2006-01-02 15:04")
}

type sessionJSON struct {
	Session   transcript.SessionID `json:"session"`
	Workspace string               `json:"workspace"`
	Title     string               `json:"title"`
	Parent    transcript.SessionID `json:"parent,omitzero"`
	Created   time.Time            `json:"created"`
	Updated   time.Time            `json:"updated"`
	Turns     int                  `json:"turns"`
	Outcome   transcript.Outcome   `json:"outcome,omitzero"`
	Seq       int64                `json:"seq"`
}

func writeSessionsJSON(w io.Writer, list []transcript.SessionInfo) error {
	out := make([]sessionJSON, len(list))
	for i, s := range list {
		out[i] = sessionJSON{s.ID, s.Workspace, s.Title, s.Parent, s.Created, s.Updated, s.Turns, s.LastOutcome, s.Seq}
	}
	return writeJSON(w, out)
}

// writeJSON prints a value for programs, indented for people.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
