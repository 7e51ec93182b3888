package check

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"unicode"

	"fermata/tools/process"
	"fermata/transcript"
)

// ReasonBytes and reasonLines bound the reason of a verdict.
const (
	ReasonBytes = 1000
	reasonLines = 10
)

// The exit statuses that judge. Any other one is an error.
const (
	exitPass   = 0
	exitReject = 1
)

// nameable wants a program that does not depend on the folder it is run in: what lies in a workspace is not to decide what
// is run because a path is relative.
func nameable(program string) error {
	switch {
	case program == "":
		return errors.New("command is empty; write the program and its arguments, like [\"gitleaks\", \"stdin\"]")
	case strings.ContainsRune(program, 0):
		return errors.New("command holds a NUL character")
	case filepath.IsAbs(program) || !strings.ContainsAny(program, `/\`):
		return nil
	}
	return fmt.Errorf("command begins with %q; name a program on PATH or give its whole path", program)
}

// document is what a program reads on stdin. Hashes are SHA-256 in hex.
type document struct {
	Check     string               `json:"check"`
	On        On                   `json:"on"`
	Session   transcript.SessionID `json:"session"`
	Turn      transcript.TurnID    `json:"turn"`
	Step      int                  `json:"step"`
	Workspace string               `json:"workspace"` // absolute; "" for none
	Prompt    string               `json:"prompt"`    // what the user said
	Answer    documentAnswer       `json:"answer"`
	Files     []documentFile       `json:"files"` // that the turn changed; empty unless on is "edits"
}

type documentAnswer struct {
	State     transcript.AnswerState `json:"state"` // "complete" or "stopped"
	SHA256    string                 `json:"sha256"`
	Text      string                 `json:"text"`
	Reasoning string                 `json:"reasoning"`
	Calls     []transcript.Call      `json:"calls"`
}

type documentFile struct {
	Path       string `json:"path"`        // relative to the workspace, slash-separated
	Before     string `json:"before"`      // of the content before the turn; "" when there was no such file
	After      string `json:"after"`       // of the content that the turn left; "" when it removed the file
	BeforeFile string `json:"before_file"` // a copy of that content; "" when there was no such file
	AfterFile  string `json:"after_file"`  // likewise
	Buffer     bool   `json:"buffer"`      // it is in an editor's open document, and may not be on disk
}

// execute runs the check's program in the workspace, or without one in an empty folder.
func (d *Definition) execute(ctx context.Context, in *Input) (Verdict, bool) {
	failed := func(format string, args ...any) (Verdict, bool) {
		return Verdict{Word: transcript.VerdictError, Reason: reason(fmt.Sprintf(format, args...))}, true
	}
	dir, err := os.MkdirTemp("", "fermata-check-")
	if err != nil {
		return failed("no folder for its files: %v", err)
	}
	defer os.RemoveAll(dir)
	input, err := d.document(in, dir)
	if err != nil {
		return failed("%v", err)
	}
	cmd, err := d.command(in.Workspace)
	if err != nil {
		return failed("%v", err)
	}
	if cmd.Dir = in.Workspace; cmd.Dir == "" {
		cmd.Dir = dir
	}
	timeout := d.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	var said beginning
	p := process.Program{Cmd: cmd, Secrets: in.Secrets, Input: input, Timeout: timeout, Output: said.take}
	end, err := p.Run(ctx)
	output := reason(said.String())
	switch {
	case err != nil:
		return failed("it could not be started: %v", err)
	case end.Why == process.ByStop:
		return Verdict{}, false
	case end.Why == process.ByTimeout:
		return failed("no verdict within %v\n%s", timeout, output)
	case end.Signal != "":
		return failed("ended by signal: %s\n%s", end.Signal, output)
	case end.Exit == exitPass:
		return Verdict{Word: transcript.VerdictPass}, true
	case end.Exit == exitReject:
		if output == "" {
			output = "it gave no reason"
		}
		return Verdict{Word: transcript.VerdictReject, Reason: output}, true
	}
	return failed("exit status %d\n%s", end.Exit, output)
}

// command finds the program. One that lies in the workspace is not run: a PATH that reaches into it must not let a
// repository choose.
func (d *Definition) command(workspace string) (*exec.Cmd, error) {
	if d.Shell != "" {
		return process.Shell(d.Shell)
	}
	if err := nameable(d.Command[0]); err != nil {
		return nil, err
	}
	path, err := exec.LookPath(d.Command[0])
	if err != nil {
		return nil, fmt.Errorf("it could not be started: %w", err)
	}
	if workspace != "" && !filepath.IsAbs(d.Command[0]) {
		if rel, err := filepath.Rel(workspace, path); err == nil && filepath.IsLocal(rel) {
			return nil, fmt.Errorf("the program %s lies in the workspace: give its whole path to run it all the same", path)
		}
	}
	return exec.Command(path, d.Command[1:]...), nil
}

// document is the input of the program; the contents of files are written below dir.
func (d *Definition) document(in *Input, dir string) ([]byte, error) {
	a := in.Answer
	doc := document{
		Check: d.Name, On: d.Judges(), Session: in.Session, Turn: in.Turn, Step: in.Step, Workspace: in.Workspace,
		Prompt: (&transcript.TurnStarted{Prompt: in.Prompt}).UserText(),
		Answer: documentAnswer{State: a.State, SHA256: a.SHA256(), Text: a.Text(), Reasoning: a.Reasoning(), Calls: a.Calls()},
		Files:  []documentFile{},
	}
	if doc.Answer.Calls == nil {
		doc.Answer.Calls = []transcript.Call{}
	}
	if d.Judges() == Edits {
		files, err := in.Files()
		if err != nil {
			return nil, fmt.Errorf("the changed files cannot be read: %w", err)
		}
		for i, f := range files {
			file := documentFile{Path: f.Path, Buffer: f.Buffer}
			var err1, err2 error
			file.Before, file.BeforeFile, err1 = copyOf(f.Before, dir, fmt.Sprintf("%d-before", i), f.Path)
			file.After, file.AfterFile, err2 = copyOf(f.After, dir, fmt.Sprintf("%d-after", i), f.Path)
			if err := errors.Join(err1, err2); err != nil {
				return nil, fmt.Errorf("copy the changed files: %w", err)
			}
			doc.Files = append(doc.Files, file)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(doc)
	return b.Bytes(), err
}

// copyOf writes a content into a folder of its own, under its own name: programs go by that.
func copyOf(content []byte, dir, folder, path string) (sum, name string, err error) {
	if content == nil {
		return "", "", nil
	}
	hash := sha256.Sum256(content)
	if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
		return "", "", err
	}
	name = filepath.Join(dir, folder, filepath.Base(filepath.FromSlash(path)))
	return hex.EncodeToString(hash[:]), name, os.WriteFile(name, content, 0o600)
}

// beginning keeps the first bytes of a stream and reads the rest away.
type beginning struct {
	mu   sync.Mutex
	kept []byte
}

func (b *beginning) take(r io.Reader) { _, _ = io.Copy(b, r) }

// Write is the copying goroutine's, which may outlive the program where a pipe cannot be closed under it.
func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, p[:min(len(p), 4*ReasonBytes-len(b.kept))]...)
	return len(p), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.kept)
}

// reason is the first lines of what a program said, as readable text.
func reason(said string) string {
	said = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if r != '\n' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(said, "\uFFFD"))
	var lines []string
	for line := range strings.Lines(said) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			lines = append(lines, line)
		}
		if len(lines) == reasonLines {
			break
		}
	}
	out := strings.Join(lines, "\n")
	if len(out) > ReasonBytes {
		out = strings.ToValidUTF8(out[:ReasonBytes-len(" …")], "") + " …"
	}
	return out
}
