//go:build linux

package ptrace

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
)

// Held is a thread that stands still.
type Held struct {
	TID     int
	Regs    arch.Regs
	Syscall int64
	PACMask uint64 // see process.Snapshot

	signal uintptr // that was on its way to the thread
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
	// holdPasses bounds how often new threads are looked for. A thread that has not stopped may start others.
	holdPasses = 64
	// reapEach is how often those that have ended are reaped while others are waited for: an exec, which does not stop,
	// waits for the ends of all others, also of those that stood still already (seize.go). It is some 10 ms.
	reapEach = 100
	// holdTick is how often a hold looks whether it must end.
	holdTick = 5 * time.Millisecond
)

// HoldAll stops all threads of a process while f runs. It differs from Look only in how long the threads stand still:
// they are seized and interrupted in the same way, and the kernel lets go of them if goprof dies. f runs on another
// goroutine, and may read the target.
//
// wait bounds how long the threads may take to stop, most how long they stand still. They are also let go when cancel
// is closed, which may be nil, and when goprof itself is to be stopped (Suspend). Then f may still be running, cut is
// closed, and the result is ErrLetGo.
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

// holding is a HoldAll under way. It stays on one OS thread.
type holding struct {
	t      *Tracer
	cancel <-chan struct{}
	seized map[int]bool
	coming []int // seized, and not known to stand still
	held   []Held
}

// ends says why a hold must end early, if it must.
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

// stopAll stops all threads, those included that others start meanwhile.
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
	if err := h.t.proc.Threads(make([]byte, 64<<10), func(tid int) { tids = append(tids, tid) }); err != nil {
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
		if !h.t.proc.Owns(tid) { // it goes on with the end of this OS thread
			return found, fmt.Errorf("%w: %d is the number of another process's thread by now", ErrNotHeld, tid)
		}
		h.seized[tid] = true
		h.coming, h.t.reaped = append(h.coming, tid), append(h.t.reaped, tid)
		found++
		ptrace(unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0)
	}
	return found, nil
}

// await waits until each seized thread stands still, or has ended.
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

// note keeps the registers of a thread that stands still.
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

// during runs f while all threads stand still.
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

// release lets all threads go on. A thread that has not stopped yet cannot be released: the kernel does that when this
// OS thread ends.
func (h *holding) release() {
	for _, t := range h.held {
		ptrace(unix.PTRACE_DETACH, uintptr(t.TID), 0, t.signal)
	}
	h.t.reapEnded()
}
