//go:build unix

package workspace

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestSpecialFilesAreNeitherReadNorWritten(t *testing.T) {
	t.Chdir(t.TempDir()) // a socket's path must be short
	w, err := Open(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := syscall.Mkfifo("fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Symlink("fifo", "tofifo"); err != nil {
		t.Fatal(err)
	}
	names := []string{"fifo", "tofifo", "socket"}
	if syscall.Mknod("zero", syscall.S_IFCHR|0o666, 1<<8|5) == nil { // only root may make one
		names = append(names, "zero")
	}
	for _, name := range names {
		if _, err := w.Read(name); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Read(%s): %v", name, err)
		}
		if err := w.Write(t.Context(), File{Path: name}, []byte("x")); err == nil {
			t.Errorf("%s was written", name)
		}
		if _, _, err := w.ReadDir(t.Context(), name, 10); err == nil {
			t.Errorf("%s was listed", name)
		}
	}
	if got := walk(t, w, "."); len(got) != 0 {
		t.Errorf("walk: %q", got)
	}
	if filepath.Base(w.Root()) == "." {
		t.Errorf("the root %s was not made absolute", w.Root())
	}
}
