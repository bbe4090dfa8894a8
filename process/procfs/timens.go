package procfs

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"time"
)

// MonotonicOffset reads from /proc/PID/timens_offsets what a time namespace adds to CLOCK_MONOTONIC. A line has the
// clock, seconds and nanoseconds (kernel/time/namespace.c, proc_timens_show_offsets).
func MonotonicOffset(b []byte) (time.Duration, bool) {
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) != 3 || string(f[0]) != "monotonic" && string(f[0]) != "1" { // older kernels write the clock's number
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

// ClockAhead returns what the time namespace of a process adds to the machine's CLOCK_MONOTONIC. pid may be "self". It
// is not known before Linux 5.6, which has no time namespaces. It is also not known if the process's children have
// another namespace, because the file then describes that one.
func ClockAhead(pid string) (time.Duration, bool) {
	dir := "/proc/" + pid
	lives, err := os.Readlink(dir + "/ns/time")
	if err != nil {
		return 0, false
	}
	if children, err := os.Readlink(dir + "/ns/time_for_children"); err != nil || children != lives {
		return 0, false
	}
	b, err := Read(dir+"/timens_offsets", MaxFile)
	if err != nil {
		return 0, false
	}
	return MonotonicOffset(b)
}
