package main

import (
	"bytes"
	"fmt"
	"regexp"
)

// workplace are words of the place where fermata was written, and mean nothing to anybody else. They are put together
// here so that this file does not hold them.
var workplace = []*regexp.Regexp{
	// An absolute path, also in a URI; not the tail of another path.
	regexp.MustCompile(`(?:^|[^\w.~})-])(` + "/wo" + "rk/" + `)`),
	word("farm" + "-bench"),
	word(".lib" + "rary"),
	word("../sha" + "red"),
}

func word(text string) *regexp.Regexp { return regexp.MustCompile("(" + regexp.QuoteMeta(text) + ")") }

// checkText reports lines of any file that have a word of the workplace.
func checkText(files []file) []problem {
	var problems []problem
	for _, f := range files {
		for i, line := range bytes.Split(f.data, []byte("\n")) {
			for _, word := range workplace {
				if found := word.FindSubmatch(line); found != nil {
					problems = append(problems, problem{
						fmt.Sprintf("%s:%d", f.path, i+1), fmt.Sprintf("says %q", found[1]),
						"the repository must make sense on any machine",
					})
				}
			}
		}
	}
	return problems
}
