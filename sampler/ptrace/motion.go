//go:build linux

package ptrace

import "goprof/process/procfs"

// MotionOf reads how a thread has moved so far. A thread of which two readings are equal has not run from the one to
// the other, unless it is on a CPU (StillRuns): then nothing is known.
func MotionOf(proc *procfs.Dir, tid int) (Motion, bool) {
	f := followed{proc, tid, noFollowed}
	defer f.close()
	return f.motion()
}

// StillRuns reports whether the thread was on a CPU, or wanted one, or has ended.
func (m Motion) StillRuns() bool {
	switch m.State {
	case 'R', 'Z', 'X', 0:
		return true
	}
	return false
}
