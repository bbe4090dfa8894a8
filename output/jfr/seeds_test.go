package jfr

import (
	"testing"

	"goprof/testdata/fuzzseed"
)

// TestWriteSeeds makes a seed for the fuzzer: a wall-clock recording with all kinds of events.
func TestWriteSeeds(t *testing.T) {
	fuzzseed.Making(t)
	fuzzseed.Write(t, ".", "FuzzRead", "wall", wallRecording(t))
}
