//go:build !race

package agent

const (
	simLength = 5
	simSample = 0
	simRandom = 500
)
