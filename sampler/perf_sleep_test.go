//go:build linux

package sampler

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/ptrace"
)

// A garbage collection does not wait for the end of a long sleep: all of goprof's work would stand still meanwhile.
func TestLongSleepHoldsUpNoCollection(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	// A ring of a prompt thread, though there is none: so each sample wakes us up.
	r := &perfRings{prompt: []*perfRing{}, polls: []unix.PollFd{{Fd: int32(pipe[0]), Events: unix.POLLIN}}}
	var begun, over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ptrace.OnThreadHoldingNobody(func() {
			ptrace.LeaveInPeace()
			begun.Store(true)
			r.wait(ptrace.Monotonic()+int64(time.Minute), true)
			over.Store(true)
		})
	}()
	for !begun.Load() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // until it sleeps
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
