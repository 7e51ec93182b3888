package agent

import (
	"testing"
)

// guards P1, P2, P3, P4, P5, S1, S4, S5, S7, S9, S11, D4, D5, F1, F2, C1, C2
func TestEveryOrderOfWhatCanHappenKeepsThePromises(t *testing.T) {
	orders := feasible(simLength)
	runOrders(t, len(orders), func(i int) order { return orders[i] })
	t.Logf("%d orders", len(orders))
}

func TestRandomOrdersKeepThePromises(t *testing.T) {
	runOrders(t, simRandom, random)
	t.Logf("%d orders", simRandom)
}

const (
	simLength = 3
	simRandom = 2000
)
