package ptrace

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets of at most 1/16 relative width. It is a fixed array: adding never allocates,
// and its size does not depend on the length of the run.
type Histogram struct {
	buckets [60 << histBits]uint32
	count   int64
	max     int64
	sum     int64
}

// histBits is how many bits after the leading one distinguish buckets.
const histBits = 4

//go:nosplit
func bucketOf(ns int64) int {
	v := uint64(max(ns, 0))
	if v < 1<<histBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - histBits
	return (shift+1)<<histBits | int(v>>shift)&(1<<histBits-1)
}

func bucketEnd(b int) int64 {
	if b < 1<<histBits {
		return int64(b)
	}
	shift := b>>histBits - 1
	return (int64(1<<histBits|b&(1<<histBits-1))+1)<<shift - 1
}

// Add counts one duration in nanoseconds.
//
//go:nosplit
func (h *Histogram) Add(ns int64) {
	h.buckets[bucketOf(ns)]++
	h.count++
	h.sum += ns
	h.max = max(h.max, ns)
}

// Count returns how many durations were added.
func (h *Histogram) Count() int64 { return h.count }

// Sum returns the sum of all durations.
func (h *Histogram) Sum() time.Duration { return time.Duration(h.sum) }

// Max returns the exact longest duration.
func (h *Histogram) Max() time.Duration { return time.Duration(h.max) }

// Quantile returns a duration that a share q of all durations does not exceed. The result is at most 1/16 too high.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := min(int64(q*float64(h.count))+1, h.count)
	for b, n := range h.buckets {
		if rank -= int64(n); rank <= 0 {
			return time.Duration(min(bucketEnd(b), h.max))
		}
	}
	return time.Duration(h.max)
}
