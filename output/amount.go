package output

import (
	"fmt"
	"strconv"
	"time"

	"goprof/profile"
)

// figure is a weight without its unit's name.
func figure(w profile.Weight, n int64) string {
	if w.IsTime() {
		return Round(time.Duration(n)).String()
	}
	return strconv.FormatInt(n, 10)
}

// Amount is a weight in words: 1 sample, 1234 samples, 1.23s of CPU, or 1.23s of threads' time.
func Amount(w profile.Weight, n int64) string {
	switch w {
	case profile.CPUTime:
		return fmt.Sprintf("%s of CPU", Round(time.Duration(n)))
	case profile.WallTime:
		return fmt.Sprintf("%s of threads' time", Round(time.Duration(n)))
	}
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", n)
}
