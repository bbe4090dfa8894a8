//go:build linux

package ptrace

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
)

// Held is a stopped thread.
type Held struct {
	TID     int
	Regs    arch.Regs
	Syscall int64
	PACMask uint64 // see process.Snapshot

	signal uintptr // the signal that was about to be delivered
}

var (
	// ErrTracedBy: another process traces a thread, so it cannot be held.
	ErrTracedBy = errors.New("another process traces it")
	// ErrNotHeld: not all threads stopped in time. All of them go on.
	ErrNotHeld = errors.New("not all threads stopped in time, so all of them go on")
	// ErrLetGo: the threads were let go before f had returned.
	ErrLetGo = errors.New("all threads go on before the dump is complete")
)

const (
	// holdPasses bounds how often HoldAll looks for new threads. A thread that has not stopped may start others.
	holdPasses = 64
	// reapEach is how many checks pass between two reapings of ended threads, some 10 ms. Reaping is needed because of
	// an exec. A thread in an exec does not stop, and waits for the ends of all others, including stopped ones
	// (seize.go).
	reapEach = 100
	// holdTick is how often a hold checks whether it must end.
	holdTick = 5 * time.Millisecond
)

// HoldAll stops all threads of a process while f runs. It differs from Look only in the length of the pause. It seizes
// and interrupts threads in the same way, and the kernel releases them if goprof dies. f runs on another goroutine, and
// may read the target.
//
// wait bounds how long the threads may take to stop, and most how long they stay stopped. HoldAll also releases them
// when cancel is closed, which may be nil, and when goprof itself is about to be stopped (Suspend). Then f may still be
// running, cut is closed, and the result is ErrLetGo.
func HoldAll(pid int, cpu *arch.CPU, cancel <-chan struct{}, wait, most time.Duration,
	f func(all []Held, cut <-chan struct{})) (err error) {
	OnOwnThread(func() {
		h := holding{t: NewTracer(pid, cpu), cancel: cancel, seized: map[int]bool{}}
		h.t.onItsThread()
		defer h.t.Close()
		defer h.release()
		if err = h.stopAll(Monotonic() + int64(wait)); err == nil {
			err = h.during(most, f)
		}
	})
	return err
}

// holding is the state of a HoldAll. It stays on one OS thread.
type holding struct {
	t      *Tracer
	cancel <-chan struct{}
	seized map[int]bool
	coming []int // seized, but not known to be stopped
	held   []Held
}

// ends returns why a hold must end early, "" if it need not.
func (h *holding) ends() string {
	select {
	case <-h.cancel:
		return "goprof was interrupted"
	default:
	}
	if SuspendWanted() {
		return "goprof was stopped"
	}
	return ""
}

// stopAll stops all threads, including those that are started meanwhile.
func (h *holding) stopAll(until int64) error {
	for range holdPasses {
		found, err := h.seizeNew()
		if err != nil {
			return err
		}
		if err := h.await(until); err != nil {
			return err
		}
		if found == 0 {
			if len(h.held) == 0 {
				return unix.ESRCH
			}
			return nil
		}
	}
	return fmt.Errorf("%w: new ones come again and again", ErrNotHeld)
}

// seizeNew tells new threads to stop, and returns how many there were.
func (h *holding) seizeNew() (found int, err error) {
	var tids []int
	if err := h.t.proc.Threads(func(tid int) { tids = append(tids, tid) }); err != nil {
		return 0, err
	}
	for _, tid := range tids {
		if h.seized[tid] {
			continue
		}
		if e := h.t.seize(tid); e != 0 {
			state, tracer := h.t.proc.Status(tid)
			switch {
			case e == unix.ESRCH, state == 'Z', state == 'X', state == 0: // it has ended
				continue
			case tracer != 0:
				return found, ErrTracedBy
			}
			return found, &SyscallError{"PTRACE_SEIZE", e}
		}
		if !h.t.proc.Owns(tid) { // this thread is released when this OS thread ends
			return found, fmt.Errorf("%w: %d is the number of another process's thread by now", ErrNotHeld, tid)
		}
		h.seized[tid] = true
		h.coming, h.t.reaped = append(h.coming, tid), append(h.t.reaped, tid)
		found++
		ptrace(unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0)
	}
	return found, nil
}

// await waits until each seized thread is stopped or has ended.
func (h *holding) await(until int64) error {
	for pass := 1; ; pass++ {
		still := h.coming[:0]
		for _, tid := range h.coming {
			switch s, sig := h.t.peek(tid); s {
			case stopped:
				if err := h.note(tid, sig); err != nil {
					return err
				}
			case running:
				still = append(still, tid)
			}
		}
		if h.coming = still; len(still) == 0 {
			return nil
		}
		if why := h.ends(); why != "" {
			return fmt.Errorf("%w: %s", ErrNotHeld, why)
		} else if Monotonic() > until {
			return fmt.Errorf("%w: %d of %d", ErrNotHeld, len(still), len(h.seized))
		}
		if time.Sleep(100 * time.Microsecond); pass%reapEach == 0 {
			h.t.reapEnded()
		}
	}
}

// note keeps the registers of a stopped thread.
func (h *holding) note(tid int, sig uintptr) error {
	if e := h.t.getRegs(tid); e != 0 {
		return nil // it was killed
	}
	t := Held{TID: tid, signal: sig}
	var ok bool
	if t.Syscall, ok = h.t.cpu.DecodeRegs(h.t.regs[:h.t.cpu.PrstatusSize], &t.Regs); !ok {
		return &SyscallError{"PTRACE_GETREGSET", unix.EIO}
	}
	if h.t.pacDue {
		h.t.getPAC(tid)
	}
	t.PACMask = h.t.pac[1]
	h.held = append(h.held, t)
	return nil
}

// during runs f while all threads are stopped.
func (h *holding) during(most time.Duration, f func([]Held, <-chan struct{})) error {
	done, cut := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		f(h.held, cut)
	}()
	over := time.After(most)
	for {
		select {
		case <-done:
			return nil
		case <-over:
			close(cut)
			return fmt.Errorf("%w: %v are over", ErrLetGo, most)
		case <-time.After(holdTick):
			if why := h.ends(); why != "" {
				close(cut)
				return fmt.Errorf("%w: %s", ErrLetGo, why)
			}
		}
	}
}

// release releases all threads. A thread that has not stopped yet cannot be released: the kernel does that when this OS
// thread ends.
func (h *holding) release() {
	for _, t := range h.held {
		ptrace(unix.PTRACE_DETACH, uintptr(t.TID), 0, t.signal)
	}
	h.t.reapEnded()
}
