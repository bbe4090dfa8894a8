package procfs

import "time"

// Pressure is how long threads have waited for something (Documentation/accounting/psi.rst). Some: at least one waited.
// Full: all that were not idle did.
type Pressure struct{ Some, Full Stall }

// Stall is a line of it: parts of the last 10, 60 and 300 seconds, 0 to 1, and all since the beginning.
type Stall struct {
	Avg10, Avg60, Avg300 float64
	Total                time.Duration
}
