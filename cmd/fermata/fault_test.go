package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// faultAt names the variable that ends a daemon at a place of its database: "K FILE" kills it, as kill -9 does, at the Kth
// place that it comes to, and each place that it came to is a line of FILE. With 0 it comes through. Only the tests' own
// binary reads it.
const faultAt = "FERMATA_TEST_FAULT_AT"

// faultOf is the function for [transcript.Options].Fault.
func faultOf(at string) func(place string) {
	number, file, found := strings.Cut(at, " ")
	last, err := strconv.Atoi(number)
	if !found || err != nil {
		return nil
	}
	var mu sync.Mutex
	come := 0
	return func(place string) {
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, place)
		_ = f.Close()
		if come++; come != last {
			return
		}
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
		select {} // nothing more is done, however long the system takes
	}
}
