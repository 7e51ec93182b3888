//go:build !windows

package main

import "os"

// understandsEscapes says that terminals do; those that do not call themselves dumb.
func understandsEscapes(*os.File) bool { return true }
