//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// costRefreshes is how many readings the cost is measured over, costTries how often the test measures, and costMost
// what the cost should be.
const costRefreshes, costTries, costMost = 20, 3, 0.05

// TestTopCost: top reads once a second 200 threads that wake up once a second each. It uses less than 5 % of one
// CPU. On a shared machine the same work uses more CPU time, so make test leaves this test out:
//
//	GOPROF_PROVE=1 go test ./cmd/goprof -run TestTopCost -v
func TestTopCost(t *testing.T) {
	if os.Getenv("GOPROF_PROVE") != "1" {
		t.Skip("a figure, measured for a minute: set GOPROF_PROVE=1")
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "200", "1")
	s := startOnScreen(t, 120, 50, nil, "top", strconv.Itoa(jvm.PID))
	s.await(`METHOD by self, [1-9]\d* samples`)
	share, text := 1.0, ""
	for range costTries { // other work on the machine makes this work dearer, and never cheaper
		cpu, began := cpuOf(t, s.cmd.Process.Pid), time.Now()
		time.Sleep(costRefreshes * time.Second)
		cpu = cpuOf(t, s.cmd.Process.Pid) - cpu
		share, text = cpu.Seconds()/time.Since(began).Seconds(), s.text()
		t.Logf("%.1f ms of CPU for each reading, %.2f %% of one CPU; top itself says %s %%; %s",
			cpu.Seconds()*1e3/costRefreshes, 100*share, column(text, `(?m)^goprof +([\d.]+)% of a CPU`),
			column(text, `(\d+ threads)`))
		if share <= costMost {
			break
		}
	}
	s.keys("q")
	s.wait()
	if share > costMost {
		t.Errorf("top uses %.2f %% of a CPU\n%s", 100*share, text)
	}
}

// cpuOf is the CPU time that a process has used (proc(5), /proc/PID/stat, utime and stime).
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
