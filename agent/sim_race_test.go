//go:build race

package agent

const (
	simLength  = 3
	simWidened = 2
	simAtOnce  = 1
	simSample  = 40 // of the orders that are one longer
	simRandom  = 60
)
