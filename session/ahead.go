//go:build linux

package session

import (
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler"
)

// On a busy machine the walker would wait for a CPU behind the threads that it measures, and snapshots would wait for
// the walker. So while goprof attaches, records or dumps, it gives itself a better priority than ordinary threads, if
// that is permitted (docs/decisions/0006).
//
// Go moves goroutines between OS threads. The thread that hands over a goroutine must have a CPU for that. So all
// threads of goprof get the better priority. Programs that goprof starts do not inherit it. New threads of goprof do
// not inherit it either: the minder finds them.

const (
	// aheadNice is the priority. A thread with it may have ten times the CPU time of an ordinary thread
	// (kernel/sched/core.c, sched_prio_to_weight). More important, it gets its turn earlier.
	aheadNice = -10
	// aheadShare is a share of one CPU, in percent. If goprof uses more, it gives up the priority until the minder's next
	// check.
	aheadShare = 50
	// The minder first checks aheadBegins times, once each aheadSoon. After it has taken the priority away, it also waits
	// only aheadSoon. Otherwise it checks each aheadEvery, together with other work that can wait (sampler/pulse.go).
	aheadSoon   = 250 * time.Millisecond
	aheadBegins = 4
	aheadEvery  = time.Second
)

// ahead counts the current recordings, dumps and attachments, and knows how to end their minder.
var ahead struct {
	sync.Mutex
	users int
	end   chan struct{}
	done  chan struct{}
}

// runAhead gives goprof the better priority until the returned function is called.
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

// StayAhead gives this process the better priority for good. It is for a process that records all the time and keeps
// within a budget. Threads that Go creates later inherit the priority, so no minder is needed. Programs that this
// process starts would inherit it, too.
func StayAhead() { setPriority(0, aheadNice, 0) }

// boundPriority is the minder. It gives new threads the priority. If goprof uses more than aheadShare, it takes the
// priority from all threads.
func boundPriority(end, done chan struct{}) {
	defer close(done)
	defer setAhead(aheadNice, 0)
	tick := sampler.NewPulse(aheadSoon, 0)
	defer tick.Stop()
	m := minder{at: time.Now(), used: ownCPU()}
	for {
		select {
		case <-end:
			return
		case <-tick.C:
		}
		tick.Next(m.look(time.Now(), ownCPU()), 0)
		if m.over {
			setAhead(aheadNice, 0)
		} else {
			setAhead(0, aheadNice)
		}
	}
}

// minder judges how much CPU time goprof has used.
type minder struct {
	at     time.Time // of the last judgement
	used   time.Duration
	judged int
	over   bool // goprof has used more than its share
}

// look judges the CPU time used since the last judgement, and returns when to look again. It does not judge times much
// shorter than aheadSoon, for two reasons: the first tick of a Pulse comes at any moment, and a start takes much CPU
// time at once.
func (m *minder) look(now time.Time, used time.Duration) (again time.Duration) {
	passed := now.Sub(m.at)
	if passed < aheadSoon-aheadSoon/10 {
		return aheadSoon
	}
	m.over = (used-m.used)*100 > passed*aheadShare
	m.at, m.used = now, used
	if m.judged++; m.over || m.judged < aheadBegins {
		return aheadSoon
	}
	return aheadEvery
}

// setAhead changes the priority of goprof's threads: from becomes to. Threads with other priorities keep theirs: those
// that take samples, and all threads if goprof was started with another priority. If the kernel refuses, nothing
// changes.
func setAhead(from, to int32) { setPriority(from, to, resetOnFork) }

// setPriority changes the nice value of goprof's OS threads: from becomes to. It also sets their scheduling flags. It
// changes no thread with another scheduling policy.
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
		attr.Nice, attr.Flags = to, flags // clearing the flags again would need CAP_SYS_NICE
		unix.SchedSetAttr(tid, attr, 0)
	}
}

// resetOnFork is SCHED_FLAG_RESET_ON_FORK (include/uapi/linux/sched.h).
const resetOnFork = 1
