package workspace

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// writeAndDie names the variable that makes the test binary a process that writes files: "STAGE FOLDER" writes f once and is
// killed at that stage, as kill -9 does; "" as the stage comes through.
const writeAndDie = "FERMATA_TEST_WRITE_AND_DIE"

const oldText, newText = "old\n", "new, and longer\n"

func TestMain(m *testing.M) {
	if job, ok := os.LookupEnv(writeAndDie); ok {
		stage, dir, _ := strings.Cut(job, " ")
		if err := writer(stage, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writer tells each stage in a line on stdout.
func writer(stage, dir string) error {
	w, err := Open(dir, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	ctx := context.Background()
	w.stage = func(name string) {
		fmt.Println(name)
		if name != stage {
			return
		}
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
		select {} // nothing more is done, however long the system takes
	}
	for i := 0; i == 0 || stage == "never"; i++ { // until it is killed
		f, err := w.ReadOrNew("f")
		if err != nil {
			return err
		}
		text := []byte(newText)
		if stage == "never" {
			text = bytes.Repeat([]byte{"ab"[i%2]}, large)
		}
		if err := w.Write(ctx, f, text); err != nil {
			return err
		}
	}
	return nil
}

const large = 2 << 20

func startWriter(t *testing.T, stage, dir string) (cmd *exec.Cmd, out *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writeAndDie+"="+stage+" "+dir)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(pipe)
}

// guards P4: kill -9 at every stage of a write leaves the old file or the new one, and nothing else that
// anybody is shown.
func TestAKilledWriteIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), oldText)
	cmd, out := startWriter(t, "", dir)
	var stages []string
	for out.Scan() {
		stages = append(stages, out.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(stages) < 5 {
		t.Fatalf("the stages are %v", stages)
	}
	t.Logf("killed at %d stages: %v", len(stages), stages)
	renamed := slices.Index(stages, "renamed")
	for i, stage := range stages {
		for _, before := range []string{oldText, ""} { // "": the file is new
			w := tree(t, "", nil)
			name := filepath.Join(w.Root(), "f")
			if before != "" {
				put(t, name, before)
			}
			cmd, out := startWriter(t, stage, w.Root())
			for out.Scan() {
			}
			if err := cmd.Wait(); err == nil && (before != "" || stage != "likened") {
				t.Errorf("%s: it was not killed", stage)
			}
			want := oldText
			switch {
			case before == "" && stage == "likened": // a new file is like no other: the stage does not come
				want = newText
			case i >= renamed:
				want = newText
			case before == "":
				want = ""
			}
			got, err := os.ReadFile(name)
			if string(got) != want || (want == "") != os.IsNotExist(err) {
				t.Errorf("%s: the file is %q, want %q", stage, got, want)
			}
			nothingIsShownBut(t, w, want)
			aged(t, w)
			nothingIsShownBut(t, w, want)
			if left := temps(t, w); len(left) != 0 {
				t.Errorf("%s: %v is still there", stage, left)
			}
		}
	}
}

// Killed in the middle of the bytes, too.
func TestAWriterKilledAnywhereLeavesOneText(t *testing.T) {
	w := tree(t, "", nil)
	name := filepath.Join(w.Root(), "f")
	for n := range 9 { // a write has eight stages
		cmd, out := startWriter(t, "never", w.Root())
		for i := 0; i <= n && out.Scan(); i++ {
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		b, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != large || len(bytes.Trim(b, string(b[:1]))) != 0 {
			t.Fatalf("killed after %d stages: %d bytes of a mixture", n+1, len(b))
		}
	}
}

func nothingIsShownBut(t *testing.T, w *Workspace, want string) {
	t.Helper()
	var names []string
	if want != "" {
		names = []string{"f"}
	}
	if got := walk(t, w, "."); !slices.Equal(got, names) {
		t.Errorf("walked %v", got)
	}
	list, _, err := w.ReadDir(t.Context(), ".", 1000)
	if err != nil || len(list) != len(names) {
		t.Errorf("listed %v, %v", list, err)
	}
}

// aged makes what a killed write left old.
func aged(t *testing.T, w *Workspace) {
	t.Helper()
	then := time.Now().Add(-2 * staleAfter)
	for _, name := range temps(t, w) {
		if err := os.Chtimes(name, then, then); err != nil {
			t.Error(err)
		}
	}
}

func temps(t *testing.T, w *Workspace) (names []string) {
	t.Helper()
	err := filepath.WalkDir(w.Root(), func(p string, d fs.DirEntry, err error) error {
		if err == nil && isTemp(d.Name()) {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

// Only names that a write gives are taken for leftovers, and only files.
func TestOnlyLeftoversAreHiddenAndRemoved(t *testing.T) {
	w := tree(t, "", nil)
	var keep []string
	for i, name := range []string{".fermata-notes.tmp", ".fermata-.tmp", "fermata-" + strings.Repeat("A", 26) + ".tmp",
		".fermata-" + strings.Repeat("a", 26) + ".tmp", ".fermata-" + strings.Repeat("A", 25) + ".tmp", tempName() + "~"} {
		keep = append(keep, name)
		put(t, filepath.Join(w.Root(), name), strconv.Itoa(i))
	}
	slices.Sort(keep)
	folder := tempName()
	put(t, filepath.Join(w.Root(), folder, "inside"), "x")
	fresh := filepath.Join(w.Root(), tempName())
	put(t, fresh, "a write that goes on")
	for _, name := range append(slices.Clone(keep), folder) {
		then := time.Now().Add(-2 * staleAfter)
		if err := os.Chtimes(filepath.Join(w.Root(), name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	want := append(slices.Clone(keep), folder+"/inside")
	slices.Sort(want)
	got := walk(t, w, ".")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("walked %v, want %v", got, want)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the file of a write that goes on: %v", err)
	}
}
