//go:build linux

package session

import (
	"strings"

	"goprof/sampler/ptrace"
)

// workers reads how ZGC's threads have moved, and reports whether all of them sleep. While they sleep no thread moves
// objects. ZGC makes more of them when it needs them, so the list of threads is read each time.
func (r *lockReader) workers() (moved map[int]ptrace.Motion, rest bool) {
	if !r.k.IsZGC() {
		return nil, false
	}
	moved, rest = map[int]ptrace.Motion{}, true
	var buf [1 << 15]byte
	err := r.proc.Threads(buf[:], func(tid int) {
		if !r.isWorker(tid) {
			return
		}
		m, ok := ptrace.MotionOf(r.proc, tid)
		rest = rest && ok && ptrace.InCall(r.proc, tid)
		moved[tid] = m
	})
	return moved, err == nil && rest && len(moved) > 0
}

// isWorker reports whether a thread does ZGC's work, by its name. A thread names itself before it does any work. The
// name of a thread that came after the dump's list was read is read each time.
func (r *lockReader) isWorker(tid int) bool {
	if th, ok := r.d.dir.threads[tid]; ok {
		return th != nil && th.java.Addr == 0 && workerName(th.kernel.Comm)
	}
	return workerName(string(r.proc.Read(tid, "comm")))
}

func workerName(comm string) bool {
	return strings.HasPrefix(comm, "ZWorker") || strings.HasPrefix(comm, "XWorker")
}
