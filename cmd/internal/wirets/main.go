// Command wirets writes the TypeScript types of the fermata/* protocol from rpc/wire and the bodies of transcript's entries,
// with their doc comments: the VS Code extension has no types of the protocol of its own.
//
//	go run ./cmd/internal/wirets editors/vscode/src/protocol.ts           writes the file
//	go run ./cmd/internal/wirets -check editors/vscode/src/protocol.ts    fails when it is stale
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail when the file is stale")
	flag.Parse()
	if err := run(*check, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "wirets:", err)
		os.Exit(1)
	}
}

func run(check bool, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: wirets [-check] FILE, from the top of the repository")
	}
	out, err := generate("rpc/wire", "transcript")
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(args[0], out, 0o644)
	}
	have, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if !bytes.Equal(have, out) {
		return fmt.Errorf("%s is stale; run: go run ./cmd/internal/wirets %s", args[0], args[0])
	}
	return nil
}
