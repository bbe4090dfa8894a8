package profile

import (
	"fmt"
	"time"
)

// Weight is the unit in which the stacks of a profile are counted.
type Weight uint8

const (
	// Samples is how often a stack was seen.
	Samples Weight = iota
	// CPUTime is the CPU time, in nanoseconds, that threads had used up to the looks that found them in a stack.
	CPUTime
	// WallTime is the elapsed time, in nanoseconds, during which threads were in a stack. A profile of a wall-clock mode
	// has it in place of CPU time.
	WallTime
	// Bytes is the memory that an event was about, such as the allocated memory.
	Bytes

	numWeights = int(iota)
)

// numSlots is how many weights one profile can have: samples, and one kind of time, or bytes.
const numSlots = 2

func (w Weight) slot() int { return min(int(w), numSlots-1) }

// Of returns the value that counts in this weight.
func (w Weight) Of(looks int64, cpu, span time.Duration, bytes int64) int64 {
	switch w {
	case CPUTime:
		return int64(cpu)
	case WallTime:
		return int64(span)
	case Bytes:
		return bytes
	}
	return looks
}

func (w Weight) IsTime() bool { return w == CPUTime || w == WallTime }

// Frames for CPU time without a stack.
const (
	NotSampled    = "[not sampled]"    // of threads that were not seen on a CPU after they had used it
	ExitedThreads = "[exited threads]" // of threads that ended before a sample could carry it
)

var weightNames = [numWeights]string{Samples: "samples", CPUTime: "cpu", WallTime: "time", Bytes: "bytes"}

func (w Weight) String() string {
	if int(w) < numWeights {
		return weightNames[w]
	}
	return "unknown"
}

func WeightNames() []string { return weightNames[:] }

// ParseWeight is the inverse of String.
func ParseWeight(name string) (Weight, error) {
	for w, n := range weightNames {
		if n == name {
			return Weight(w), nil
		}
	}
	return Samples, fmt.Errorf("no weight is called %q: samples, cpu, time, bytes", name)
}

// MarshalText and UnmarshalText write and read a weight by its name.
func (w Weight) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

func (w *Weight) UnmarshalText(text []byte) (err error) {
	*w, err = ParseWeight(string(text))
	return err
}
