//go:build unix

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// systemToolCases are those of files that only some systems have. outside is a file outside of the workspace.
func systemToolCases(t *testing.T, root, outside string) []toolCase {
	t.Helper()
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(outside, "link-out")
	link("../secret.txt", "relative-link-out")
	link(filepath.Dir(outside), "folder-out")
	link("/dev/zero", "device")
	link("loop", "loop")
	link("plain.txt", "link-in")
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(path string) []string { return call("read_file", map[string]string{"path": path}) }
	cases := []toolCase{
		{name: "a link to a file outside", steps: read("link-out"), want: []string{"read_file: …link-out is or goes through a link that leads out…"}},
		{name: "a relative link to a file outside", steps: read("relative-link-out"), want: []string{"read_file: …leads out…"}},
		{name: "a link to a folder outside", steps: read("folder-out/secret.txt"), want: []string{"read_file: …leads out…"}},
		{name: "a list of a folder outside", steps: call("list_dir", map[string]string{"path": "folder-out"}), want: []string{"list_dir: …leads out…"}},
		{name: "a write through a link to a file outside", steps: call("write_file", map[string]string{"path": "link-out", "content": "x"}), want: []string{"write_file: …leads out…"}},
		{name: "a new file through a link to a folder outside", steps: call("write_file", map[string]string{"path": "folder-out/new", "content": "x"}), want: []string{"write_file: …leads out…"}},
		{name: "a link to a device", steps: read("device"), want: []string{"read_file: …leads out…"}},
		{name: "a link to itself", steps: read("loop"), want: []string{"read_file: …a link that leads to itself…"}},
		{name: "a link to a file inside", steps: call("edit_file", map[string]string{"path": "link-in", "old": "Plain.", "new": "Plainer."}), want: []string{"…plain.txt…"}, file: "plain.txt", holds: "Plainer.\n"},
		{name: "a FIFO that nobody writes", steps: read("fifo"), want: []string{"read_file: fifo: …but a FIFO…"}},
		{name: "a FIFO that nobody reads", steps: call("write_file", map[string]string{"path": "fifo", "content": "x"}), want: []string{"write_file: fifo: …but a FIFO…"}},
		{name: "a search among links, devices and FIFOs", steps: []string{`call grep {"pattern":"Secret"}`}, want: []string{"…"}},
	}
	if runtime.GOOS == "linux" { // macOS has no such names
		if err := os.WriteFile(filepath.Join(root, "caf\xe9.txt"), []byte("Latin.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cases = append(cases,
			toolCase{name: "a name that is not UTF-8 in a list", steps: []string{`call list_dir {"path":"."}`}, want: []string{`…"caf\xe9.txt"…`}},
			toolCase{name: "a name that is not UTF-8 in a search", steps: []string{`call glob {"pattern":"caf*"}`}, want: []string{"(no file matches)"}})
	}
	return cases
}
