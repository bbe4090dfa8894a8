package output

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"goprof/profile"
)

// figure is a weight without its unit's name, as short as a table's column.
func figure(w profile.Weight, n int64) string {
	switch {
	case w.IsTime():
		return Round(time.Duration(n)).String()
	case w == profile.Bytes:
		return size(n)
	}
	return strconv.FormatInt(n, 10)
}

// Amount is a weight in words: 1 sample, 1234 samples, 1.23 s of CPU, or 1.23 s of threads' time.
func Amount(w profile.Weight, n int64) string {
	switch w {
	case profile.CPUTime:
		return Span(time.Duration(n)) + " of CPU"
	case profile.WallTime:
		return Span(time.Duration(n)) + " of threads' time"
	case profile.Bytes:
		return size(n) + " allocated"
	}
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", n)
}

// Size is an amount of memory in words: 312 B, 1.5 MiB.
func Size(n uint64) string { return size(int64(min(n, 1<<62))) }

// size is an amount of memory with three digits or so: 312 B, 1.5 MiB.
func size(n int64) string {
	amount, unit := profile.InUnits(float64(n))
	return fmt.Sprintf("%.4g %s", amount, cmp.Or(unit, "B"))
}
