package main

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"fermata/agent/permit"
)

// kindRehearsal is the built-in model that needs no network and no key, and also the name of its provider.
const kindRehearsal = "rehearsal"

// kind is what is known of a sort of provider.
type kind struct {
	baseURL string // "" when there is no default
	keyEnv  string // the variable that customarily holds its key; "" when it needs none
	model   string // what to use when only a key is there; "" when that cannot be known
}

// kinds are the sorts of providers a config can name. All but openai-compatible are providers of the same name too, so
// that --model ollama/qwen3 needs no config.
var kinds = map[string]kind{
	"openai":            {"https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5.2"},
	"deepseek":          {"https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"},
	"openrouter":        {"https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter/auto"},
	"ollama":            {baseURL: "http://127.0.0.1:11434/v1"},
	"llamacpp":          {baseURL: "http://127.0.0.1:8080/v1"},
	"vllm":              {baseURL: "http://127.0.0.1:8000/v1"},
	"openai-compatible": {},
	kindRehearsal:       {model: kindRehearsal},
}

// byKey are the providers that a key in the environment configures, in the order of preference.
var byKey = []string{"deepseek", "openai", "openrouter"}

func kindNames() []string { return slices.Sorted(maps.Keys(kinds)) }

// providerNames are the names a model can begin with: the configured ones, then the built-in ones.
func providerNames(c *config) []string {
	names := slices.Clone(c.order)
	for _, k := range kindNames() {
		if k != "openai-compatible" && !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	return names
}

// settings are what flags, environment, config and built-in values come to, in this order of precedence.
type settings struct {
	config *config
	model  string // provider/model; never ""
	from   string // who named the model, for people
	policy permit.Policy
}

// resolve makes settings. model and mode are the flags; getenv reads the environment.
func resolve(c *config, model string, mode permit.Mode, getenv func(string) string) (*settings, error) {
	s := &settings{config: c, policy: c.Permissions.policy().With(mode)}
	s.model, s.from = chooseModel(c, model, getenv)
	if s.model == "" {
		return nil, fmt.Errorf("%s configures providers but no model: add a line like model = %q", tilde(c.path), c.order[0]+"/NAME")
	}
	if err := checkModelName(s.model, c); err != nil {
		return nil, fmt.Errorf("%s: %w", s.from, err)
	}
	return s, nil
}

// chooseModel returns the model and who named it; "" when providers are configured and none of them has a default.
func chooseModel(c *config, flag string, getenv func(string) string) (model, from string) {
	switch {
	case flag != "":
		return flag, "--model"
	case getenv("FERMATA_MODEL") != "":
		return getenv("FERMATA_MODEL"), "FERMATA_MODEL"
	case c.Model != "":
		return c.Model, tilde(c.path)
	}
	for _, name := range c.order {
		if k := kinds[cmp.Or(c.Providers[name].Kind, name)]; k.model != "" {
			return name + "/" + k.model, tilde(c.path)
		}
	}
	if len(c.order) > 0 {
		return "", ""
	}
	for _, name := range byKey {
		if k := kinds[name]; getenv(k.keyEnv) != "" {
			return name + "/" + k.model, k.keyEnv
		}
	}
	return kindRehearsal + "/" + kinds[kindRehearsal].model, "built in, because no provider is configured"
}

// provider is one configured model service, all defaults filled in.
type provider struct {
	name, kind string
	baseURL    string
	keyEnv     string
	keyCommand []string
	keyNeeded  bool          // without a key no request can pass
	idle       time.Duration // 0: the provider's own
}

// provider gives the provider of a name that checkModelName accepted.
func (s *settings) provider(name string, getenv func(string) string) provider {
	file := s.config.Providers[name]
	p := provider{name: name, kind: cmp.Or(file.Kind, name), keyCommand: file.KeyCommand}
	k := kinds[p.kind]
	p.baseURL = cmp.Or(file.BaseURL, k.baseURL)
	switch {
	case name == "openai" && getenv("OPENAI_BASE_URL") != "":
		p.baseURL = getenv("OPENAI_BASE_URL")
	case name == "ollama" && file.BaseURL == "" && getenv("OLLAMA_HOST") != "":
		p.baseURL = ollamaURL(getenv("OLLAMA_HOST"))
	}
	if len(p.keyCommand) == 0 {
		p.keyEnv = cmp.Or(file.KeyEnv, k.keyEnv)
	}
	p.keyNeeded = file.KeyEnv != "" || len(p.keyCommand) > 0 || k.keyEnv != "" && p.baseURL == k.baseURL
	p.idle, _ = time.ParseDuration(s.config.Limits.IdleTimeout) // was validated; "" is 0
	return p
}

// keyVariables names the environment variables that hold configured keys; no command of a turn is given them.
func (s *settings) keyVariables() []string {
	var names []string
	for _, p := range s.config.Providers {
		if p.KeyEnv != "" {
			names = append(names, p.KeyEnv)
		}
	}
	for _, m := range s.config.MCP {
		names = append(names, m.server().Variables()...)
	}
	slices.Sort(names)
	return names
}

// ollamaURL makes a base URL of what OLLAMA_HOST may hold: host, host:port or a URL. A server's own address to listen at
// on all interfaces is reached on this machine.
func ollamaURL(host string) string {
	scheme, rest, found := strings.Cut(host, "://")
	if !found {
		scheme, rest = "http", host
	}
	rest, _, _ = strings.Cut(rest, "/")
	name, port, err := net.SplitHostPort(rest)
	if err != nil {
		name, port = strings.Trim(rest, "[]"), "11434"
	}
	if name == "" || name == "0.0.0.0" || name == "::" {
		name = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(name, port) + "/v1"
}

// environment reads the environment without the white space that ends up in it by accident.
func environment(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// splitModel takes apart a name that checkModelName accepted.
func splitModel(name string) (provider, model string) {
	provider, model, _ = strings.Cut(name, "/")
	return provider, cmp.Or(model, kinds[provider].model)
}
