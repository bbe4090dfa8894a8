//go:build linux

package osthread

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// counting is the Room of countAlong.
type counting struct {
	asked, answered, over atomic.Uint32
}

// countAlong answers each number that it is asked for, until it is over.
//
//go:nosplit
func countAlong(room unsafe.Pointer) {
	c := (*counting)(room)
	for seen := uint32(0); c.over.Load() == 0; {
		asked := c.asked.Load()
		if asked == seen {
			futex(&c.asked, futexWaitUntil, seen, nil)
			continue
		}
		seen = asked
		c.answered.Store(asked)
		Wake(&c.answered)
	}
}

// TestThread: a function of Go's runs on an OS thread that Go does not know, while Go collects garbage, and ends.
func TestThread(t *testing.T) {
	for range 20 {
		th, err := NewThread(int(unsafe.Sizeof(counting{})))
		if raceEnabled {
			if err == nil {
				t.Fatal("the race detector does not know that thread")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := th.Start(countAlong); err != nil {
			t.Fatal(err)
		}
		c := (*counting)(th.Room())
		for n := uint32(1); n <= 1000; n++ {
			if n%100 == 0 {
				runtime.GC()
			}
			c.asked.Store(n)
			Wake(&c.asked)
			for end := soon(); c.answered.Load() != n; {
				if in(0) > end {
					t.Fatalf("%d is not answered", n)
				}
				ts := unix.NsecToTimespec(in(time.Millisecond))
				futex(&c.answered, futexWaitUntil, n-1, &ts)
			}
		}
		tid := th.TID()
		if !isThread(tid) {
			t.Errorf("%d is no thread of ours", tid)
		}
		c.over.Store(1)
		c.asked.Add(1)
		Wake(&c.asked)
		th.End()
	}
}
