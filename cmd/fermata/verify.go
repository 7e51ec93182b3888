package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fermata/transcript"
)

func newVerifyCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that everything recorded is as it was written",
		Long: "verify reads the whole database and checks every entry's hash, every turn's end, and that each request is still\n" +
			"byte for byte what was sent. It exits with 1 and names the first bad entry when something is wrong.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.readStore()
			if errors.Is(err, errNoDatabase) && !asJSON {
				fmt.Fprintln(a.out, "nothing is recorded yet")
				return nil
			}
			if err != nil {
				return err
			}
			report, err := store.Verify(cmd.Context(), encoderByName)
			if err != nil {
				return err
			}
			if asJSON {
				if err := writeVerifyJSON(a, report); err != nil {
					return err
				}
			} else {
				writeVerify(a, report)
			}
			if len(report.Problems) == 0 {
				return nil
			}
			return fmt.Errorf("%s; the first is %s", plural(len(report.Problems), "problem"), problemText(report.Problems[0]))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func encoderByName(name string) (transcript.Encoder, bool) {
	d, err := dialectByName(name)
	return d, err == nil
}

func writeVerify(a *app, r transcript.VerifyReport) {
	st := styleOf(a.out, environment)
	for _, p := range r.Problems {
		fmt.Fprintln(a.out, st.bad(problemText(p)))
	}
	verdict := "all is as it was written"
	if len(r.Problems) > 0 {
		verdict = plural(len(r.Problems), "problem")
	}
	fmt.Fprintf(a.out, "%s, %s, %s, %s, %s, %s, %d bytes: %s\n", plural(r.Sessions, "session"), plural(r.Turns, "turn"),
		plural(r.Entries, "entry"), plural(r.Requests, "request"), plural(r.Fragments, "fragment"), plural(r.Blobs, "blob"), r.Bytes, verdict)
	if r.Unencoded > 0 {
		fmt.Fprintf(a.out, "%d requests are of a dialect that this version does not know; their bytes were checked, their encoding was not\n", r.Unencoded)
	}
	for _, id := range r.Running {
		fmt.Fprintf(a.out, "session %s runs a turn now\n", id)
	}
	for _, id := range r.Open {
		fmt.Fprintf(a.out, "session %s has a turn that was cut off; it is closed when the session is used next\n", id)
	}
}

// problemText names what is bad and where.
func problemText(p transcript.Problem) string {
	where := "the database"
	switch {
	case p.Session != "" && p.Seq > 0:
		where = fmt.Sprintf("session %s entry %d", p.Session, p.Seq)
	case p.Session != "":
		where = fmt.Sprintf("session %s", p.Session)
	}
	if p.Request != "" {
		where += fmt.Sprintf(" (request %s)", p.Request)
	}
	return where + ": " + oneLine(p.What, 0)
}

type problemJSON struct {
	Session transcript.SessionID `json:"session,omitzero"`
	Seq     int64                `json:"seq,omitzero"`
	Request transcript.RequestID `json:"request,omitzero"`
	What    string               `json:"what"`
}

func writeVerifyJSON(a *app, r transcript.VerifyReport) error {
	problems := make([]problemJSON, len(r.Problems))
	for i, p := range r.Problems {
		problems[i] = problemJSON{p.Session, p.Seq, p.Request, p.What}
	}
	return writeJSON(a.out, struct {
		OK        bool          `json:"ok"`
		Sessions  int           `json:"sessions"`
		Turns     int           `json:"turns"`
		Entries   int           `json:"entries"`
		Requests  int           `json:"requests"`
		Fragments int           `json:"fragments"`
		Blobs     int           `json:"blobs"`
		Bytes     int64         `json:"bytes"`
		Unencoded int           `json:"unencoded"`
		Problems  []problemJSON `json:"problems"`
	}{len(problems) == 0, r.Sessions, r.Turns, r.Entries, r.Requests, r.Fragments, r.Blobs, r.Bytes, r.Unencoded, problems})
}
