package main

import (
	"fmt"
	"strconv"

	"fermata/agent/model"
	"fermata/agent/model/chat"
	"fermata/agent/model/rehearsal"
)

// newRehearsal makes the built-in model. FERMATA_REHEARSAL_RATE is its speed in words a second, 0 as fast as it can.
func newRehearsal(getenv func(string) string) (model.Provider, error) {
	var o rehearsal.Options
	if rate := getenv("FERMATA_REHEARSAL_RATE"); rate != "" {
		words, err := strconv.ParseFloat(rate, 64)
		if err != nil || !(words >= 0) {
			return nil, fmt.Errorf("FERMATA_REHEARSAL_RATE is %q: write a number of words per second, or 0 for as fast as possible", rate)
		}
		if o.Rate = words; words == 0 {
			o.Rate = -1
		}
	}
	return rehearsal.Provider(o)
}

// dialectByName finds the encoder that a log names, also when the provider it was used with is no longer configured.
func dialectByName(name string) (model.Dialect, error) { return chat.ByName(name) }
