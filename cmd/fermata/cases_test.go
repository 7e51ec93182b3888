package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// eachCase plays the archives of a folder of testdata at the same time; play gets the sections by their names.
func eachCase(t *testing.T, folder string, play func(t *testing.T, sections map[string]string)) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := map[string]string{}
			for _, f := range archive.Files {
				c[f.Name] = string(f.Data)
			}
			play(t, c)
		})
	}
}
