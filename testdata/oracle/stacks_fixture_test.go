//go:build linux

package oracle

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/captured"
	"goprof/testdata/jvmtest"
)

// TestRecordWalks makes the fixtures of package unwind: walks of javac with all the memory
// that they read. It is run by hand, when the walker has come to read other memory:
//
//	GOPROF_RECORD_WALKS=300 go test ./testdata/oracle -run TestRecordWalks
func TestRecordWalks(t *testing.T) {
	n := wantedWalks(t)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "30")
		rec := recordWalks(t, jvm.PID, n)
		file := walksFile(t, "walks", "javac", jdk)
		if dir := os.Getenv("GOPROF_RECORD_DIR"); dir != "" {
			file = filepath.Join(dir, filepath.Base(file))
		}
		saveWalks(t, rec, file)
	})
}

// wantedWalks is how many walks are to be recorded. No test run makes fixtures by the way.
func wantedWalks(t *testing.T) int {
	t.Helper()
	n, _ := strconv.Atoi(os.Getenv("GOPROF_RECORD_WALKS"))
	if n <= 0 {
		t.Skip("makes fixtures: set GOPROF_RECORD_WALKS to their number")
	}
	return n
}

func recordWalks(t *testing.T, pid, n int) *captured.Recorder {
	s := attach(t, pid)
	rec, w := recorderOf(t, s.Process)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var stack profile.Stack
	walks := 0
	s.Sampling(session.PtraceEngine).Run(ctx, sampler.Config{Interval: 3 * time.Millisecond}, func(snap *look.Look) {
		if walks == n {
			return
		}
		rec.Begin(&snap.Snapshot)
		w.Walk(&snap.Snapshot, &stack)
		if walks++; walks == n {
			cancel()
		}
	})
	return rec
}
