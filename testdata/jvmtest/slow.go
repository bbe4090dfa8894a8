//go:build linux

package jvmtest

import (
	"os"
	"strconv"
	"time"
)

// Slow is d on this machine: GOPROF_SLOW says how many times slower than others it is, as an emulated one is.
func Slow(d time.Duration) time.Duration {
	times, _ := strconv.Atoi(os.Getenv("GOPROF_SLOW"))
	return d * time.Duration(max(times, 1))
}
