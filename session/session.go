//go:build linux

// Package session attaches to a live JVM, records it, or looks at all its threads once. It connects packages sampler,
// unwind and profile, and counts the result of every look. If it cannot attach to a process, package diagnose, which
// imports this one, explains why.
package session

import (
	"errors"
	"time"

	"goprof/process"
	"goprof/sampler/ptrace"
	"goprof/unwind"
	"goprof/vmstructs"
)

// Session is one attached JVM. It belongs to one goroutine.
type Session struct {
	Process *process.Process
	VM      *vmstructs.VM
	Walker  *unwind.Walker // makes stacks from snapshots
	// Soon bounds the time between a thread's release and a reading of its frames in the heap (virtual.go).
	Soon   time.Duration
	dir    *directory
	memory *ptrace.Memory // for reads on the sampling thread

	safepoints *safepoints // set by WatchSafepoints

	timeOffset time.Duration // how far the target's CLOCK_MONOTONIC is ahead of goprof's
}

// startTries and startWait bound how long goprof waits for a JVM that has just started.
const (
	startTries = 50
	startWait  = 20 * time.Millisecond
)

// Attach opens the JVM pid. It only reads, and changes nothing in the JVM. It waits a second for a JVM that is still
// starting. If the memory of the process does not answer, it ends with process.ErrSilent.
func Attach(pid int) (*Session, error) {
	type attached struct {
		session *Session
		err     error
	}
	a, ok := OpenInTime(func(opened func(*process.Process)) attached {
		s, err := open(pid, opened)
		return attached{s, err}
	})
	if !ok {
		return nil, process.ErrSilent
	}
	return a.session, a.err
}

// open attaches to a process. It calls opened with the Process before it reads anything of the JVM.
func open(pid int, opened func(*process.Process)) (*Session, error) {
	defer runAhead()()
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	opened(p)
	vm, err := OpenVM(p)
	if err != nil {
		p.Close()
		return nil, err
	}
	vm.SetClock(now)
	s := &Session{Process: p, VM: vm, Walker: unwind.New(p, vm), Soon: soon,
		dir: newDirectory(p, vm), memory: ptrace.NewMemory(p), timeOffset: timeOffset(pid)}
	// Without the mapping of the stack, it is not known where memory ends.
	if maps := p.Mappings(); len(maps) > 0 && maps[len(maps)-1].Path == "[stack]" {
		s.Walker.MemoryEnds(maps[len(maps)-1].End)
	}
	return s, nil
}

// OpenVM finds the JVM in an open process. It waits a second for a JVM that is still starting.
func OpenVM(p *process.Process) (vm *vmstructs.VM, err error) {
	for range startTries {
		vm, err = vmstructs.Open(p)
		if !errors.Is(err, vmstructs.ErrStarting) {
			return vm, err
		}
		time.Sleep(startWait)
		if err := p.Refresh(); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// RawNames keeps the names of Java methods as the JVM has them (package naming lists the differences). Call it before
// the first stack.
func (s *Session) RawNames() { s.Walker.RawNames = true }

func (s *Session) Close() error { return s.Process.Close() }
