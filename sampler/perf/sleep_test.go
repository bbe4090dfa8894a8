//go:build linux

package perf

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/ptrace"
)

// A garbage collection does not wait for the end of a long sleep: otherwise all of goprof's work would wait for the
// collection.
func TestLongSleepHoldsUpNoCollection(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	// If there is a checker, the sampling thread sleeps until the checker calls.
	r := &perfRings{checker: &checkerThread{}, polls: []unix.PollFd{{Fd: int32(pipe[0]), Events: unix.POLLIN}}}
	var tid atomic.Int64
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ptrace.OnThreadHoldingNobody(func() {
			ptrace.LeaveInPeace()
			tid.Store(int64(unix.Gettid()))
			for end := ptrace.Monotonic() + int64(15*time.Second); r.polls[0].Revents == 0 && !over.Load(); {
				r.wait(end) // signals of Go's own end a sleep, too
				over.Store(ptrace.Monotonic() >= end)
			}
		})
	}()
	for tid.Load() == 0 || !isInPoll(t, int(tid.Load())) {
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		runtime.GC()
	}
	if over.Load() {
		t.Error("the collections took until the sleep had ended")
	}
	if _, err := unix.Write(pipe[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// A wait for others ends once. The time that looks may wait grows with the run, also during that wait.
func TestWaitForOthersEndsOnce(t *testing.T) {
	for _, handed := range []int64{1e8, 1e9, 3e9, 4_990_000_000} {
		q := sampler.NewQueue(8)
		r := &perfRun{q: q, wide: &wideEvents{}, handed: handed, now: handed}
		wakes := r.nextMoment(math.MaxInt64)
		if r.now = wakes; r.handAt() > wakes || r.handAt() < handed+q.Wait(handed) {
			t.Errorf("handed over at %d, awake at %d, and hands over at %d", handed, wakes, r.handAt())
		}
		q.Hurry(wakes)
		if r.handAt() != handed+sampler.KeptInHurry {
			t.Errorf("in a hurry it hands over at %d", r.handAt())
		}
	}
}

// isInPoll reports whether a thread of the test is in ppoll(2).
func isInPoll(t *testing.T, tid int) bool {
	t.Helper()
	call, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/syscall")
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(string(call), strconv.Itoa(unix.SYS_PPOLL)+" ")
}
