//go:build linux

package session

import (
	"maps"
	"strings"

	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// zWorkers returns how often ZGC's threads have moved, and whether all of them sleep. While they sleep, no thread moves
// objects. The list of threads is read each time because ZGC starts more threads when it needs them.
func (s *Session) zWorkers(proc *procfs.Dir) (moved map[int]ptrace.Motion, rest bool) {
	moved, rest = map[int]ptrace.Motion{}, true
	err := proc.Threads(func(tid int) {
		if !s.isZWorker(proc, tid) {
			return
		}
		m, ok := ptrace.MotionOf(proc, tid)
		rest = rest && ok && ptrace.InCall(proc, tid, s.Process.CPU(), s.Process.Read)
		moved[tid] = m
	})
	return moved, err == nil && rest && len(moved) > 0
}

// isZWorker reports whether a thread does ZGC's work, by its name. A thread names itself before it works. If a thread
// is not in the dump's list, its name is read each time.
func (s *Session) isZWorker(proc *procfs.Dir, tid int) bool {
	if th, ok := s.dir.threads[tid]; ok {
		return th != nil && th.java.Addr == 0 && workerName(th.kernel.Comm)
	}
	return workerName(string(proc.Read(tid, "comm")))
}

// zReader reads objects: vmstructs.Locks, vmstructs.Pools, vmstructs.Continuations.
type zReader interface {
	IsZGC() bool
	CollectorRests(bool)
}

// whileResting calls read, which reads objects by k. It returns false only under three conditions: the collector is
// ZGC, its threads rested before read, and one of them moved meanwhile.
func (s *Session) whileResting(k zReader, proc *procfs.Dir, read func()) bool {
	if !k.IsZGC() {
		read()
		return true
	}
	workers, rest := s.zWorkers(proc)
	k.CollectorRests(rest)
	defer k.CollectorRests(false)
	read()
	again, still := s.zWorkers(proc)
	return !rest || still && maps.Equal(workers, again)
}

func workerName(comm string) bool {
	return strings.HasPrefix(comm, "ZWorker") || strings.HasPrefix(comm, "XWorker")
}
