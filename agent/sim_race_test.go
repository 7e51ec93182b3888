//go:build race

package agent

const (
	simLength = 3
	simSample = 120
	simRandom = 60
)
