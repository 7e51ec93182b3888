package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"fermata/transcript"
)

// Patterns are the patterns that have a name. The expressions of one are tried all, each under what it is said to have
// found.
var Patterns = map[string]map[string]string{
	"secrets": {
		"a private key":           `-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`,
		"an AWS access key":       `\b(?:AKIA|ASIA)[A-Z2-7]{16}\b`,
		"a GitHub token":          `\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})`,
		"a GitLab token":          `\bglpat-[A-Za-z0-9_-]{20,}`,
		"a Slack token":           `\bxox[abeoprs]-[A-Za-z0-9-]{10,}`,
		"a Slack webhook":         `https://hooks\.slack\.com/services/T[A-Za-z0-9_]+/B[A-Za-z0-9_]+/[A-Za-z0-9_]{16,}`,
		"a Google API key":        `\bAIza[A-Za-z0-9_-]{35}`,
		"an API key (sk-…)":       `\bsk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]*[A-Za-z0-9]{20,}`,
		"a Stripe key":            `\b[rs]k_live_[A-Za-z0-9]{20,}`,
		"an npm token":            `\bnpm_[A-Za-z0-9]{36}\b`,
		"a PyPI token":            `\bpypi-[A-Za-z0-9_-]{50,}`,
		"a Hugging Face token":    `\bhf_[A-Za-z0-9]{30,}`,
		"a SendGrid key":          `\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{40,}`,
		"a JSON web token":        `\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`,
		"an Azure storage secret": `\bAccountKey=[A-Za-z0-9+/]{86}==`,
	},
}

// expressions are what a pattern stands for, by what they find.
func expressions(pattern string) map[string]string {
	if named, ok := Patterns[pattern]; ok {
		return named
	}
	return map[string]string{"the pattern " + pattern: pattern}
}

func compile(pattern string) (map[string]*regexp.Regexp, error) {
	out := map[string]*regexp.Regexp{}
	for name, e := range expressions(pattern) {
		r, err := regexp.Compile(e)
		if err != nil {
			return nil, fmt.Errorf("pattern %q is neither a known name (%s) nor a regular expression: %w",
				pattern, strings.Join(slices.Sorted(maps.Keys(Patterns)), ", "), err)
		}
		if r.MatchString("") {
			return nil, fmt.Errorf("pattern %q matches everything", pattern)
		}
		out[name] = r
	}
	return out, nil
}

// match looks for the patterns in all that later model inputs would hold of an answer, or in the files a turn left. The
// reason says what was found and where, and never the text itself: it may be a key.
func (d *Definition) match(in *Input) (transcript.VerdictWord, string) {
	texts := answerTexts(in.Answer)
	if d.Judges() == Edits {
		texts = texts[:0]
		files, err := in.Files()
		if err != nil {
			return transcript.VerdictError, fmt.Sprintf("the changed files cannot be read: %v", err)
		}
		for _, f := range files {
			if f.After != nil {
				texts = append(texts, placed{f.Path, string(f.After)})
			}
		}
	}
	for _, p := range d.Pattern {
		expressions, err := compile(p)
		if err != nil {
			return transcript.VerdictError, err.Error()
		}
		for _, name := range slices.Sorted(maps.Keys(expressions)) {
			for _, t := range texts {
				for _, at := range expressions[name].FindAllStringIndex(t.text, -1) {
					if strings.Contains(t.text[at[0]:at[1]], "EXAMPLE") {
						continue // documentation's own: AKIAIOSFODNN7EXAMPLE
					}
					return transcript.VerdictReject, fmt.Sprintf("%s is in %s, line %d", name, t.where, 1+strings.Count(t.text[:at[0]], "\n"))
				}
			}
		}
	}
	return transcript.VerdictPass, ""
}

// placed is a text and where it stands, for people.
type placed struct{ where, text string }

func answerTexts(a *transcript.Answer) []placed {
	texts := []placed{{"the text", a.Text()}, {"the reasoning", a.Reasoning()}}
	for _, c := range a.Calls() {
		where := "the call of " + c.Name
		texts = append(texts, placed{where, c.Args})
		var args any
		if json.Unmarshal([]byte(c.Args), &args) == nil { // what is escaped in the JSON is not in the argument
			walk(args, func(s string) { texts = append(texts, placed{where, s}) })
		}
	}
	return texts
}

// walk calls f for every string in a JSON value.
func walk(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			walk(e, f)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			f(k)
			walk(v[k], f)
		}
	}
}
