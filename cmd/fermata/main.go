// Command fermata runs LLM agent turns with file tools, for editors and in the terminal, and keeps every conversation so
// that stopping one loses nothing.
//
// This package is the wiring: flags, environment and the config file become an [app], and each subcommand, one file each,
// takes from it what it needs. What a stop keeps, what a model is sent and what is recorded is decided below, in agent
// and transcript; nothing here knows SQL, a wire protocol or a model's dialect.
//
// A subcommand returns an error instead of printing it; main prints it once and chooses the exit code: 0 done, 1 failed
// machinery, 2 wrong usage, 3 a turn that was stopped, 4 a turn that failed. No subcommand ends the process itself, so
// that what is open is closed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOther   = 1
	exitUsage   = 2
	exitStopped = 3
	exitFailed  = 4
)

// exit is an error that has its own exit code. Its err is nil when all was said already.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage makes an error of a wrong command line.
func usage(format string, args ...any) error { return &exit{exitUsage, fmt.Errorf(format, args...)} }

func main() { os.Exit(newApp().run(os.Args[1:])) }

// run runs a command line and returns the exit code.
func (a *app) run(args []string) int {
	log.SetOutput(io.Discard) // net/http tells there what a server sent unasked, and that can repeat a key (M6)
	root := newRootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if closing := a.close(); err == nil {
		err = closing
	}
	return report(a.err, err)
}

// report prints an error once, each of its lines marked, and returns the exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code := exitOther
	if e, ok := errors.AsType[*exit](err); ok {
		if code = e.code; e.err == nil {
			return code
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintln(w, "fermata: "+printable(line))
	}
	return code
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "fermata",
		Short: "Run LLM agent turns that can be stopped without losing anything",
		Long: "fermata runs LLM agent turns with file tools, for editors and in the terminal. It keeps every conversation, and what\n" +
			"was shown when you stop an answer stays, word for word, in what the model reads next.",
		Example: "  fermata ask \"what does this package do?\"\n" +
			"  fermata ask --continue \"and its tests?\"\n" +
			"  fermata input            what the model was sent last\n" +
			"  fermata doctor           whether all is set up",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
				hint = fmt.Sprintf(" (did you mean %q?)", s[0])
			}
			return usage("there is no command %q%s: see fermata help", args[0], hint)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%v: see %s --help", err, cmd.CommandPath())
	})
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)

	flags := root.PersistentFlags()
	flags.StringVar(&a.flagConfig, "config", "", "config file (default "+defaultFor(configPath())+")")
	flags.StringVar(&a.flagData, "data", "", "folder of the database (default "+defaultFor(dataDir())+")")
	flags.StringVarP(&a.flagWorkspace, "workspace", "w", "", "folder to work in (default the current one)")
	flags.BoolVarP(&a.flagVerbose, "verbose", "v", false, "say more on stderr")

	root.AddCommand(
		newAskCommand(a),
		newRetryCommand(a),
		newKeepCommand(a),
		newLSPCommand(a),
		newModelCommand(),
		newSessionsCommand(a),
		newTranscriptCommand(a),
		newInputCommand(a),
		newResendCommand(a),
		newForkCommand(a),
		newRenameCommand(a),
		newDeleteCommand(a),
		newChangesCommand(a),
		newRevertCommand(a),
		newStatsCommand(a),
		newVerifyCommand(a),
		newRepairCommand(a),
		newRecheckCommand(a),
		newPermissionsCommand(a),
		newDoctorCommand(a),
		newVersionCommand(a),
	)
	return root
}

// defaultFor is a default path as the help shows it.
func defaultFor(path string, err error) string {
	if err != nil {
		return "unknown here"
	}
	return tilde(path)
}

// args wraps one of cobra's checks of the number of arguments, so that it counts as wrong usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage("%v: see %s --help", err, cmd.CommandPath())
		}
		return nil
	}
}
