package transcript

import "time"

// cpu is not measured here: 0.
func cpu() time.Duration { return 0 }
