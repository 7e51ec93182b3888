package main

import (
	"slices"
	"strings"
)

// module is the path of this module.
const module = "fermata"

// layer is one rule about imports. Patterns are import paths; with "/..." at the end they also match all below.
type layer struct {
	from    []string // whom the rule is about
	except  []string // who of them is free of it
	forbids []string // what they may not import
	allows  []string // what of that they may

	testsExcept []string // whose tests are free of it too
	testsAllow  []string // what tests may import beyond allows

	// deep rules also hold for what is imported by way of other packages of this module. A rule of the kind "only X
	// imports Y" is not deep: the others are meant to reach Y by way of X. Tests are held to their own imports.
	deep bool

	why string
}

// layers are the rules of import: cmd → rpc → agent → transcript, with tools and models apart.
var layers = []layer{
	{
		from:        []string{"fermata/..."},
		except:      []string{"fermata/rpc/..."},
		forbids:     []string{"go.lsp.dev/..."},
		testsExcept: []string{"fermata/cmd/..."}, // they play an editor
		why:         "only rpc/... speaks the editors' protocols, so that a change of them ends there",
	},
	{
		from:        []string{"fermata/..."},
		except:      []string{"fermata/transcript"},
		forbids:     []string{"database/sql/...", "modernc.org/sqlite/..."},
		testsExcept: []string{"fermata/cmd/..."}, // they look into the database of a daemon they ran
		why:         "only transcript touches the database, so that what is written went through its checks",
	},
	{
		from:    []string{"fermata/..."},
		except:  []string{"fermata/tools/watch"},
		forbids: []string{"github.com/fsnotify/fsnotify/..."},
		why:     "only tools/watch knows how each system reports changed files",
	},
	{
		from:        []string{"fermata/..."},
		except:      []string{"fermata/agent/model/...", "fermata/cmd/...", "fermata/tools/mcp"}, // servers that the user names: their calls and results are in the log
		forbids:     []string{"net/http/..."},
		testsExcept: []string{"fermata/..."}, // they play a model
		why:         "only agent/model/..., tools/mcp and cmd talk to the network, so that nothing is sent that the log has not",
	},
	{
		from:    []string{"fermata/..."},
		except:  []string{"fermata/tools/mcp/..."},
		forbids: []string{"github.com/modelcontextprotocol/..."},
		why:     "only tools/mcp speaks to MCP servers, so that a change of the protocol ends there",
	},
	{
		from:    []string{"fermata/agent/..."},
		forbids: []string{"fermata/rpc/..."},
		deep:    true,
		why:     "the agent serves every face alike, so it knows none",
	},
	{
		from:       []string{"fermata/agent"},
		forbids:    []string{"fermata/agent/model/..."},
		allows:     []string{"fermata/agent/model"},
		testsAllow: []string{"fermata/agent/model/rehearsal", "fermata/agent/model/chat"},
		deep:       true,
		why:        "the agent knows models by the interface in agent/model, so that a dialect can be added without it",
	},
	{
		from:    []string{"fermata/agent/model/..."},
		forbids: []string{"fermata/tools/...", "fermata/agent"},
		deep:    true,
		why:     "a dialect turns entries into bytes and bytes into deltas, and decides nothing",
	},
	{
		from:    []string{"fermata/agent/permit"},
		forbids: []string{"fermata/..."},
		deep:    true,
		why:     "permit is a leaf, so that tools can demand a permit without knowing the agent",
	},
	{
		from:    []string{"fermata/tools/..."},
		forbids: []string{"fermata/rpc/...", "fermata/agent/..."},
		allows:  []string{"fermata/agent/permit"},
		deep:    true,
		why:     "tools know files and processes; who asked, and over what, is the agent's to know",
	},
	{
		from:    []string{"fermata/transcript"},
		forbids: []string{"fermata/..."},
		deep:    true,
		why:     "transcript is a leaf: the log must be readable without anything that writes to it",
	},
	{
		from:    []string{"fermata/..."},
		except:  []string{"fermata/cmd/..."},
		forbids: []string{"fermata/cmd/..."},
		why:     "cmd only wires the others together",
	},
}

// checkLayers reports the imports that layers forbid.
func checkLayers(packages []pkg) []problem {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.path] = p.imports
	}
	var problems []problem
	for _, p := range packages {
		for _, l := range layers {
			if matches(l.from, p.path) {
				problems = append(problems, l.check(p, imports)...)
			}
		}
	}
	return byPath(problems)
}

// check reports the imports of p, which the rule is about, that the rule forbids. imports are those of all packages.
func (l layer) check(p pkg, imports map[string][]string) []problem {
	if matches(l.except, p.path) {
		return nil
	}
	folder := strings.TrimPrefix(p.path, module+"/")
	var problems []problem
	for _, found := range l.reach(p, imports) {
		if !l.forbidden(p, found.path, nil) {
			continue
		}
		what := "imports " + found.path
		if found.by != "" {
			what += " by way of " + found.by
		}
		problems = append(problems, problem{folder, what, l.why})
	}
	if matches(l.testsExcept, p.path) {
		return problems
	}
	for _, path := range p.tests {
		if l.forbidden(p, path, l.testsAllow) && !slices.Contains(p.imports, path) {
			problems = append(problems, problem{folder, "its tests import " + path, l.why})
		}
	}
	return problems
}

// forbidden reports whether p may not import path. allows are those that it may beyond the rule's.
func (l layer) forbidden(p pkg, path string, allows []string) bool {
	return path != p.path && matches(l.forbids, path) && !matches(l.allows, path) && !matches(allows, path)
}

// reached is a package that another one imports.
type reached struct {
	path string
	by   string // the package by way of which it is imported; empty when directly
}

// reach returns what p imports, directly or if the rule is deep also by way of others, nearest first. It does not look
// behind a forbidden package: to have reached that is the problem.
func (l layer) reach(p pkg, imports map[string][]string) []reached {
	var found []reached
	seen := map[string]bool{p.path: true}
	add := func(paths []string, by string) {
		for _, path := range paths {
			if !seen[path] {
				seen[path] = true
				found = append(found, reached{path, by})
			}
		}
	}
	add(p.imports, "")
	for i := 0; l.deep && i < len(found); i++ {
		if path := found[i].path; !l.forbidden(p, path, nil) {
			add(imports[path], path)
		}
	}
	return found
}

// matches reports whether one of the patterns matches an import path.
func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		parent, all := strings.CutSuffix(pattern, "/...")
		return path == parent || all && strings.HasPrefix(path, parent+"/")
	})
}
