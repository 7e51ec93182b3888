package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"fermata/tools/mcp/mcptest"
)

// asBinary makes the test's own binary be fermata, for tests that talk to it as it runs.
const asBinary = "FERMATA_TEST_AS_BINARY"

func TestMain(m *testing.M) {
	if mcptest.Main() {
		return
	}
	if os.Getenv(asBinary) != "" {
		a := newApp()
		a.fault = faultOf(os.Getenv(faultAt))
		os.Exit(a.run(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){"fermata": main})
}

// userEnv is the environment of a user whose home is below dir and who has configured nothing.
func userEnv(dir string) []string {
	return []string{
		"HOME=" + filepath.Join(dir, "home"),
		"USERPROFILE=" + filepath.Join(dir, "home"),
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "home", "config"),
		"XDG_DATA_HOME=" + filepath.Join(dir, "home", "data"),
		"XDG_STATE_HOME=" + filepath.Join(dir, "home", "state"),
		"LC_ALL=C.UTF-8", "TERM=xterm", "NO_COLOR=",
		"GORACE=atexit_sleep_ms=0", // each process of the race detector would take a second to end
		"FERMATA_REHEARSAL_RATE=0", "FERMATA_MODEL=", "DEEPSEEK_API_KEY=", "OPENAI_API_KEY=", "OPENROUTER_API_KEY=",
		"OPENAI_BASE_URL=", "OLLAMA_HOST=",
	}
}

// Each file of testdata/script is one story, told with the real binary; its first lines say which.
func TestEveryScriptRunsAsWritten(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, userEnv(e.WorkDir)...)
			e.Cd = filepath.Join(e.WorkDir, "app")
			return os.MkdirAll(e.Cd, 0o755)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"hashes": hashes,
			"tamper": tamper,
			"status": status,
			"begins": begins,
			"idof":   idOf,
		},
	})
}

// hashes RAW TEXT: the SHA-256 of the file RAW stands in the file TEXT.
func hashes(ts *testscript.TestScript, neg bool, args []string) {
	sum := sha256.Sum256([]byte(ts.ReadFile(args[0])))
	if found := strings.Contains(ts.ReadFile(args[1]), hex.EncodeToString(sum[:])); found == neg {
		ts.Fatalf("the sha256 of %s is %x; that it is in %s is %v", args[0], sum, args[1], found)
	}
}

// tamper FILE OLD NEW: writes NEW over every OLD of the same length, as nobody should.
func tamper(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	before, err := os.ReadFile(path)
	ts.Check(err)
	after := bytes.ReplaceAll(before, []byte(args[1]), []byte(args[2]))
	if bytes.Equal(before, after) || len(before) != len(after) {
		ts.Fatalf("%s does not hold %q, or %q is not as long", args[0], args[1], args[2])
	}
	ts.Check(os.WriteFile(path, after, 0o600))
}

// status CODE COMMAND...: runs a command and wants its exit code.
func status(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("%v ended with %s, want %s", args[1:], code, args[0])
	}
}
