// Command tidy checks what the compiler cannot: who may import whom, what the top level holds, that each folder says in
// one comment what its package is for, and a few habits of tests. It prints one line for each problem, with the reason
// of the rule that was broken, and then exits with status 1.
//
// It only reads. The checks are pure functions over what repo.go gathers, so that their tests need no repository.
//
// Usage, from anywhere in the repository:
//
//	go run ./cmd/internal/tidy
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
)

// problem is one broken rule.
type problem struct {
	path string // slash-separated, relative to the repository
	what string // what is wrong there
	why  string // the reason of the rule
}

func (p problem) String() string { return fmt.Sprintf("%s: %s — %s", p.path, p.what, p.why) }

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	problems, err := tidy(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tidy:", err)
		os.Exit(2)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// tidy checks the repository that the working directory is in. An error means that it could not be read.
func tidy(ctx context.Context) ([]problem, error) {
	r, err := readRepo(ctx)
	if err != nil {
		return nil, err
	}
	return r.check(), nil
}

// check runs every check.
func (r repo) check() []problem {
	return slices.Concat(
		checkLayers(r.packages),
		checkLayout(r.files),
		checkText(r.files),
		checkSource(r.files),
	)
}

// byPath puts problems in a stable order.
func byPath(problems []problem) []problem {
	slices.SortStableFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.what, b.what))
	})
	return problems
}
