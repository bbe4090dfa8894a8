package procfs

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// MonotonicOffset reads /proc/PID/timens_offsets: what a time namespace adds to CLOCK_MONOTONIC. A line is the clock,
// seconds and nanoseconds (kernel/time/namespace.c, proc_timens_show_offsets).
func MonotonicOffset(b []byte) (time.Duration, bool) {
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) != 3 || string(f[0]) != "monotonic" && string(f[0]) != "1" { // older kernels number the clocks
			continue
		}
		s, err := strconv.ParseInt(string(f[1]), 10, 64)
		ns, err2 := strconv.ParseInt(string(f[2]), 10, 64)
		const most = math.MaxInt64/int64(time.Second) - 1
		if err != nil || err2 != nil || s > most || s < -most || ns < 0 || ns >= int64(time.Second) {
			return 0, false
		}
		return time.Duration(s)*time.Second + time.Duration(ns), true
	}
	return 0, false
}
