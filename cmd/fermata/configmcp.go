package main

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"fermata/agent"
	"fermata/tools/mcp"
)

// mcpConfig is one [[mcp]]: a server whose tools models are offered.
type mcpConfig struct {
	Name     string            `toml:"name"`
	Command  []string          `toml:"command"`
	Env      map[string]string `toml:"env"` // ${NAME} stands for a variable of fermata's environment, also in headers
	URL      string            `toml:"url"`
	Headers  map[string]string `toml:"headers"`
	Tools    []string          `toml:"tools"`         // those that are offered; none: all
	ReadOnly []string          `toml:"read_only"`     // those that need no question
	Start    string            `toml:"start_timeout"` // Go durations; "" is the server's own
	Call     string            `toml:"timeout"`
}

// server is the server that an [[mcp]] defines.
func (c mcpConfig) server() mcp.Config {
	start, _ := time.ParseDuration(c.Start) // was validated
	call, _ := time.ParseDuration(c.Call)
	return mcp.Config{Name: c.Name, Command: c.Command, Env: c.Env, URL: c.URL, Headers: c.Headers, Tools: c.Tools, ReadOnly: c.ReadOnly, Start: start, Call: call}
}

// mcp reports what is wrong with the MCP servers of a config.
func (v *validator) mcp(c *config) {
	var names []string
	for i, m := range c.MCP {
		at := func(field, format string, args ...any) {
			v.add(v.lines.element("mcp", i, field), fmt.Sprintf(format, args...))
		}
		if field, err := m.server().Validate(); err != nil {
			at(field, "%v", err)
		}
		if slices.Contains(names, m.Name) {
			at("name", "there are two MCP servers with the name %q", m.Name)
		}
		names = append(names, m.Name)
		if m.URL != "" {
			if err := checkBaseURL(m.URL); err != nil {
				at("url", "url %v", err)
			}
		}
		for _, d := range []struct{ field, value string }{{"start_timeout", m.Start}, {"timeout", m.Call}} {
			if t, err := time.ParseDuration(d.value); d.value != "" && (err != nil || t <= 0) {
				at(d.field, "%s is %q, which is no duration; write it like \"30s\" or \"5m\"", d.field, d.value)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Env)) {
			if name == "" || strings.ContainsAny(name, "= \x00") {
				at("env", "%q is no name of a variable", name)
			} else if holdsKey(name, m.Env[name]) {
				at("env", "%s: a key does not belong in a file; name the variable that holds it: %s = \"${%s}\"", name, name, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
			if isTransportHeader(name) {
				at("headers", "the header %q is fermata's own", name)
			} else if holdsKey(name, m.Headers[name]) {
				at("headers", "%s: a key does not belong in a file; name the variable that holds it, like \"Bearer ${MY_TOKEN}\"", name)
			}
		}
	}
}

// holdsKey reports whether a value looks, by its name, as if it were a key itself.
func holdsKey(name, value string) bool {
	if strings.Contains(value, "${") || value == "" {
		return false
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "cookie", "token", "secret", "password", "passwd", "api-key", "api_key", "apikey"},
		func(word string) bool { return strings.Contains(name, word) })
}

// isTransportHeader reports whether a header is a part of how messages are sent.
func isTransportHeader(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return name == "" || strings.HasPrefix(name, "Mcp-") || slices.Contains([]string{"Accept", "Content-Type", "Content-Length", "Host", "Connection", "Transfer-Encoding", "Last-Event-Id"}, name)
}

// namedMCPTools are the tools of MCP servers that the permissions name: which ones there are only the servers know.
func (c *config) namedMCPTools() []string {
	named := slices.Clone(c.Permissions.Allow)
	for _, r := range c.Permissions.Rules {
		named = append(named, r.Tool)
	}
	return slices.DeleteFunc(named, func(tool string) bool {
		server, _, found := strings.Cut(tool, "__")
		return !found || !slices.ContainsFunc(c.MCP, func(m mcpConfig) bool { return m.Name == server })
	})
}

// mcpServers are the configured MCP servers, none of which is started yet; nil: there are none.
func (s *settings) mcpServers(log *slog.Logger) agent.ToolSource {
	if len(s.config.MCP) == 0 {
		return nil
	}
	return s.newMCPServers(log)
}

func (s *settings) newMCPServers(log *slog.Logger) *mcp.Servers {
	o := mcp.Options{Secrets: s.keyVariables(), Version: versionString(), Log: log}
	for _, m := range s.config.MCP {
		o.Configs = append(o.Configs, m.server())
	}
	return mcp.New(o)
}
