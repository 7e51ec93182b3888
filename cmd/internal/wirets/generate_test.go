package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTypesAreWrittenAsTheWireHasThem(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.go")
	if err := os.WriteFile(file, []byte("package a\n\n"+
		"// Box is a box.\ntype Box struct {\n\t// ID is its id.\n\tID BoxID `json:\"id\"`\n\tWhen time.Time `json:\"when,omitzero\"`\n"+
		"\tRaw json.RawMessage `json:\"raw\"`\n\tIn *Box `json:\"in\"`\n\tMany []State `json:\"many\"`\n\tBy map[State]int `json:\"by\"`\n\tHidden int `json:\"-\"`\n\tprivate int\n"+
		"\t// Kind is \"delta\".\n\tKind string `json:\"kind\"`\n}\n\n"+
		"type BoxID string\n\ntype State string\n\nconst (\n\tOpen State = \"open\"\n\tShut State = \"shut\" // for good\n)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &source{types: map[string]*declared{}}
	if err := s.read(dir); err != nil {
		t.Fatal(err)
	}
	w := &writer{source: s, done: map[string]bool{}}
	for _, name := range []string{"Box", "BoxID", "State"} {
		if err := w.declare(name); err != nil {
			t.Fatal(err)
		}
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	want := `/** Box is a box. */
export interface Box {
  /** ID is its id. */
  id: BoxID;
  when?: string;
  raw: unknown;
  in: Box | null;
  many: State[];
  by: { [key in State]?: number };
  /** Kind is "delta". */
  kind: "delta";
}

export type BoxID = string;

export type State = "open" | "shut";

`
	if got := w.out.String(); got != want {
		t.Errorf("it wrote\n%s\nwant\n%s", got, want)
	}
}

func TestAStaleFileIsTold(t *testing.T) {
	t.Chdir("../../..")
	file := filepath.Join(t.TempDir(), "protocol.ts")
	if err := run(false, []string{file}); err != nil {
		t.Fatal(err)
	}
	if err := run(true, []string{file}); err != nil {
		t.Errorf("a fresh file is said to be stale: %v", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "fermata/turn/stop", "fermata/turn/halt", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(true, []string{file}); err == nil || !strings.Contains(err.Error(), "is stale; run: go run") {
		t.Errorf("a changed file gives %v", err)
	}
}
