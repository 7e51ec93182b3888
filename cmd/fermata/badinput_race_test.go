//go:build race

package main

// raceDetector says that the tests, and the daemons they start, run with the race detector.
const raceDetector = true
