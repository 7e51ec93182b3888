package main

import (
	"path"
	"slices"
	"strings"
)

// topLevel is all that the top folder may hold.
var topLevel = []string{
	"cmd", "rpc", "agent", "transcript", "tools", "editors",
	"go.mod", "go.sum", "README.md", "Makefile", "LICENSE", ".gitignore", ".ci",
}

// vague names say of a file only that it holds code.
var vague = []string{"util", "utils", "common", "helper", "helpers", "types", "misc"}

// checkLayout reports entries of the top folder that are not topLevel, and Go files with vague names.
func checkLayout(files []file) []problem {
	var problems []problem
	strangers := map[string]bool{}
	for _, f := range files {
		top, _, _ := strings.Cut(f.path, "/")
		if !slices.Contains(topLevel, top) && !strangers[top] {
			strangers[top] = true
			problems = append(problems, problem{top, "does not belong in the top folder",
				"the top level is the first page of the repository, and it is fixed"})
		}
		name, isGo := strings.CutSuffix(path.Base(f.path), ".go")
		name = strings.TrimSuffix(name, "_test")
		if isGo && slices.Contains(vague, name) {
			problems = append(problems, problem{f.path, "is a vague name",
				"a file is named for its subject; code without one gathers under a name like this"})
		}
	}
	return byPath(problems)
}
