//go:build !linux

package process

import (
	"errors"
	"runtime"
)

func findBubblewrap() (string, error) {
	return "", errors.New("there is no sandbox on " + runtime.GOOS + `; set [run] sandbox = false, or "if-available"`)
}

func fits(string, string) error { return nil }

func (s *Sandbox) arguments(string) ([]string, error) { return nil, s.err }

func redirection(string) string { return "" }
