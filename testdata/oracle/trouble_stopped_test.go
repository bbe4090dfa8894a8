//go:build linux

package oracle

import (
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// TestGoprofStoppedByForce stops a goprof that samples as fast as it can at random moments by SIGSTOP: it does stop,
// and no thread of the program stands still with it. In full: GOPROF_STOPS=300 go test ./testdata/oracle -run
// TestGoprofStoppedByForce -v
func TestGoprofStoppedByForce(t *testing.T) {
	stops := envNumber("GOPROF_STOPS", 8)
	goprof := buildGoprof(t)
	jdk := jvmtest.JDKs(t)[0]
	file := filepath.Join(t.TempDir(), "counts")
	jvm := jvmtest.Start(t, jdk, "truth.Unharmed", "-Xmx64m", "--", file)
	dir := t.TempDir()
	cmd := exec.Command(goprof, "record", "--pid", strconv.Itoa(jvm.PID), "--engine", "ptrace", "-i", "100us", "-q", "-o",
		filepath.Join(dir, "out.collapsed"), "--summary", filepath.Join(dir, "sum.json"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	awaitHolding(t, jvm.PID)
	found := 0
	var stood []time.Duration // until goprof has let go, where it held a thread
	for range stops {
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
		signal(t, cmd.Process.Pid, syscall.SIGSTOP)
		began, holds := time.Now(), held(t, jvm.PID) > 0 // in the very moment: this is what the watchdog is for
		awaitHeld(t, cmd.Process.Pid, jvm.PID)
		if holds {
			found++
			stood = append(stood, time.Since(began))
		}
		before := worked(t, file)
		for n := 0; worked(t, file) == before; n++ {
			if n == 10_000 {
				t.Fatal("the program does not go on")
			}
			time.Sleep(time.Millisecond)
		}
		if s := threadStates(t, cmd.Process.Pid); s != "T" {
			t.Errorf("goprof was told to stop, and is in state %s", s)
		}
		signal(t, cmd.Process.Pid, syscall.SIGCONT)
		time.Sleep(20 * time.Millisecond)
	}
	signal(t, cmd.Process.Pid, syscall.SIGINT)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "sum.json"))
	var sum profile.Summary
	if err != nil || json.Unmarshal(b, &sum) != nil || sum.Samples == 0 || sum.Skipped == 0 {
		t.Errorf("%v: %s", err, b)
	}
	slices.Sort(stood)
	if found > 0 {
		t.Logf("a thread that goprof held when it was stopped stood still for %v, at most %v", stood[found/2], stood[found-1])
	}
	t.Logf("%d stops, %d of them met a thread that goprof held; own CPU %v in %v", stops, found, sum.OwnCPU,
		sum.Meta.Duration)
	jvm.Command("check")
}

// held is how many threads of a process somebody traces.
func held(t *testing.T, pid int) (traced int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + e.Name() + "/status")
		if err == nil && field(b, "TracerPid:") != 0 {
			traced++
		}
	}
	return traced
}

// awaitHolding waits until somebody traces a thread: goprof has begun.
func awaitHolding(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(jvmtest.Slow(time.Minute)); held(t, pid) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("goprof has not begun")
		}
		time.Sleep(time.Millisecond)
	}
}

// awaitHeld waits until goprof is stopped and holds nobody, twice in a row.
func awaitHeld(t *testing.T, goprof, pid int) {
	t.Helper()
	for calm, n := 0, 0; calm < 2; n++ {
		if n == 20_000 {
			t.Fatalf("goprof is in state %s and holds %d threads", threadStates(t, goprof), held(t, pid))
		}
		time.Sleep(30 * time.Millisecond)
		if held(t, pid) == 0 && threadStates(t, goprof) == "T" {
			calm++
		} else {
			calm = 0
		}
	}
}

// worked is the sum of what truth.Unharmed has counted.
func worked(t *testing.T, file string) (sum uint64) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 64; i+8 <= len(b); i += 64 {
		sum += binary.NativeEndian.Uint64(b[i:])
	}
	return sum
}
