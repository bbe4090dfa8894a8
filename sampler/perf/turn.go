//go:build linux

package perf

import (
	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// The sampling thread gives its real-time priority up for a long sleep (perfRings.wait). When it is woken up, it has to
// wait for its turn before it can take the priority again. Where CPUs are short that took 60 ms and more: rings of 4 MB
// were full, and new code was noted too late. So after a turn that came late the thread sleeps for short times only,
// with its priority, and tries a long sleep again later.

const (
	lateTurn = 2_000_000 // ns
	// turnsLate is for how long there are no long sleeps after a late turn. The time doubles up to turnsLateMost while
	// turns come late.
	turnsLate     = int64(1e9)
	turnsLateMost = 16 * turnsLate
)

// ownTurn is how long the sampling thread waits for a CPU, by the kernel's account.
type ownTurn struct {
	file   int    // its schedstat, as a descriptor + 1; 0: not open
	waited uint64 // as the account said last
	pause  int64  // how long there are no long sleeps
	until  int64  // so long
}

// comesSoon reports whether the thread may sleep without its priority. It is called on the sampling thread.
func (t *ownTurn) comesSoon(now int64) bool {
	if now < t.until {
		return false
	}
	t.waited, _ = t.read()
	return true
}

// note is called when such a sleep is over.
func (t *ownTurn) note(now int64) {
	if waited, ok := t.read(); ok {
		t.judge(now, int64(waited-t.waited))
	}
}

func (t *ownTurn) judge(now, waited int64) {
	if waited < lateTurn {
		t.pause = 0
		return
	}
	t.pause = min(max(2*t.pause, turnsLate), turnsLateMost)
	t.until = now + t.pause
}

func (t *ownTurn) read() (waited uint64, ok bool) {
	if t.file == 0 {
		fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, false
		}
		t.file = fd + 1
	}
	var buf [64]byte
	n, _ := unix.Pread(t.file-1, buf[:], 0)
	stat, ok := procfs.ParseSchedstat(buf[:max(n, 0)])
	return stat.Waited, ok
}

func (t *ownTurn) close() {
	if t.file != 0 {
		unix.Close(t.file - 1)
		t.file = 0
	}
}
