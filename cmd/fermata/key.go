package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// keySource gives a provider's API key: from the environment, or from the program the user's config names, which is run
// once. A key is in no error and in no log (M6). It may be used from any goroutine.
type keySource struct {
	p       provider
	hint    string // where a key can be configured
	timeout time.Duration

	mu  sync.Mutex
	key string // of a command that succeeded
}

func newKeySource(p provider, configFile string) *keySource {
	return &keySource{p: p, hint: tilde(configFile), timeout: 10 * time.Second}
}

// Key returns the key, "" when the provider needs none.
func (k *keySource) Key(ctx context.Context) (string, error) {
	if len(k.p.keyCommand) > 0 {
		return k.run(ctx)
	}
	if k.p.keyEnv == "" {
		return "", nil
	}
	key := environment(k.p.keyEnv)
	if key == "" && k.p.keyNeeded {
		name := k.p.keyEnv
		if name != strings.ToUpper(name) { // no name that is usual: it could be a key that was put there
			name = "the variable that its key_env names"
		}
		return "", fmt.Errorf("%s is not set; set it, or give [providers.%s] a key_env or key_command in %s", name, k.p.name, k.hint)
	}
	return key, nil
}

// run runs key_command as it stands, without a shell, in the user's home folder: not in the workspace, whose files must
// not decide what runs.
func (k *keySource) run(ctx context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != "" {
		return k.key, nil
	}
	limited, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	program := k.p.keyCommand[0]
	cmd := exec.CommandContext(limited, program, k.p.keyCommand[1:]...)
	cmd.Dir, _ = os.UserHomeDir()
	ownGroup(cmd)
	cmd.WaitDelay = time.Second // its children may keep the pipes open
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	key, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n") // `pass` keeps notes below the first line
	key = strings.TrimSpace(key)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case limited.Err() != nil:
		return "", fmt.Errorf("key_command %q gave no key within %s", program, k.timeout)
	case errors.Is(err, exec.ErrNotFound): // the word could be a key that was put there
		return "", fmt.Errorf("the first word of key_command is no program that can be found; see [providers.%s] in %s", k.p.name, k.hint)
	case err != nil:
		return "", fmt.Errorf("key_command %q: %w%s", program, err, lastLine(complaint.String(), out.String()))
	case key == "":
		return "", fmt.Errorf("key_command %q printed nothing", program)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", errors.New("key_command " + program + " printed something that is no key")
	}
	k.key = key
	return key, nil
}

// lastLine is what a program said last about its failure, unless it repeats what it printed.
func lastLine(complaint, printed string) string {
	lines := strings.Split(strings.TrimSpace(complaint), "\n")
	line := printable(lines[len(lines)-1])
	if line == "" || len(line) > 200 {
		return ""
	}
	for word := range strings.FieldsSeq(printed) {
		if strings.Contains(line, word) {
			return ""
		}
	}
	return ": " + line
}
