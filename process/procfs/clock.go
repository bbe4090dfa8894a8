package procfs

import (
	"bytes"
	"strconv"
	"time"
)

// Tick is the unit of time in stat: USER_HZ is 100 on both CPUs (include/asm-generic/param.h).
const Tick = 10 * time.Millisecond

// Ticks is the length of n ticks, bounded to about 87 years.
func Ticks(n uint64) time.Duration { return time.Duration(min(n, 1<<38)) * Tick }

// Uptime reads /proc/uptime: how long ago the machine was started.
func Uptime(b []byte) (time.Duration, bool) {
	first, _, _ := bytes.Cut(b, []byte(" "))
	s, err := strconv.ParseFloat(string(first), 64)
	if err != nil || !(s >= 0 && s < 1e9) {
		return 0, false
	}
	return time.Duration(s * float64(time.Second)), true
}
