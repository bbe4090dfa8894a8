//go:build linux

package session

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/threads"
)

// On a busy machine a snapshot waits for its walk, and the JVM may free the thread's code in the meantime. So the walk
// of an old snapshot counts only if everything that the walk used certainly existed at the time of the look. Three
// facts together prove this:
//
//   - The generated code and the methods existed then. Package vmstructs knows how long they have existed
//     (vmstructs/age.go).
//   - The native code is the same: no library was mapped or unmapped since.
//   - The thread had begun by then, so its number did not belong to another thread. The sample also gets the name that
//     the thread had then (labelAt).
//
// One other fact is proof by itself: the kernel's counters show that the thread has not run since the look. The code
// and the method of a frame stay as long as the frame is on a stack.
//
// A sample without proof is lost as stale.

const (
	// young is the age up to which a proven walk is enough: the VM takes longer to free code and to put other code in its
	// place. TestLateWalks saw the first wrong name at 15 ms, and none at 8.
	young = 4 * time.Millisecond
	// oldest is the greatest age of a snapshot. Only the last two names of its thread are known.
	oldest = 5 * time.Second
	// behind: if snapshots wait this long for their walk, some will soon be too old. Then perf takes fewer samples.
	behind = oldest / 2
)

// isTooOld reports whether a sample is too old to be proven, whatever its walk shows. It informs the queue if walks are
// late.
func (r *recording) isTooOld(snap *look.Look) bool {
	age := time.Duration(now() - snap.When)
	if age > behind && r.queue != nil {
		r.queue.Behind(snap.When)
	}
	return age > oldest && snap.Tally == nil
}

// proven reports whether the walk that was just made shows where the thread was at the time seen. since is the result
// of Walker.Since for the walk.
func (r *recording) proven(snap *look.Look, seen, since int64) bool {
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
	return since <= seen && r.mappedAt <= seen && !r.beganAfter(snap.TID, seen)
}

// hasNotRunSince reports whether a thread has not run since the kernel reported the CPU time then.
func (r *recording) hasNotRunSince(tid int, then *look.Charge) bool {
	now, ok := threads.Charged(r.Process.PID(), tid)
	return ok && now == *then
}

// beganAfter reports whether the thread that has this number now began after the moment seen.
func (r *recording) beganAfter(tid int, seen int64) bool {
	th := r.dir.threads[tid]
	if th == nil {
		return false // no thread has this number: the sample has no name
	}
	if start := th.kernel.Start; th.begun.start != start || seen < th.begun.by {
		var boot unix.Timespec
		if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
			return true
		}
		if int64(start)*int64(procfs.Tick) > seen+boot.Nano()-now() {
			return true
		}
		th.begun = begun{start, seen}
	}
	return false
}

// begun notes that the thread with the start time start (process.Thread.Start) existed at the time by. Later times need
// no further check.
type begun struct {
	start uint64
	by    int64
}
