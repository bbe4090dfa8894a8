//go:build linux

package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/testdata/jvmtest"
)

const (
	// maxRSS is what goprof may use at most of memory while it records, in KB.
	maxRSS = 100_000
	// maxOwnThreads bounds goprof's threads: the sampler's, and what Go's runtime needs.
	maxOwnThreads = 24
)

// TestRecordIsSmall watches the command while it records javac, whose stacks are deep and of
// many kinds, at 1,000 Hz.
func TestRecordIsSmall(t *testing.T) {
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "30")
		defer jvm.Kill() // it would end after two rounds only
		again(t, func(t testing.TB) { recordSmall(t, goprof, jvm.PID) })
	})
}

func recordSmall(t testing.TB, goprof string, pid int) {
	dir := t.TempDir()
	cmd := exec.Command(goprof, "record", "--pid", strconv.Itoa(pid), "-d", "4s", "-r", "1000", "-t", "-q",
		"-o", filepath.Join(dir, "out.collapsed"), "--summary", filepath.Join(dir, "sum.json"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rss, threads := watch(t, cmd)
	sum := readSummary(t, filepath.Join(dir, "sum.json"))
	checkAccount(t, sum)
	t.Logf("%d samples, %d truncated, %d lost of %d; peak RSS %d KB, %d threads; CPU %v in %v",
		sum.Samples, sum.Truncated, sum.Lost, sum.Attempted, rss, threads, sum.OwnCPU, sum.Meta.Duration)
	if rss == 0 || rss > maxRSS {
		t.Errorf("peak RSS is %d KB", rss)
	}
	if threads == 0 || threads > maxOwnThreads {
		t.Errorf("%d threads", threads)
	}
}

// watch waits for a command and returns its peak RSS in KB (VmHWM: ru_maxrss counts the program
// that started it, too) and the number of its threads.
func watch(t testing.TB, cmd *exec.Cmd) (rss, threads int) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	status := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status")
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", cmd, err)
			}
			return rss, threads
		case <-time.After(10 * time.Millisecond):
			if raw, err := os.ReadFile(status); err == nil {
				rss, threads = max(rss, field(raw, "VmHWM:")), max(threads, field(raw, "Threads:"))
			}
		}
	}
}

// field takes a number out of /proc/PID/status; 0 if it is not there (any more).
func field(status []byte, name string) int {
	_, rest, _ := strings.Cut(string(status), "\n"+name)
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return 0
	}
	return n
}

func readSummary(t testing.TB, path string) *profile.Summary {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := output.ReadSummary(f)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
