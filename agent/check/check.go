// Package check runs the checks of an answer (K1–K7): programs and patterns of the user's own configuration that judge what
// a model said, or what a turn did to files, before later model inputs may hold it. It gives verdicts and decides nothing:
// what they come to is the agent's.
//
// [Run] may be called from any goroutine. Its checks run all at once, and each to its own end (K3). Cancelling its context
// ends their programs with all that they started, and those checks have no verdict. No check is given a key.
package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
	"unicode"

	"fermata/transcript"
)

// On says what a check judges.
type On string

// What a check can judge. An answer is judged each time a model has said one. Edits are judged with a turn's last answer,
// when the turn has changed files.
const (
	Answer On = "answer"
	Edits  On = "edits"
)

// DefaultTimeout is how long a check may take when its definition does not say.
const DefaultTimeout = time.Minute

// Definition is one check. Exactly one of Command, Shell and Pattern is set.
type Definition struct {
	Name    string
	Command []string      // a program and its arguments; the program is absolute or found on PATH
	Shell   string        // a text for the system's shell
	Pattern []string      // regular expressions (RE2), or names of [Patterns]: a match rejects
	On      On            // "" means Answer
	Hold    bool          // nothing of the answer is shown before the verdict
	Timeout time.Duration // 0 means [DefaultTimeout]
}

// Judges is what the check judges.
func (d *Definition) Judges() On {
	if d.On == "" {
		return Answer
	}
	return d.On
}

// SHA256 is the hash, in hex, of what makes its verdict what it is: the name, what is run or matched, and what it judges. Whether
// an answer is held back meanwhile and how long it may take are no part of it; neither is the content of its program.
func (d *Definition) SHA256() string {
	form := struct {
		Name    string            `json:"name"`
		Command []string          `json:"command,omitempty"`
		Shell   string            `json:"shell,omitempty"`
		Pattern map[string]string `json:"pattern,omitempty"` // the expressions that names stand for
		On      On                `json:"on"`
	}{d.Name, d.Command, d.Shell, nil, d.Judges()}
	for _, p := range d.Pattern {
		if form.Pattern == nil {
			form.Pattern = map[string]string{}
		}
		maps.Copy(form.Pattern, expressions(p))
	}
	b, err := json.Marshal(form) // a map is written in the order of its keys
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Validate says what is wrong with a definition; field is the one to change.
func (d *Definition) Validate() (field string, err error) {
	switch {
	case d.Name == "":
		return "name", errors.New("a check needs a name")
	case len(d.Name) > 60 || strings.ContainsFunc(d.Name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "name", fmt.Errorf("the name %q is no word of at most 60 bytes", d.Name)
	case len(d.Command) == 0 && d.Shell == "" && len(d.Pattern) == 0:
		return "command", fmt.Errorf("check %q has neither a command nor a pattern", d.Name)
	case len(d.Pattern) > 0 && (len(d.Command) > 0 || d.Shell != ""):
		return "pattern", fmt.Errorf("check %q has both a command and a pattern; make two checks of it", d.Name)
	case d.On != "" && d.On != Answer && d.On != Edits:
		return "on", fmt.Errorf("on is %q, which is not one of answer, edits", d.On)
	case d.Timeout < 0:
		return "timeout", errors.New("timeout must be more than 0")
	}
	if len(d.Command) > 0 {
		if err := nameable(d.Command[0]); err != nil {
			return "command", err
		}
	}
	for _, p := range d.Pattern {
		if _, err := compile(p); err != nil {
			return "pattern", err
		}
	}
	return "", nil
}

// Input is what checks judge.
type Input struct {
	Session   transcript.SessionID
	Turn      transcript.TurnID
	Step      int
	Workspace string // absolute; "" for none
	Prompt    []transcript.PromptPart
	Answer    *transcript.Answer
	// Files gives those that the turn changed, by path; it is called by each check on edits, from any goroutine.
	Files   func() ([]File, error)
	Secrets []string // names of environment variables that no program is given, besides those whose name tells
}

// File is a file that a turn has changed, from before its first change to after its last. Its contents are nil where there
// is no file.
type File struct {
	Path          string // relative to the workspace, slash-separated
	Before, After []byte
	Buffer        bool // changed in an editor's open document, not on disk
}

// Verdict is what a check came to.
type Verdict struct {
	Check  *Definition
	Word   transcript.VerdictWord
	Reason string // of a reject or an error, for people: at most [ReasonBytes], on a few lines
	Took   time.Duration
}

// Run runs checks all at once, and sends each verdict as it comes; the channel is closed when all checks are over. A check
// that the end of ctx cut short has no verdict. What is sent needs no receiver.
func Run(ctx context.Context, checks []Definition, in Input) <-chan Verdict {
	out := make(chan Verdict, len(checks))
	var wg sync.WaitGroup
	for i := range checks {
		wg.Go(func() {
			if v, ok := checks[i].run(ctx, &in); ok {
				out <- v
			}
		})
	}
	go func() { // ends when the checks have
		wg.Wait()
		close(out)
	}()
	return out
}

// run gives no verdict when ctx ended before there was one.
func (d *Definition) run(ctx context.Context, in *Input) (v Verdict, ok bool) {
	begun := time.Now()
	defer func() {
		if p := recover(); p != nil {
			v, ok = Verdict{Word: transcript.VerdictError, Reason: fmt.Sprintf("internal error: %v", p)}, true
		}
		v.Check, v.Took = d, time.Since(begun)
	}()
	if ctx.Err() != nil {
		return v, false
	}
	if len(d.Pattern) > 0 {
		v.Word, v.Reason = d.match(in)
		return v, true
	}
	return d.execute(ctx, in)
}
