//go:build linux

package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"goprof/output/dumps"
	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestVirtualParked: virtual threads that no carrier runs are listed, each with its whole stack, from
// whatever container, with several collectors, and also of a JVM that is stopped.
func TestVirtualParked(t *testing.T) {
	t.Parallel()
	count := 600
	if s := os.Getenv("GOPROF_VIRTUAL_PARKED"); s != "" {
		count, _ = strconv.Atoi(s)
	}
	goprof := buildGoprof(t)
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range []string{"-Xmixed", "-Xint", "-XX:-UseCompressedOops", "-XX:+UseZGC", "-XX:+UseSerialGC"} {
			t.Run(mode, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.VirtualParked", mode,
					"--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED", "--", fmt.Sprint(count))
				s := attach(t, jvm.PID)
				checkAllParked(t, s, count)
				jvm.Command("collect") // ZGC leaves stale references behind
				checkAllParked(t, s, count)
				signal(t, jvm.PID, syscall.SIGSTOP)
				awaitStates(t, jvm.PID, "T")
				checkAllParked(t, s, count)
				signal(t, jvm.PID, syscall.SIGCONT)
				if mode == "-Xmixed" {
					checkDumpCommand(t, goprof, jvm.PID, count)
				}
			})
		}
	})
}

// checkDumpCommand runs what a user would: data on one stream, the account on the other.
func checkDumpCommand(t *testing.T, goprof string, pid, count int) {
	t.Helper()
	cmd := exec.Command(goprof, "dump", "--pid", strconv.Itoa(pid), "--virtual", "--json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var dump struct {
		Threads []dumpedThread
		Virtual profile.VirtualCensus `json:"virtual_threads"`
	}
	if err := json.Unmarshal(out, &dump); err != nil {
		t.Fatal(err)
	}
	parked := 0
	for _, th := range dump.Threads {
		if th.Virtual != nil && strings.HasPrefix(th.Virtual.Name, "parked-") && th.Truncated == "" {
			parked++
		}
	}
	account := fmt.Sprintf("goprof: %d virtual threads, %d of them shown that no carrier ran\n", dump.Virtual.Seen,
		dump.Virtual.Shown)
	if parked*100 < count*95 || !strings.HasPrefix(stderr.String(), account) {
		t.Errorf("%d of %d whole, %+v: %s", parked, count, dump.Virtual, &stderr)
	}
	for why, n := range dump.Virtual.Unread {
		if !strings.Contains(stderr.String(), fmt.Sprintf("goprof: %d could not be read, or not whole: %s\n", n, why)) {
			t.Errorf("%d %s is not told: %s", n, why, &stderr)
		}
	}
}

// checkAllParked fails the test if less than 95 of 100 are there, or one of them is not as it should be.
func checkAllParked(t *testing.T, s *session.Session, count int) {
	t.Helper()
	all, census, err := s.DumpVirtual(session.DumpOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]bool{}
	for i := range all {
		th := &all[i]
		number, err := strconv.Atoi(strings.TrimPrefix(th.Virtual.Name, "parked-"))
		if err != nil || th.Err != "" || th.Stack.Truncated != profile.Whole {
			t.Logf("%q %s: %s%v", th.Virtual.Name, th.State, th.Err, th.Stack.Truncated)
			continue
		}
		if found[number] {
			t.Errorf("%s is there twice", th.Virtual.Name)
		}
		found[number] = true
		if err := parkedStack(th, number); err != nil {
			t.Errorf("%s: %v", th.Virtual.Name, err)
		}
	}
	if len(found)*100 < count*95 {
		t.Errorf("%d of %d virtual threads are there: %+v", len(found), count, census)
	}
	var b bytes.Buffer
	d := &profile.Dump{Threads: all, Virtual: &census}
	if err := dumps.JSON(&b, d, dumps.Shape{}); err != nil || !strings.Contains(b.String(), `"shown"`) {
		t.Error(err, b.Len())
	}
	t.Logf("%d of %d, %+v", len(found), count, census)
}

// parkedStack checks thread number n of truth.VirtualParked.
func parkedStack(th *profile.ThreadDump, n int) error {
	want := "parked"
	if n%4 == 0 {
		want = "timed-parked"
	}
	if th.State != want && !(n%4 == 0 && th.State == "parked") { // 21 has one word for both
		return fmt.Errorf("it is %s, not %s", th.State, want)
	}
	down, bottom, run := 0, 0, 0
	for _, f := range th.Stack.Frames {
		switch f.Func.Name {
		case "truth.VirtualParked.down":
			down++
		case "truth.VirtualParked.bottom":
			bottom++
		case "java.lang.VirtualThread.run":
			run++
		}
	}
	if down != n%40+1 || bottom != 1 || run != 1 {
		return fmt.Errorf("%d times down, %d bottom, %d run", down, bottom, run)
	}
	return nil
}

// TestVirtualUntracked: a JVM that keeps only threads of executors says nothing of the others, and that is told.
func TestVirtualUntracked(t *testing.T) {
	t.Parallel()
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.VirtualParked", "-Djdk.trackAllThreads=false",
			"--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED", "--", "160")
		all, census, err := attach(t, jvm.PID).DumpVirtual(session.DumpOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// One of four is started without an executor.
		if len(all) != 120 || !census.Untracked || census.Seen != 120 {
			t.Errorf("%d shown, %+v", len(all), census)
		}
	})
}

// TestNoVirtualThreads: a JVM without any has none, and one that knows none says so.
func TestNoVirtualThreads(t *testing.T) {
	t.Parallel()
	goprof := buildGoprof(t)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, _ := startParked(t, jdk)
		if out, err := exec.Command(goprof, "dump", "--pid", strconv.Itoa(jvm.PID),
			"--virtual").CombinedOutput(); (err == nil) != (jdk.Version >= 21) {
			t.Errorf("dump --virtual: %v: %s", err, out)
		}
		all, census, err := attach(t, jvm.PID).DumpVirtual(session.DumpOptions{})
		if jdk.Version < 21 && !errors.Is(err, session.ErrNoVirtual) || jdk.Version >= 21 && err != nil {
			t.Error(err)
		}
		if len(all) != 0 || census.Seen != 0 || len(census.Unread) != 0 {
			t.Errorf("%d shown, %+v", len(all), census)
		}
	})
}
