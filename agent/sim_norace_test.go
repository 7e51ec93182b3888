//go:build !race

package agent

const (
	simLength  = 4
	simWidened = 3
	simAtOnce  = 1
	simSample  = 600 // of the orders that are one longer
	simRandom  = 500
)
