package tools

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"fermata/tools/workspace"
)

func BenchmarkTmp(b *testing.B) {
	dir := os.Getenv("TREE")
	w, err := workspace.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	b.Run("rg", func(b *testing.B) {
		for b.Loop() {
			c := exec.Command("rg", "-n", "needleInTheHay", dir)
			c.Run()
			b.ReportMetric(float64((c.ProcessState.SystemTime()+c.ProcessState.UserTime())/time.Millisecond), "cpu-ms")
		}
	})
	b.Run("rg-files", func(b *testing.B) {
		for b.Loop() {
			c := exec.Command("rg", "--files", "-g", "**/*.go", dir)
			c.Run()
			b.ReportMetric(float64((c.ProcessState.SystemTime()+c.ProcessState.UserTime())/time.Millisecond), "cpu-ms")
		}
	})
	b.Run("glob", func(b *testing.B) {
		tool, _ := Lookup("glob")
		for b.Loop() {
			tool.Run(b.Context(), Env{Workspace: w}, json.RawMessage(`{"pattern":"**/*.go"}`))
		}
	})
	for n, f := range map[string]func(*workspace.Workspace) (string, bool){"with": findRipgrep, "without": nil} {
		b.Run("grep-"+n, func(b *testing.B) {
			for b.Loop() {
				r := grep(b.Context(), w, grepArgs{Pattern: "needleInTheHay"}, f, nil)
				_ = r
			}
		})
	}
}
