//go:build linux

package events

import (
	"testing"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/sampler/ptrace"
)

// TestEventRest: records may wait for a while, and goprof has no real-time priority meanwhile. A thread that runs
// virtual threads ends that, because frames in the heap have to be read soon.
func TestEventRest(t *testing.T) {
	ptrace.OnThreadHoldingNobody(func() {
		e := New(1, cpus.Here(), nil, false)
		r := newEventRun(e)
		r.startResting()
		resting := policy(t)
		e.Advise(1, ptrace.Hint{StackTop: 1})
		r.takeHints()
		if r.rest == 0 {
			t.Error("there is no rest, but no virtual thread either")
		}
		e.Advise(2, ptrace.Hint{Soon: true})
		r.takeHints()
		hurried := policy(t)
		if r.rest != 0 {
			t.Error("records of virtual threads have to wait")
		}
		ptrace.WaitItsTurn()
		ptrace.PreemptAtOnce()
		if before := policy(t); resting == before && before != 0 || hurried != before {
			t.Errorf("policy %d at rest, then %d; it is %d before the rest", resting, hurried, before)
		}
	})
}

// policy returns how the kernel schedules this OS thread.
func policy(t *testing.T) uint32 {
	t.Helper()
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return attr.Policy
}
