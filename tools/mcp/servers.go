// Package mcp offers the tools of MCP servers (Model Context Protocol) that the user has configured: programs spoken to over
// their stdin and stdout, and addresses spoken to over streamable HTTP. It promises that the names, their order and the
// schemas of what is offered follow from the configuration and the servers' own lists alone (M4), that a call gets the
// server's own answer or a result that says what became of it, also when the server ends, answers nonsense or is never heard
// of again, and that a stop loses no answer (S7). What a server says of itself decides nothing: which tools only read is the
// user's to say, and all others are asked about.
//
// [Servers] may be used from any goroutine. Servers are started for one root each, by the first [Servers.Tools] that wants
// them. One that has ended is started again by the next call, not at once when it ends again and again. [Servers.Close] ends
// them all with every process that they started (S14).
package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"fermata/tools"
)

// Config is one server. It has either a Command or a URL.
type Config struct {
	Name    string   // the first part of its tools' names: letters, digits, - and _, at most NameBytes, no "__"
	Command []string // the program and its arguments; it is run in the home folder, without a shell
	Env     map[string]string
	URL     string
	Headers map[string]string

	// In values of Env and Headers ${NAME} stands for a variable of this process's environment.

	Tools    []string // names as the server has them of those that are offered; nil: all
	ReadOnly []string // of those that change nothing, so that nobody is asked

	Start time.Duration // until its tools must be known; 0 means 10 s
	Call  time.Duration // a call may take; 0 means 10 min
}

// NameBytes is the most bytes of a server's name.
const NameBytes = 24

// Options make Servers.
type Options struct {
	Configs []Config // in the order in which models are told of them
	Secrets []string // names of variables that no program is given unless its Env names them, besides those whose name tells
	Version string   // of fermata, told to servers
	Log     *slog.Logger

	message int // instead of messageBytes, for tests that would send too much for long
}

// Servers are the configured servers, for every root that was asked for.
type Servers struct {
	o Options

	mu     sync.Mutex
	roots  map[string][]*server
	closed bool
}

// New makes Servers and starts none.
func New(o Options) *Servers {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.message == 0 {
		o.message = messageBytes
	}
	return &Servers{o: o, roots: map[string][]*server{}}
}

// Tools are what a root's servers offer from now on, in the order of the configuration and then by name, and what the user
// must be told about them, each thing once. It waits for servers that start, each not longer than its Config's Start. When
// ctx ends it comes back at once with those that are known.
func (s *Servers) Tools(ctx context.Context, root string) (offered []tools.Tool, warnings []string) {
	servers := s.of(root)
	for _, offer := range s.offers(ctx, servers) {
		offered = append(offered, offer.tools...)
		warnings = append(warnings, offer.warnings...)
	}
	return offered, warnings
}

// Status is what there is to say of one server.
type Status struct {
	Name     string
	Tools    []string // as models are told of them
	Warnings []string
	Err      error // why it offers none
	Took     time.Duration
}

// Check starts a root's servers and says how each does, in the order of the configuration.
func (s *Servers) Check(ctx context.Context, root string) []Status {
	var all []Status
	for i, offer := range s.offers(ctx, s.of(root)) {
		st := Status{Name: s.o.Configs[i].Name, Warnings: offer.warnings, Err: offer.err, Took: offer.took}
		for _, t := range offer.tools {
			st.Tools = append(st.Tools, t.Name)
		}
		all = append(all, st)
	}
	return all
}

func (s *Servers) offers(ctx context.Context, servers []*server) []offer {
	offers := make([]offer, len(servers))
	var wg sync.WaitGroup
	for i, one := range servers {
		wg.Go(func() { offers[i] = one.offer(ctx) })
	}
	wg.Wait()
	return offers
}

// of are a root's servers; none when these are closed.
func (s *Servers) of(root string) []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	servers := s.roots[root]
	if servers == nil && !s.closed {
		for _, c := range s.o.Configs {
			servers = append(servers, newServer(c, root, s.o))
		}
		s.roots[root] = servers
	}
	return servers
}

// Close ends all servers and waits for their end. Calls that run fail by it.
func (s *Servers) Close() {
	s.mu.Lock()
	s.closed = true
	var all []*server
	for _, servers := range s.roots {
		all = append(all, servers...)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, one := range all {
		wg.Go(one.close)
	}
	wg.Wait()
}

// Validate says what is wrong with a configuration; field is the key it is about.
func (c Config) Validate() (field string, err error) {
	switch {
	case c.Name == "":
		return "name", fmt.Errorf("an MCP server needs a name")
	case len(c.Name) > NameBytes || strings.Contains(c.Name, "__") || strings.Trim(c.Name, "_") != c.Name || c.Name != clean(c.Name):
		return "name", fmt.Errorf("an MCP server cannot be called %q: its tools' names begin with it, so it is at most %d letters, digits, - and single _", c.Name, NameBytes)
	case len(c.Command) == 0 && c.URL == "":
		return "", fmt.Errorf("MCP server %q has neither a command nor a url", c.Name)
	case len(c.Command) > 0 && c.URL != "":
		return "url", fmt.Errorf("MCP server %q has both a command and a url; keep one", c.Name)
	case len(c.Command) > 0 && len(c.Headers) > 0:
		return "headers", fmt.Errorf("MCP server %q is a command, which has no headers; use env", c.Name)
	case c.URL != "" && len(c.Env) > 0:
		return "env", fmt.Errorf("MCP server %q is an address, which has no environment; use headers", c.Name)
	case c.URL == "" && c.Command[0] == "":
		return "command", fmt.Errorf("command of MCP server %q is empty; write the program and its arguments", c.Name)
	}
	for _, name := range c.ReadOnly {
		if c.Tools != nil && !slices.Contains(c.Tools, name) {
			return "read_only", fmt.Errorf("read_only names %q, which is not among the tools of MCP server %q", name, c.Name)
		}
	}
	return "", nil
}

// Variables are the names of the environment's variables that a configuration's values stand for.
func (c Config) Variables() (names []string) {
	for _, values := range []map[string]string{c.Env, c.Headers} {
		for _, v := range values {
			_, _ = expand(v, func(name string) (string, bool) {
				names = append(names, name)
				return "", true
			})
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// variable reads the environment; an empty variable counts as not set.
func variable(name string) (string, bool) {
	v := os.Getenv(name)
	return v, v != ""
}

// expand replaces each ${NAME}. A variable that is not set is an error that names it.
func expand(value string, get func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("there is no } behind ${")
		}
		v, ok := get(name)
		if !ok {
			return "", fmt.Errorf("the variable %s is not set", name)
		}
		b.WriteString(v)
		value = after
	}
}
