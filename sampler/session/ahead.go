//go:build linux

package session

import (
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Where CPUs are short the walker would wait for one behind all that it measures, and snapshots with it. So while it
// attaches, records or dumps, goprof runs ahead of ordinary threads, where it is permitted to: docs/decisions/0006.
//
// Go moves goroutines from one OS thread to another, and a thread that passes one on must have a CPU for that. So all
// threads of goprof are given the better priority. A program that goprof starts does not inherit it, and a new thread
// of goprof's does not either: its minder looks for those.

const (
	// aheadNice is the priority. It is worth ten times the CPU time of an ordinary thread (kernel/sched/core.c,
	// sched_prio_to_weight), and, what counts, an earlier turn.
	aheadNice = -10
	// aheadShare is the part of a CPU, in percent, above which it is given back: for one aheadEvery at least.
	aheadShare = 50
	aheadEvery = 250 * time.Millisecond
)

// ahead is how many recordings, dumps and attachments are under way, and the end of their minder.
var ahead struct {
	sync.Mutex
	users int
	end   chan struct{}
	done  chan struct{}
}

// runAhead gives goprof the better priority until the function that it returns has been called.
func runAhead() (end func()) {
	ahead.Lock()
	defer ahead.Unlock()
	if ahead.users++; ahead.users == 1 {
		ahead.end, ahead.done = make(chan struct{}), make(chan struct{})
		setAhead(0, aheadNice)
		go boundPriority(ahead.end, ahead.done)
	}
	return func() {
		ahead.Lock()
		defer ahead.Unlock()
		if ahead.users--; ahead.users == 0 {
			close(ahead.end)
			<-ahead.done
		}
	}
}

// StayAhead gives this process the better priority for good: for one that records all the time, and holds itself to a
// budget. Threads that Go makes later inherit it, so nobody has to look for those, but whatever this process starts
// would, too.
func StayAhead() { setPriority(0, aheadNice, 0) }

// boundPriority holds the priority to its bound.
func boundPriority(end, done chan struct{}) {
	defer close(done)
	defer setAhead(aheadNice, 0)
	tick := time.NewTicker(aheadEvery)
	defer tick.Stop()
	at, used := time.Now(), ownCPU()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
		}
		now, cpu := time.Now(), ownCPU()
		if (cpu-used)*100 > now.Sub(at)*aheadShare {
			setAhead(aheadNice, 0)
		} else {
			setAhead(0, aheadNice)
		}
		at, used = now, cpu
	}
}

// setAhead changes the priority of all threads of goprof's that have one. Threads that take samples have their own, and
// whoever was started with another keeps it. What the kernel refuses is left as it is.
func setAhead(from, to int32) { setPriority(from, to, resetOnFork) }

func setPriority(from, to int32, flags uint64) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil || attr.Policy != unix.SCHED_NORMAL || attr.Nice != from {
			continue
		}
		attr.Nice, attr.Flags = to, flags // to take that back would need CAP_SYS_NICE
		unix.SchedSetAttr(tid, attr, 0)
	}
}

// resetOnFork is SCHED_FLAG_RESET_ON_FORK (include/uapi/linux/sched.h).
const resetOnFork = 1
