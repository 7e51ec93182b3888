//go:build race

package agent

const (
	simLength = 3
	simSample = 40
	simRandom = 30
)
