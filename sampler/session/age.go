//go:build linux

package session

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/look"
)

// Where CPUs are short a snapshot waits for its walk. Then its age proves nothing: what its thread was in may be
// there still, or be gone. So the walk of an old one counts if it is known that all that it relied on was there when
// the thread was seen:
//
//   - generated code and methods: since when they are known to be there (vmstructs/age.go);
//   - native code: no library was mapped or unmapped since;
//   - the thread: it had begun by then, so that its number was not another one's (its name is that of then, too:
//     labelAt);
//   - or all at once: the kernel's counters say that the thread has not run since. While a frame is on a stack, the
//     code
//     and the method of it stay.
//
// What is not known is lost as stale.

const (
	// young is how old a snapshot may be without more being asked than that the walk was proven: to free code, and to
	// put other code in its place, the VM needs longer. TestLateWalks saw a wrong name at 15 ms, the first, and none
	// at 8.
	young = 4 * time.Millisecond
	// oldest bounds how old one may be in any case, for its thread's name is told from the last two.
	oldest = 5 * time.Second
)

// proven reports whether the walk that was made just now shows where a thread was at that moment.
func (r *recording) proven(snap *look.Look, seen int64) bool {
	if gen := r.Process.Generation(); gen != r.mapped {
		r.mapped, r.mappedAt = gen, now()
	}
	switch age := time.Duration(now() - seen); {
	case age <= young:
		return true
	case snap.Tally != nil && snap.Tally.Rest != nil && r.hasNotRunSince(snap.TID, snap.Tally.Rest):
		return true
	case age > oldest:
		return false
	}
	return r.Walker.Since() <= seen && r.mappedAt <= seen && !r.beganAfter(snap.TID, seen)
}

// hasNotRunSince reports whether a thread has not run since that was its charge.
func (r *recording) hasNotRunSince(tid int, then *look.Charge) bool {
	now, ok := sampler.Charged(r.Process.PID(), tid)
	return ok && now == *then
}

// beganAfter reports whether the thread that has that number now began later.
func (r *recording) beganAfter(tid int, seen int64) bool {
	th := r.dir.threads[tid]
	if th == nil {
		return false // nobody has the number: it is told without a name
	}
	var boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return true
	}
	return int64(th.kernel.Start)*int64(procfs.Tick) > seen+boot.Nano()-now()
}
