//go:build linux

package oracle

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process"
)

// stepper runs one thread instruction by instruction. It is for tests alone: goprof itself
// never steps, and never writes. The calling goroutine must be locked to its OS thread.
type stepper struct {
	p   *process.Process
	tid int

	pc, sp uint64
	code   [maxInstruction]byte // what the next step executes
	signal int                  // on its way to the thread: delivered by the next step
	// mayBlock: the next step may last although its instruction is no system call.
	mayBlock bool

	regs arch.Regs
	pac  uint64 // see process.Snapshot.PACMask
	raw  [512]byte
	vec  unix.Iovec
}

// errBlocked: the step entered a system call that does not come to its end.
var errBlocked = errors.New("the thread is blocked in a system call")

// errEnded: the thread has ended.
var errEnded = errors.New("the thread has ended")

// maxBlocked is how long one system call is waited for.
const maxBlocked = 20 * time.Millisecond

// stop makes the thread stand still; until resume the stepper is its tracer.
func (s *stepper) stop() error {
	if err := unix.PtraceSeize(s.tid); err != nil {
		return err
	}
	s.signal = 0
	s.mayBlock = true // a system call that we have interrupted is made again
	if err := s.interrupt(); err != nil {
		return err
	}
	s.pac = pacMask(s.tid)
	return s.read()
}

// resume lets the thread go for good.
func (s *stepper) resume() error {
	return s.ptrace(unix.PTRACE_DETACH, 0, uintptr(s.signal))
}

// interrupt waits for the stop that we ask for. A signal that is on its way is passed on, but
// not the trap of a step that was interrupted: nobody but us expects it.
func (s *stepper) interrupt() error {
	if err := unix.PtraceInterrupt(s.tid); err != nil {
		return err
	}
	for {
		status, err := s.wait(0)
		switch sig := status.StopSignal(); {
		case err != nil:
			return err
		case isSignalStop(status) && sig != unix.SIGTRAP:
			err = s.ptrace(unix.PTRACE_CONT, 0, uintptr(sig))
		case isSignalStop(status):
			err = s.ptrace(unix.PTRACE_CONT, 0, 0)
		case s.trapPending():
			return s.takeTrap()
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// trapPending: the trap that follows a stepped system call waits behind our stop
// (kernel/entry/common.c, report_single_step).
func (s *stepper) trapPending() bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.tid))
	_, after, found := strings.Cut(string(status), "\nSigPnd:\t")
	pending, parseErr := strconv.ParseUint(after[:min(16, len(after))], 16, 64)
	return err == nil && found && parseErr == nil && pending&(1<<(unix.SIGTRAP-1)) != 0
}

// takeTrap lets the thread go on to that trap, which comes before any instruction.
func (s *stepper) takeTrap() error {
	if err := s.ptrace(unix.PTRACE_CONT, 0, 0); err != nil {
		return err
	}
	_, err := s.wait(0)
	return err
}

// isSignalStop tells a signal about to be delivered, a step's SIGTRAP too, from the stop
// that was asked for (ptrace(2), PTRACE_EVENT_STOP).
func isSignalStop(status unix.WaitStatus) bool { return status>>16 == 0 }

// step executes one instruction, or delivers the signal that is on its way.
func (s *stepper) step() error {
	next := opOther
	if s.signal == 0 {
		next = opOf(s.code[:])
	}
	if done, err := s.instead(next); done {
		return err
	}
	if err := s.ptrace(unix.PTRACE_SINGLESTEP, 0, uintptr(s.signal)); err != nil {
		return err
	}
	mayBlock := s.mayBlock || next == opSyscall
	s.signal, s.mayBlock = 0, false
	status, err := s.awaitStep(mayBlock)
	if err != nil {
		return err
	}
	if sig := status.StopSignal(); isSignalStop(status) && sig != unix.SIGTRAP {
		s.signal = int(sig)
	}
	if err := s.read(); err != nil {
		return err
	}
	return s.afterwards(next)
}

// awaitStep waits for the end of a step. Only a system call can last.
func (s *stepper) awaitStep(mayBlock bool) (unix.WaitStatus, error) {
	if !mayBlock {
		return s.wait(0)
	}
	for end := time.Now().Add(maxBlocked); ; {
		status, err := s.wait(unix.WNOHANG)
		if err != nil || status != running {
			return status, err
		}
		if time.Now().After(end) {
			break
		}
		runtime.Gosched()
	}
	if err := s.interrupt(); err != nil {
		return 0, err
	}
	return 0, errBlocked
}

// running is no status that wait4 gives.
const running = unix.WaitStatus(0xffffffff)

func (s *stepper) wait(flags int) (unix.WaitStatus, error) {
	var status int32
	for {
		got, _, e := syscall.RawSyscall6(unix.SYS_WAIT4, uintptr(s.tid), uintptr(unsafe.Pointer(&status)),
			uintptr(flags|unix.WALL), 0, 0, 0)
		switch {
		case e == unix.EINTR:
			continue
		case e != 0:
			return 0, fmt.Errorf("wait4: %w", e)
		case got == 0:
			return running, nil
		}
		if ws := unix.WaitStatus(status); ws.Stopped() {
			return ws, nil
		}
		return 0, errEnded
	}
}

// read takes the registers.
func (s *stepper) read() error {
	s.vec.Base, s.vec.Len = &s.raw[0], uint64(len(s.raw))
	if err := s.ptrace(unix.PTRACE_GETREGSET, unix.NT_PRSTATUS, uintptr(unsafe.Pointer(&s.vec))); err != nil {
		return err
	}
	if _, ok := s.p.CPU().DecodeRegs(s.raw[:], &s.regs); !ok {
		return errors.New("short registers")
	}
	s.pc, s.sp = s.regs[s.p.CPU().PC], s.regs[s.p.CPU().SP]
	return nil
}

func (s *stepper) ptrace(request, addr, data uintptr) error {
	if _, _, e := syscall.RawSyscall6(unix.SYS_PTRACE, request, uintptr(s.tid), addr, data, 0, 0); e != 0 {
		return fmt.Errorf("ptrace %d: %w", request, e)
	}
	return nil
}
