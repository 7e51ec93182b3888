package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fermata/agent/model/rehearsal"
)

// terminal is fermata running in a pseudo-terminal.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	pty  *os.File
	seen string // all that was read
	at   int    // where the next expect begins
}

// openTerminal starts a command in a pseudo-terminal of its own.
func openTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pty.Close() })
	fd := int(pty.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 500}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A test that waits for nothing fails, with its screen and its goroutines.
	watchdog := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	t.Cleanup(func() { watchdog.Stop() })
	return &terminal{t: t, cmd: cmd, pty: pty}
}

// expect reads until marker came after the last one.
func (x *terminal) expect(marker string) {
	x.t.Helper()
	b := make([]byte, 4096)
	for {
		if i := strings.Index(x.seen[x.at:], marker); i >= 0 {
			x.at += i + len(marker)
			return
		}
		n, err := x.pty.Read(b)
		x.seen += string(b[:n])
		if err != nil {
			x.t.Fatalf("%v before %q in %q", err, marker, x.seen[x.at:])
		}
	}
}

func (x *terminal) typed(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.pty, keys); err != nil {
		x.t.Fatal(err)
	}
}

// end reads to the end and wants an exit code.
func (x *terminal) end(code int) {
	x.t.Helper()
	rest, _ := io.ReadAll(x.pty) // EIO is how a pseudo-terminal ends
	x.seen += string(rest)
	_ = x.cmd.Wait()
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("it ended with %v, want exit code %d; the screen: %q", x.cmd.ProcessState, code, x.seen)
	}
}

// leave stops what is being said and leaves the lane.
func (x *terminal) leave() {
	x.t.Helper()
	x.typed(ctrlC)
	x.expect("What should it do instead?")
	x.expect("> ")
	x.typed(escape)
	x.end(exitStopped)
}

const (
	ctrlC  = "\x03"
	ctrlD  = "\x04"
	escape = "\x1b"
	enter  = "\r"
)

// openStopped asks something in a terminal, and presses ^C within the answer.
func openStopped(t *testing.T, dir string) *terminal {
	t.Helper()
	x := openTerminal(t, child(t, dir, []string{"FERMATA_REHEARSAL_RATE=60"}, "ask", "hello there"))
	x.expect("I am")
	x.typed(ctrlC)
	return x
}

// guards D1, D2, D3, S4, S11, P1
func TestAStopOpensTheLaneAndARedirectGoesOnFromWhatWasShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := openTerminal(t, child(t, dir, []string{"FERMATA_REHEARSAL_RATE=60"}, "ask", "hello there"))
	x.expect("rehearsal model,")
	x.typed(ctrlC)
	x.expect("stopping…")
	x.expect("Stopped here · ")
	x.expect("│ ")
	x.expect("What should it do instead?")
	x.expect("> ")
	x.typed("in one wörd" + enter)
	x.expect("in one wörd")
	x.expect("first attempt") // the model tells what it was told
	x.leave()

	messages := sent(t, dir)
	if len(messages) != 3 {
		t.Fatalf("the redirect sent %q", messages)
	}
	shown := strings.ReplaceAll(messages[1].Content, "\n", "\r\n")
	if !strings.Contains(x.seen[:strings.Index(x.seen, "stopping…")], shown) {
		t.Errorf("the model reads %q, the screen was %q", messages[1].Content, x.seen)
	}
	if !strings.HasPrefix(messages[2].Content, "[The user stopped you. Treat the answer above as a first attempt and revise it as follows.]") ||
		!strings.HasSuffix(messages[2].Content, "\n\nin one wörd") {
		t.Errorf("the redirect is %q", messages[2].Content)
	}
	if text := output(t, child(t, dir, nil, "transcript")); !strings.Contains(text, "*Stopped here* · ") || !strings.Contains(text, "### You redirect") {
		t.Errorf("the transcript is no thread: %s", text)
	}
}

// guards D1: leaving the lane changes nothing.
func TestTheLaneCanBeLeftInEveryUsualWay(t *testing.T) {
	for name, keys := range map[string]string{"escape": escape, "end of file": ctrlD, "empty line": enter, "interrupt": ctrlC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			x := openStopped(t, dir)
			x.expect("> ")
			x.typed(keys)
			x.expect("Left as it is.")
			x.end(exitStopped)
			if text := output(t, child(t, dir, nil, "sessions")); !strings.Contains(text, "1 turn ") || !strings.Contains(text, "stopped") {
				t.Errorf("the session is %s", text)
			}
		})
	}
}

func TestASecondInterruptLeavesAndTheTurnStillEndsAsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := openStopped(t, dir)
	x.expect("stopping…")
	x.typed(ctrlC)
	x.end(exitStopped)
	if text := output(t, child(t, dir, nil, "transcript")); !strings.Contains(text, "*Stopped here*") {
		t.Errorf("the transcript is %s", text)
	}
}

// A shell that had the terminal in between leaves it with its echo on.
func TestWhatIsTypedIsNotEchoedAfterTheProcessWasStoppedAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := openTerminal(t, child(t, dir, []string{"FERMATA_REHEARSAL_RATE=60"}, "ask", "hello there"))
	x.expect("I am")
	mode, err := unix.IoctlGetTermios(int(x.pty.Fd()), unix.TCGETS)
	if err != nil || mode.Lflag&unix.ECHO != 0 {
		t.Fatalf("the echo is on while an answer streams (%v)", err)
	}
	mode.Lflag |= unix.ECHO
	if err := unix.IoctlSetTermios(int(x.pty.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	if err := x.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	x.expect("without a key")
	if mode, err = unix.IoctlGetTermios(int(x.pty.Fd()), unix.TCGETS); err != nil || mode.Lflag&unix.ECHO != 0 {
		t.Errorf("the echo is on after it was resumed (%v)", err)
	}
	x.leave()
}

// guards S1: closing the terminal is a stop.
func TestATerminalThatIsClosedStopsTheTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := openTerminal(t, child(t, dir, []string{"FERMATA_REHEARSAL_RATE=60"}, "ask", "hello there"))
	x.expect("I am")
	if err := x.pty.Close(); err != nil {
		t.Fatal(err)
	}
	x.end(exitStopped)
	if text := output(t, child(t, dir, nil, "transcript")); !strings.Contains(text, "*Stopped here*") {
		t.Errorf("the transcript is %s", text)
	}
}

// Its terminal's mode decides whether ^C is a key or a signal: one that was typed just when the turn ended is a signal.
func TestAnInterruptThatComesAsASignalLeavesTheLaneToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := openStopped(t, dir)
	x.expect("> ")
	if err := x.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	x.expect("Left as it is.")
	x.end(exitStopped)
}

// A paste behind words that were typed was sent at its first line break, and the rest of it was lost.
func TestAPasteOfSeveralLinesIsOneRedirect(t *testing.T) {
	const begins, ends = "\x1b[200~", "\x1b[201~"
	for name, test := range map[string]struct{ typed, want string }{
		"alone":              {begins + "first line\rsecond line" + ends, "first line\nsecond line"},
		"with empty lines":   {begins + "first line\r\r\rsecond line" + ends, "first line\n\n\nsecond line"},
		"from Windows":       {begins + "first line\r\nsecond line" + ends, "first line\nsecond line"},
		"behind typed words": {"mend this: " + begins + "first line\rsecond line" + ends, "mend this: first line\nsecond line"},
		"two with typed words between and behind": {
			begins + "first\rsecond" + ends + " and " + begins + "third\rfourth" + ends + " are the second line", "first\nsecond and third\nfourth are the second line"},
		"with colours": {begins + "a \x1b[31mfirst\x1b[0m line\rsecond line" + ends, "a [31mfirst[0m line\nsecond line"},
		"with an escape that is no key's": { // the editor waited for its end and was deaf to ^C
			begins + "\x1b" + strings.Repeat("停", 100) + "\rsecond line" + ends, strings.Repeat("停", 100) + "\nsecond line"},
		"longer than is read at once": {
			"see " + begins + strings.Repeat("first line\r", 300) + "second line" + ends, "see " + strings.Repeat("first line\n", 300) + "second line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			x := openStopped(t, dir)
			x.expect("> ")
			x.typed(test.typed)
			x.expect("second line")
			x.typed(enter)
			x.expect("first attempt")
			x.leave()
			messages := sent(t, dir)
			if last := messages[len(messages)-1].Content; !strings.HasSuffix(last, "]\n\n"+test.want) {
				t.Errorf("what was sent is %q", last)
			}
		})
	}
}

// guards S6: the model says nothing at first, so the prompt comes back for editing.
func TestASilentStopOffersThePromptForEditing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asked := make(chan struct{})
	answers := rehearsal.New(rehearsal.Options{Rate: -1})
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			answers.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // the connection's end is noticed only then
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	x := openTerminal(t, child(t, dir, []string{"FERMATA_MODEL=openai/x", "OPENAI_BASE_URL=" + server.URL + "/v1"}, "ask", "helo there"))
	<-asked
	x.typed(ctrlC)
	x.expect("Stopped before anything was said")
	x.expect("> helo there")
	x.typed("\x01\x1b[C\x1b[C\x1b[Cl" + enter) // to the start, three to the right, the missing letter
	x.expect("rehearsal model")
	x.end(0)
	messages := sent(t, dir)
	if last := messages[len(messages)-1].Content; !strings.HasSuffix(last, "]\n\nhello there") {
		t.Errorf("what was sent is %q", last)
	}
}

// guards S7, S14: the question shows what is asked; a stop answers it.
func TestTheTerminalAsksBeforeAFileChanges(t *testing.T) {
	for name, test := range map[string]struct{ key, says, file string }{
		"yes":                  {"y", "yes, once", "buy tea\n"},
		"session":              {"s", "yes, for this session", "buy tea\n"},
		"no":                   {"n", "user did not allow it", "buy milk\n"},
		"escape":               {escape, "user did not allow it", "buy milk\n"},
		"interrupt":            {ctrlC, "stopping…", "buy milk\n"},
		"a paste is no answer": {"why not" + ctrlC, "stopping…", "buy milk\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := child(t, dir, nil, "ask", "replace milk with tea in notes.txt")
			notes := filepath.Join(cmd.Dir, "notes.txt")
			if err := os.WriteFile(notes, []byte("buy milk\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			x := openTerminal(t, cmd)
			x.expect("asks for permission")
			x.expect("edit_file notes.txt")
			x.expect("milk")
			x.expect("tea")
			x.expect("[y]es once, [s]ession, [n]o?")
			x.typed(test.key)
			x.expect(test.says)
			if strings.HasSuffix(test.key, ctrlC) {
				x.expect("not started")
				x.expect("> ")
				x.typed(escape)
				x.end(exitStopped)
			} else {
				x.end(0)
			}
			if got, err := os.ReadFile(notes); string(got) != test.file || err != nil {
				t.Errorf("the file holds %q (%v), want %q", got, err, test.file)
			}
		})
	}
}

func TestEscapesOfFilesAndModelsDoNotReachTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := child(t, dir, nil, "ask", "read notes.txt")
	if err := os.WriteFile(filepath.Join(cmd.Dir, "notes.txt"), []byte("a\x1b]0;owned\x07b\u009b31mc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	x := openTerminal(t, cmd)
	x.expect("]0;owned") // its text without what makes it an escape
	x.end(0)
	x2 := openTerminal(t, child(t, dir, nil, "transcript"))
	x2.expect("]0;owned")
	x2.end(0)
	for _, bad := range []string{"\x1b]0", "\x07", "\u009b"} {
		if strings.Contains(x.seen+x2.seen, bad) {
			t.Errorf("%q reached the terminal: %q", bad, x.seen)
		}
	}
	if log := output(t, child(t, dir, nil, "transcript", "--json")); !strings.Contains(log, `\u001b]0;owned\u0007`) {
		t.Errorf("the log does not hold the bytes as they were")
	}
}

func TestWithoutAPromptTheTerminalAsksForOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := openTerminal(t, child(t, dir, nil, "ask"))
	x.expect("ask> ")
	x.typed("hello you" + enter)
	x.expect("rehearsal model")
	x.end(0)
	if messages := sent(t, dir); messages[0].Content != "hello you" {
		t.Errorf("what was sent is %q", messages)
	}
	x = openTerminal(t, child(t, dir, nil, "ask"))
	x.expect("ask> ")
	x.typed(ctrlD)
	x.end(0)
}
