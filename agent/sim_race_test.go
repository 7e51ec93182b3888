//go:build race

package agent

const (
	simLength  = 2
	simWidened = 2
	simAtOnce  = 1
	simSample  = 60 // of the orders that are one longer
	simRandom  = 30
)
