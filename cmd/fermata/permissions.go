package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/workspace"
)

func newPermissionsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "permissions",
		Short: "Show what tools may do without asking",
		Long: "permissions shows the permission mode, what each mode does, and the rules of your config. permissions test says what\n" +
			"would become of a command or a file.",
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			s, err := a.settings()
			if err != nil {
				return err
			}
			return showPermissions(a.out, s.policy)
		},
	}
	cmd.PersistentFlags().StringVar(&a.flagMode, "mode", "", "as if this were the mode: "+strings.Join(modeNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(modeNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	cmd.AddCommand(newPermissionsTestCommand(a))
	return cmd
}

func newPermissionsTestCommand(a *app) *cobra.Command {
	var tool string
	cmd := &cobra.Command{
		Use:   "test COMMAND|PATH",
		Short: "Say what would become of a command, or with --tool of a file",
		Example: "  fermata permissions test 'go test ./... && git push'\n" +
			"  fermata permissions test --tool edit_file docs/index.md",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, words []string) error {
			s, err := a.settings()
			if err != nil {
				return err
			}
			c, err := a.callOf(tool, words[0])
			if err != nil {
				return err
			}
			d := s.policy.Decide(c, permit.Grants{})
			fmt.Fprintf(a.out, "%s: %s\n", d.Verdict, printable(d.Why))
			return nil
		},
	}
	cmd.Flags().StringVar(&tool, "tool", "run", "the tool that is used")
	return cmd
}

// callOf is a tool's call about a command or a path of the workspace.
func (a *app) callOf(name, what string) (permit.Call, error) {
	t, ok := tools.Lookup(name)
	if !ok {
		var names []string
		for _, t := range tools.All() {
			names = append(names, t.Name)
		}
		return permit.Call{}, usage("there is no tool %q: it is one of %s", name, strings.Join(names, ", "))
	}
	root, err := a.workspace()
	if err != nil {
		return permit.Call{}, err
	}
	w, err := workspace.Open(root, nil)
	if err != nil {
		return permit.Call{}, err
	}
	defer w.Close()
	c := permit.Call{Tool: t.Name, ReadOnly: t.ReadOnly, Root: w.RealRoot()}
	if name == "run" {
		args, err := json.Marshal(map[string]string{"command": what})
		return t.Ask(w, args), err
	}
	path, err := w.Resolve(what)
	if err != nil {
		return c, err
	}
	c.Paths = []string{path}
	return c, nil
}

// modeTable is what each mode does; the README has it too.
var modeTable = [][]string{
	{"mode", "reads", "reads a secret file", "changes a file", "runs a command", "changes .git or fermata's own"},
	{"read-only", "yes", "asks", "no", "no", "no"},
	{"ask", "yes", "asks", "asks", "asks", "no"},
	{"edit", "yes", "asks", "yes", "asks", "no"},
	{"trust", "yes", "asks", "yes", "yes", "no"},
}

func showPermissions(out io.Writer, p permit.Policy) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range modeTable {
		mark := " "
		if row[0] == string(p.Mode) {
			mark = "*"
		}
		fmt.Fprintln(w, mark+" "+strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, v := range []permit.Verdict{permit.Deny, permit.Ask, permit.Allow} { // as they decide
		for _, r := range p.Rules {
			if r.Decision == v {
				fmt.Fprintln(out, printable(r.String()))
			}
		}
	}
	if len(p.Rules) == 0 {
		fmt.Fprintln(out, "There are no rules.")
	}
	for _, list := range []struct {
		what     string
		patterns []string
	}{{"also secret", p.Secrets}, {"not secret", p.NotSecrets}} {
		if len(list.patterns) > 0 {
			fmt.Fprintln(out, printable(list.what+": "+strings.Join(list.patterns, ", ")))
		}
	}
	if p.TrustSecrets {
		fmt.Fprintln(out, "Mode trust is about secret files too.")
	}
	return nil
}
