package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"fermata/agent"
	"fermata/agent/model"
	"fermata/agent/model/chat"
	"fermata/tools"
	"fermata/tools/watch"
	"fermata/transcript"
)

// app is what every subcommand is given: the flags, and what follows from them. Nothing is read, opened or started
// before a subcommand asks for it, so that `fermata lsp` can answer at once. Its methods may be called from any
// goroutine once the flags are parsed.
type app struct {
	in       *os.File
	out, err *os.File

	// The flags. Empty means not given.
	flagModel     string
	flagConfig    string
	flagData      string
	flagWorkspace string
	flagYes       bool
	flagMode      string
	flagVerbose   bool

	settings func() (*settings, error) // once; the config file is read here
	fault    func(place string)        // of [transcript.Options]; nil but in tests

	mu        sync.Mutex
	store     *transcript.Store
	providers map[string]model.Provider
}

func newApp() *app {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, providers: map[string]model.Provider{}}
	a.settings = sync.OnceValues(a.readSettings)
	return a
}

// addTurnFlags adds the flags of the subcommands that run turns.
func (a *app) addTurnFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.flagModel, "model", "m", "", "model to use, as provider/model")
	cmd.Flags().StringVar(&a.flagMode, "mode", "", "permission mode: "+strings.Join(modeNames(), ", "))
	cmd.Flags().BoolVarP(&a.flagYes, "yes", "y", false, "let tools change files and run commands without asking: --mode trust")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(modeNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// configFile is the path of the config file, whether it exists or not.
func (a *app) configFile() (path string, err error) {
	if a.flagConfig != "" {
		return filepath.Abs(a.flagConfig)
	}
	return configPath()
}

func (a *app) readSettings() (*settings, error) {
	path, err := a.configFile()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range tools.All() {
		names = append(names, t.Name)
	}
	c, err := readConfig(path, a.flagConfig != "", names)
	if err != nil {
		return nil, err
	}
	mode, err := a.mode()
	if err != nil {
		return nil, err
	}
	s, err := resolve(c, a.flagModel, mode, environment)
	if err == nil {
		s.policy.Protected = a.protected()
	}
	return s, err
}

// workspace is the root that --workspace names, else the current folder: absolute, and without symbolic links, so that
// one folder has one name.
func (a *app) workspace() (string, error) {
	dir := a.flagWorkspace
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("find the workspace: %w", err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("the workspace %s is not a folder", tilde(real))
	}
	return real, nil
}

// stateDir makes the folder for files that editors open and for logs (0700), and returns its path.
func (a *app) stateDir() (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the state folder: %w", err)
	}
	return dir, nil
}

// databasePath is where the database is, whether it exists or not.
func (a *app) databasePath() (string, error) {
	dir := a.flagData
	if dir == "" {
		var err error
		if dir, err = dataDir(); err != nil {
			return "", err
		}
	}
	abs, err := filepath.Abs(dir)
	return filepath.Join(abs, "fermata.db"), err
}

// openStore opens the database for running turns, and makes it when there is none. The second call returns the same.
// close closes it.
func (a *app) openStore() (*transcript.Store, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.openStoreWith(transcript.Options{Version: versionString(), Power: s.config.Durability == "power"})
}

// errNoDatabase means that no conversation was ever recorded here.
var errNoDatabase = errors.New("nothing is recorded yet; start with: fermata ask")

// readStore opens the database for reading only. It is [errNoDatabase] when there is none. It needs no valid config. One
// of an earlier version is brought up to date first.
func (a *app) readStore() (*transcript.Store, error) {
	path, err := a.databasePath()
	if err != nil {
		return nil, err
	}
	if !(&repair{path: path}).exists() {
		return nil, errNoDatabase
	}
	o := transcript.Options{Version: versionString()}
	store, err := a.openStoreWith(transcript.Options{Version: o.Version, ReadOnly: true})
	if !errors.Is(err, transcript.ErrOlder) {
		return store, err
	}
	if store, err = transcript.Open(path, o); err == nil { // brings it up to date
		err = store.Close()
	}
	if err != nil {
		return nil, err
	}
	return a.openStoreWith(transcript.Options{Version: o.Version, ReadOnly: true})
}

func (a *app) openStoreWith(o transcript.Options) (*transcript.Store, error) {
	path, err := a.databasePath()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store != nil {
		return a.store, nil
	}
	o.Fault = a.fault
	a.store, err = transcript.Open(path, o)
	return a.store, err
}

// close closes what was opened.
func (a *app) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil {
		return nil
	}
	err := a.store.Close()
	a.store = nil
	return err
}

// newAgent makes the agent that runs turns for a client. maxSteps and the policy come from the settings.
func (a *app) newAgent(client agent.Client, log *slog.Logger) (*agent.Agent, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	store, err := a.openStore()
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Options{
		Store:    store,
		Models:   a.model,
		Client:   client,
		Tools:    tools.All(),
		More:     s.mcpServers(log),
		Policy:   s.policy,
		Secrets:  s.keyVariables(),
		Sandbox:  s.config.Run.sandbox(a.protected()),
		Log:      log,
		Watcher:  watch.New(log),
		Checks:   s.checks(),
		MaxSteps: s.config.Limits.MaxSteps,
		Retry:    agent.Retry{Tries: s.config.Limits.Tries},
	}), nil
}

// model gives the model of a name as users write it, provider/model; "" is the configured one. Providers are made when
// first used and keep their connections. A name that is not configured is a [model.ErrNoModel].
func (a *app) model(name string) (agent.Model, error) {
	s, err := a.settings()
	if err != nil {
		return agent.Model{}, err
	}
	if name == "" {
		name = s.model
	}
	if err := checkModelName(name, s.config); err != nil {
		return agent.Model{}, fmt.Errorf("%w: %w", model.ErrNoModel, err)
	}
	providerName, modelName := splitModel(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.providers[providerName]
	if !ok {
		if p, err = a.newProvider(s.provider(providerName, environment)); err != nil {
			return agent.Model{}, err
		}
		a.providers[providerName] = p
	}
	return agent.Model{Provider: p, ProviderName: providerName, Name: modelName}, nil
}

func (a *app) newProvider(p provider) (model.Provider, error) {
	if p.kind == kindRehearsal {
		return newRehearsal(environment)
	}
	if err := checkBaseURL(p.baseURL); err != nil {
		return nil, fmt.Errorf("provider %s: its address %w", p.name, err)
	}
	file, err := a.configFile()
	if err != nil {
		return nil, err
	}
	return chat.New(chat.Options{
		Name:        p.name,
		Kind:        p.kind,
		BaseURL:     p.baseURL,
		Key:         newKeySource(p, file).Key,
		IdleTimeout: p.idle,
	})
}

// logger writes to w: everything with --verbose, else only what is a problem.
func (a *app) logger(w io.Writer) *slog.Logger {
	level := slog.LevelWarn
	if a.flagVerbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// newestSession is the session of the workspace that was used last, "" when there is none.
func newestSession(ctx context.Context, store *transcript.Store, workspace string) (transcript.SessionID, error) {
	list, _, err := store.Sessions(ctx, transcript.SessionQuery{Workspace: workspace, Limit: 1})
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].ID, nil
}
