//go:build linux

package ptrace

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWaitItsTurn: a thread that waits its turn has no real-time priority, and gets it back. If the thread may no
// longer have that priority, or may only by a limit, it must rest all the same: it then has no better ordinary
// priority.
func TestWaitItsTurn(t *testing.T) {
	for _, r := range []struct {
		name          string
		begin, middle func(t *testing.T) // called before the thread gets real-time priority, and afterwards
		urgent, again bool               // whether the thread has real-time priority, before it waits and afterwards
	}{
		{"with all rights", keepRights, keepRights, true, true},
		{"the right is gone", keepRights, dropSysNice, true, false},
		{"with no right", dropSysNice, keepRights, false, false},
	} {
		t.Run(r.name, func(t *testing.T) {
			runtime.LockOSThread() // for good: the thread and its rights end with the test
			may := hasSysNice(t) && runtime.NumCPU() > 1
			r.begin(t)
			preemptAtOnce()
			if got := isUrgent(); got != (may && r.urgent) {
				t.Fatalf("real-time priority: %v", got)
			}
			r.middle(t)
			if rests := WaitItsTurn(); !rests || isUrgent() || ownPolicy(t) != unix.SCHED_NORMAL {
				t.Errorf("it rests: %v, with real-time priority: %v", rests, isUrgent())
			}
			PreemptAtOnce()
			if again := isUrgent(); again != (may && r.again) {
				t.Errorf("real-time priority after that: %v", again)
			}
		})
	}
}

func keepRights(*testing.T) {}

func hasSysNice(t *testing.T) bool {
	_, sets := rightsOf(t)
	return sets[0].Effective&(1<<unix.CAP_SYS_NICE) != 0
}

func dropSysNice(t *testing.T) {
	head, sets := rightsOf(t)
	sets[0].Effective &^= 1 << unix.CAP_SYS_NICE
	if err := unix.Capset(&head, &sets[0]); err != nil {
		t.Fatal(err)
	}
}

func rightsOf(t *testing.T) (head unix.CapUserHeader, sets [2]unix.CapUserData) {
	t.Helper()
	head.Version = unix.LINUX_CAPABILITY_VERSION_3
	if err := unix.Capget(&head, &sets[0]); err != nil {
		t.Fatal(err)
	}
	return head, sets
}
