package main

import (
	"fmt"
	"slices"
	"time"

	"fermata/agent/check"
)

// checkConfig is one [[check]]: something that an answer must pass before later model inputs hold it.
type checkConfig struct {
	Name    string `toml:"name"`
	Command any    `toml:"command"` // a list: a program and its arguments; a text: a line for the shell
	Pattern any    `toml:"pattern"` // a regular expression or the name of built-in ones, or a list of these
	On      string `toml:"on"`      // "answer" or "edits"; "" is "answer"
	Hold    bool   `toml:"hold"`    // show nothing of the answer before the verdict
	Timeout string `toml:"timeout"` // a Go duration; "" is the check's own
}

// definition is the check that a [[check]] defines; field is the key of what is wrong with it.
func (c checkConfig) definition() (d check.Definition, field string, err error) {
	d = check.Definition{Name: c.Name, On: check.On(c.On), Hold: c.Hold}
	if c.Timeout != "" {
		if d.Timeout, err = time.ParseDuration(c.Timeout); err != nil || d.Timeout <= 0 {
			return d, "timeout", fmt.Errorf("timeout is %q, which is no duration; write it like \"30s\" or \"5m\"", c.Timeout)
		}
	}
	switch v := c.Command.(type) {
	case nil:
	case string:
		if d.Shell = v; v == "" {
			return d, "command", fmt.Errorf("command is empty; write a line for the shell, or a list: the program and its arguments")
		}
	default:
		if d.Command, err = texts("command", v, "a text in quotes, run by the shell, or a list of texts: the program and its arguments"); err != nil {
			return d, "command", err
		}
	}
	switch v := c.Pattern.(type) {
	case nil:
	case string:
		d.Pattern = []string{v}
	default:
		if d.Pattern, err = texts("pattern", v, "a text in quotes or a list of texts"); err != nil {
			return d, "pattern", err
		}
	}
	field, err = d.Validate()
	return d, field, err
}

// texts is a TOML list of texts.
func texts(key string, v any, want string) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("check.%s must be %s", key, want)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is empty; it must be %s", key, want)
	}
	var out []string
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("check.%s must be %s", key, want)
		}
		out = append(out, s)
	}
	return out, nil
}

// checks reports what is wrong with the checks of a config.
func (v *validator) checks(c *config) {
	var names []string
	for i, check := range c.Checks {
		d, field, err := check.definition()
		switch {
		case err != nil && field == "on" && check.On != "":
			v.add(v.lines.element("check", i, field), err.Error()+didYouMean(check.On, []string{"answer", "edits"}))
		case err != nil:
			v.add(v.lines.element("check", i, field), err.Error())
		case slices.Contains(names, d.Name):
			v.add(v.lines.element("check", i, "name"), fmt.Sprintf("there are two checks with the name %q", d.Name))
		}
		names = append(names, d.Name)
	}
}

// checks are the configured checks, in the order of the file. They were validated.
func (s *settings) checks() []check.Definition {
	var out []check.Definition
	for _, c := range s.config.Checks {
		if d, _, err := c.definition(); err == nil {
			out = append(out, d)
		}
	}
	return out
}
