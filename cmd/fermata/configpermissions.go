package main

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"fermata/agent/permit"
)

// permissionsConfig is [permissions]: what tools may do without a question.
type permissionsConfig struct {
	Mode         string       `toml:"mode"`          // a permit.Mode; "" is "ask"
	Allow        []string     `toml:"allow"`         // names of tools that need no question
	Rules        []ruleConfig `toml:"rule"`          // their order does not matter
	Secrets      []string     `toml:"secrets"`       // more files that are asked about also when they are only read
	NotSecrets   []string     `toml:"not_secrets"`   // files that are not, although a pattern is about them
	TrustSecrets bool         `toml:"trust_secrets"` // mode "trust" is about secret files too
}

// ruleConfig is one [[permissions.rule]].
type ruleConfig struct {
	Tool     string `toml:"tool"`
	Command  string `toml:"command"`
	Path     string `toml:"path"`
	Decision string `toml:"decision"`
}

func (r ruleConfig) rule() permit.Rule {
	return permit.Rule{Tool: r.Tool, Command: r.Command, Path: r.Path, Decision: permit.Verdict(r.Decision)}
}

// policy is what the config says. It was validated. The folders that are protected are the app's to add.
func (c permissionsConfig) policy() permit.Policy {
	p := permit.Policy{
		Mode: permit.Mode(c.Mode), Secrets: c.Secrets, NotSecrets: c.NotSecrets, TrustSecrets: c.TrustSecrets,
		PlainWords: runtime.GOOS == "windows", // where the shell is cmd.exe
	}
	if p.Mode == "" {
		p.Mode = permit.ModeAsk
	}
	for _, tool := range c.Allow {
		p.Rules = append(p.Rules, permit.Rule{Tool: tool, Decision: permit.Allow})
	}
	for _, r := range c.Rules {
		p.Rules = append(p.Rules, r.rule())
	}
	return p
}

// mode is the permission mode that the flags name, "" for none.
func (a *app) mode() (permit.Mode, error) {
	switch {
	case a.flagMode == "" && a.flagYes:
		return permit.ModeTrust, nil
	case a.flagMode == "":
		return "", nil
	case a.flagYes && a.flagMode != string(permit.ModeTrust):
		return "", usage("--yes is --mode trust: keep one of --yes and --mode %s", a.flagMode)
	case !slices.Contains(modeNames(), a.flagMode):
		return "", usage("--mode %s: it is one of %s", a.flagMode, strings.Join(modeNames(), ", "))
	}
	return permit.Mode(a.flagMode), nil
}

// modeNames are the permission modes, the strictest first.
func modeNames() []string {
	var names []string
	for _, m := range permit.Modes() {
		names = append(names, string(m))
	}
	return names
}

// permissions reports what is wrong with [permissions].
func (v *validator) permissions(c permissionsConfig, toolNames []string) {
	if c.Mode == "yes" {
		v.at([]string{"permissions", "mode"}, `mode "yes" is called "trust"`)
	} else {
		v.oneOf(c.Mode, modeNames(), "permissions", "mode")
	}
	known := func(tool string) bool { return slices.Contains(toolNames, tool) }
	for _, tool := range c.Allow {
		if !known(tool) {
			v.at([]string{"permissions", "allow"}, "allow names %q, but there is no such tool%s", tool, didYouMean(tool, toolNames))
		}
	}
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"secrets", c.Secrets}, {"not_secrets", c.NotSecrets}} {
		for _, pattern := range list.patterns {
			if err := permit.ValidPattern(pattern); err != nil {
				v.at([]string{"permissions", list.key}, "%v", err)
			}
		}
	}
	for i, r := range c.Rules {
		field, err := r.rule().Validate()
		switch {
		case err != nil && field == "decision":
			v.add(v.lines.rule(i, field), err.Error()+didYouMean(r.Decision, []string{"allow", "deny", "ask"}))
		case err != nil:
			v.add(v.lines.rule(i, field), err.Error())
		case r.Tool != "" && !known(r.Tool):
			v.add(v.lines.rule(i, "tool"), "the rule names the tool \""+r.Tool+"\", but there is no such tool"+didYouMean(r.Tool, toolNames))
		}
	}
}

// rule is the line of a key in the nth [[permissions.rule]], from 0, or of that table where it has no such key.
func (x lineIndex) rule(n int, key string) int {
	line := x.line("permissions", "rule")
	for _, k := range x {
		switch {
		case slices.Equal(k.key, []string{"permissions", "rule"}):
			if n--; n == -1 {
				line = k.line
			}
		case n == -1 && slices.Equal(k.key, []string{"permissions", "rule", key}):
			return k.line
		}
	}
	return line
}

// protected are the folders and files of fermata's own that no tool may name: data, state and configuration. Of a folder
// that the user named for one run only fermata's files in it are, as it can be any folder.
func (a *app) protected() []string {
	var paths []string
	add := func(path string, err error) {
		if err == nil {
			paths = append(paths, resolved(path))
		}
	}
	add(stateDir())
	add(dataDir())
	if config, err := configPath(); err == nil {
		add(filepath.Dir(config), nil)
	}
	add(a.configFile())
	if path, err := a.databasePath(); err == nil {
		for _, end := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
			add(path+end, nil)
		}
	}
	return paths
}

// resolved follows the links in a path as far as it exists.
func resolved(path string) string {
	rest := ""
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
