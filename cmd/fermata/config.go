package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pelletier/go-toml/v2"
)

// config is the user's config file, read and validated. Its zero value is the one of a user without a file. It never
// comes from a workspace: what is checked out must not decide which program runs or which address gets a key.
type config struct {
	Model       string                    `toml:"model"`      // provider/model; "" is decided by [settings]
	Durability  string                    `toml:"durability"` // "normal" or "power" (C6)
	Providers   map[string]providerConfig `toml:"providers"`
	Limits      limitsConfig              `toml:"limits"`
	Permissions permissionsConfig         `toml:"permissions"`
	Checks      []checkConfig             `toml:"check"`
	Run         runConfig                 `toml:"run"`
	MCP         []mcpConfig               `toml:"mcp"`

	path  string   // "" when there is no file
	order []string // names of Providers as the file has them
}

type providerConfig struct {
	Kind       string   `toml:"kind"`
	BaseURL    string   `toml:"base_url"`
	KeyEnv     string   `toml:"key_env"`
	KeyCommand []string `toml:"key_command"`
}

type limitsConfig struct {
	MaxSteps    int    `toml:"max_steps"`    // model requests a turn; 0 is the agent's own limit
	Tries       int    `toml:"tries"`        // of a model request that fails in passing; 0 is the agent's own number
	IdleTimeout string `toml:"idle_timeout"` // a Go duration; "" is the provider's own
}

// problem is something wrong in a config file, at a line.
type problem struct {
	path string
	line int
	text string
}

func (p problem) Error() string { return fmt.Sprintf("%s:%d: %s", tilde(p.path), p.line, p.text) }

// problems are all that is wrong in a config file, by line.
type problems []problem

func (ps problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// readConfig reads the file at path. A file that does not exist is an empty config unless it was named by the user. What
// is wrong in a file comes back as [problems], all of it at once.
func readConfig(path string, named bool, toolNames []string) (*config, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return &config{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the config: %w", err)
	}
	return parseConfig(path, data, toolNames)
}

// parseConfig is pure: path is only for the messages.
func parseConfig(path string, data []byte, toolNames []string) (*config, error) {
	c := &config{path: path}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // a byte order mark, as some editors on Windows write
	d := toml.NewDecoder(bytes.NewReader(data))
	err := d.DisallowUnknownFields().Decode(c)

	v := validator{path: path, lines: indexLines(data)}
	if missing, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for _, e := range missing.Errors {
			line, _ := e.Position()
			v.add(line, unknownKey(e.Key()))
		}
	} else if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := wrong.Position()
		v.add(line, decodeProblem(wrong, v.lines.keyAt(line)))
		return nil, v.found
	} else if err != nil {
		return nil, fmt.Errorf("read the config %s: %w", tilde(path), err)
	}
	c.order = v.lines.children("providers")
	v.config(c, toolNames)
	if len(v.found) > 0 {
		slices.SortStableFunc(v.found, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
		return nil, v.found
	}
	return c, nil
}

// validator collects what is wrong with the values of a config that decoded.
type validator struct {
	path  string
	lines lineIndex
	found problems
}

func (v *validator) add(line int, text string) {
	if p := (problem{v.path, max(line, 1), text}); !slices.Contains(v.found, p) {
		v.found = append(v.found, p)
	}
}

// at reports a problem of the value of a key.
func (v *validator) at(key []string, format string, args ...any) {
	v.add(v.lines.line(key...), fmt.Sprintf(format, args...))
}

// oneOf checks a value that is a word of a list; an absent one is fine.
func (v *validator) oneOf(value string, words []string, key ...string) {
	if value == "" && !v.lines.has(key...) || slices.Contains(words, value) {
		return
	}
	v.at(key, "%s is %q, which is not one of %s%s", key[len(key)-1], value, strings.Join(words, ", "), didYouMean(value, words))
}

func (v *validator) config(c *config, toolNames []string) {
	v.oneOf(c.Durability, []string{"normal", "power"}, "durability")
	for _, name := range c.order {
		v.provider(name, c.Providers[name])
	}
	if v.lines.has("model") {
		if err := checkModelName(c.Model, c); err != nil {
			v.at([]string{"model"}, "%v", err)
		}
	}
	if v.lines.has("limits", "max_steps") && c.Limits.MaxSteps < 1 {
		v.at([]string{"limits", "max_steps"}, "max_steps is %d; it must be 1 or more", c.Limits.MaxSteps)
	}
	if v.lines.has("limits", "tries") && c.Limits.Tries < 1 {
		v.at([]string{"limits", "tries"}, "tries is %d; it must be 1 (never try again) or more", c.Limits.Tries)
	}
	if v.lines.has("limits", "idle_timeout") {
		if d, err := time.ParseDuration(c.Limits.IdleTimeout); err != nil || d <= 0 {
			v.at([]string{"limits", "idle_timeout"}, "idle_timeout is %q, which is no duration; write it like \"120s\" or \"5m\"", c.Limits.IdleTimeout)
		}
	}
	v.checks(c)
	v.run(c.Run)
	v.mcp(c)
	v.permissions(c.Permissions, slices.Concat(toolNames, c.namedMCPTools()))
}

func (v *validator) provider(name string, p providerConfig) {
	table := []string{"providers", name}
	key := func(k string) []string { return []string{"providers", name, k} }
	if name == "" || strings.ContainsAny(name, "/ \t\r\n") {
		v.at(table, "a provider cannot be called %q: models are written provider/model", name)
	}
	switch k, ok := kinds[p.Kind]; {
	case p.Kind == "" && !v.lines.has(key("kind")...):
		if _, known := kinds[name]; !known {
			v.at(table, "provider %q has no kind; add one of: %s", name, strings.Join(kindNames(), ", "))
		}
	case !ok:
		v.oneOf(p.Kind, kindNames(), key("kind")...)
	case k.baseURL == "" && p.BaseURL == "" && p.Kind != kindRehearsal:
		v.at(table, "provider %q has no base_url, and kind %q has no default", name, p.Kind)
	}
	if v.lines.has(key("base_url")...) {
		if err := checkBaseURL(p.BaseURL); err != nil {
			v.at(key("base_url"), "base_url %v", err)
		}
	}
	if p.KeyEnv != "" && len(p.KeyCommand) > 0 {
		v.at(key("key_command"), "provider %q has both key_env and key_command; keep one", name)
	}
	if strings.ContainsFunc(p.KeyEnv, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		v.at(key("key_env"), "key_env must be the name of an environment variable, not the key itself")
	}
	if v.lines.has(key("key_command")...) && (len(p.KeyCommand) == 0 || p.KeyCommand[0] == "") {
		v.at(key("key_command"), "key_command is empty; write the program and its arguments, like [\"pass\", \"show\", %q]", name)
	}
}

// checkBaseURL says what is wrong with an address. A user name or a query in it is refused: they hold keys, and the
// address goes to the log (M6). What could be a key is not repeated.
func checkBaseURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is no URL") // the parser's own message repeats the address
	case u.User != nil, strings.Contains(u.Opaque, "@"): // name:password@host without http:// in front
		return errors.New("holds a user name or password; use key_env or key_command")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("must not have a query or a fragment")
	case u.Scheme == "" && !strings.ContainsAny(s, ".:/"):
		return errors.New("is no address; it must begin with https:// or http://")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("is %q; it must begin with https:// or http://", s)
	case u.Host == "":
		return fmt.Errorf("is %q, which names no host", s)
	}
	return nil
}

// checkModelName says what is wrong with a model as users write it: provider/model.
func checkModelName(name string, c *config) error {
	if name == kindRehearsal {
		return nil
	}
	provider, rest, _ := strings.Cut(name, "/")
	names := providerNames(c)
	if !slices.Contains(names, provider) {
		if !strings.Contains(name, "/") {
			return fmt.Errorf("model %q names no provider; write provider/model, with one of the providers %s", name, strings.Join(names, ", "))
		}
		return fmt.Errorf("model %q names the provider %q, which is not configured%s; there are: %s", name, provider, didYouMean(provider, names), strings.Join(names, ", "))
	}
	if rest == "" {
		return fmt.Errorf("model %q names no model; write %s/ and the model's name", name, provider)
	}
	return nil
}
