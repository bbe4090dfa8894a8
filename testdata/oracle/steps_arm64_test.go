//go:build linux

package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pushed is by how much a call moves the stack pointer down: it leaves its return address in the link register.
const pushed = 0

const maxInstruction = 4

// inLinkRegister is no address: it stands for a return address that is not on the stack.
const inLinkRegister = ^uint64(0)

// signalReturn is where the kernel makes signal handlers return to: its own (arch/arm64/kernel/vdso/sigreturn.S).
const signalReturn = "__kernel_rt_sigreturn"

func opOf(code []byte) op { return opOfWord(binary.LittleEndian.Uint32(code)) }

// opOfWord tells an instruction by its encoding (Arm ARM, C4.1). It is written apart from package arch's decoder,
// which is among what it checks.
func opOfWord(w uint32) op {
	is := func(mask, bits uint32) bool { return w&mask == bits }
	switch {
	case is(0xfc000000, 0x94000000), is(0xfffffc1f, 0xd63f0000), is(0xfefff800, 0xd63f0800): // BL, BLR, BLRAA and its like
		return opCall
	case is(0xfffffc1f, 0xd65f0000), is(0xfffffbff, 0xd65f0bff): // RET, RETAA, RETAB
		return opReturn
	case is(0xfc000000, 0x14000000), is(0xfffffc1f, 0xd61f0000), is(0xfefff800, 0xd61f0800), // B, BR, BRAA and its like
		is(0xff000000, 0x54000000), is(0x7c000000, 0x34000000): // B.cond; CBZ, CBNZ, TBZ, TBNZ
		return opJump
	case is(0xffe0001f, 0xd4000001): // SVC
		return opSyscall
	case is(0x3fe00000, 0x08400000), is(0xbfe00000, 0x88600000): // LDXR, LDAXR and its like; of pairs
		return opExclusive
	}
	return opOther
}

// isStoreExclusive: STXR, STLXR and its like; of pairs.
func isStoreExclusive(w uint32) bool { return w&0x3fe00000 == 0x08000000 || w&0xbfe00000 == 0x88200000 }

// returnAddress is what a call leaves behind: the link register.
func (m *moment) returnAddress() (uint64, bool) { return m.regs[30] &^ m.snap.PACMask, true }

// calledFrom reports whether that is how a caller was found. The same address may stand on the stack, too, from an
// earlier call.
func (m *moment) calledFrom(caller *physical) bool {
	to, _ := m.returnAddress()
	return caller.pc == to
}

// mayMoveSlot: a method stores the link register when it builds its frame, and loads it when it drops it.
func mayMoveSlot(by op) bool { return by == opOther }

// slotOf finds where the return address into a frame stands. HotSpot's code keeps it right below the caller's
// frame, but for the interpreter: there the callee's locals lie between, and the word two below is the caller's
// sp (runtime/frame.hpp, interpreter_frame_sender_sp). A C compiler keeps it above the frame pointer that the
// callee has saved, anywhere in its frame.
func (m *moment) slotOf(callee, caller *physical) uint64 {
	returns := func(at uint64) bool {
		v, ok := m.word(at)
		return ok && v&^m.snap.PACMask == caller.pc
	}
	if callee.owner().Func.Name == signalReturn || callee.owner().Func.Module == "[vdso]" && nameless(callee.owner()) {
		return 0 // a signal interrupted the caller
	}
	if callee.framed {
		for at := callee.sp + 16; at <= caller.sp; at += 8 {
			if v, _ := m.word(at - 16); v == caller.sp && returns(at) {
				return at
			}
		}
	}
	if callee.sp < caller.sp && returns(caller.sp-8) {
		return caller.sp - 8
	}
	for at := callee.sp; at < caller.sp; at += 8 {
		if returns(at) {
			return at
		}
	}
	if callee == &m.frames[0] && m.calledFrom(caller) {
		return inLinkRegister // of a topmost frame that is not built yet, or no more, or needs none
	}
	return 0
}

// instead does what a step cannot do: each of them takes away what a store after an exclusive load depends on, so
// that the two would be tried for ever. They are run through, to where they end.
func (s *stepper) instead(next op) (done bool, err error) {
	if next != opExclusive {
		return false, nil
	}
	ends, err := s.endsOfExclusive()
	if err != nil {
		return true, err
	}
	return true, s.runTo(ends)
}

func (s *stepper) afterwards(op) error { return nil }

// maxExclusive is how many instructions an exclusive load and its store are apart at most: the CPU promises success
// for 128 bytes only (Arm ARM, B2.9.5).
const maxExclusive = 32

// endsOfExclusive lists where the code behind an exclusive load may go on: behind its store, and where it branches
// to before that.
func (s *stepper) endsOfExclusive() (ends []uint64, err error) {
	var code [maxExclusive * maxInstruction]byte
	if err := s.p.Read(s.pc, code[:]); err != nil {
		return nil, err
	}
	for at := 0; at < len(code); at += maxInstruction {
		w := binary.LittleEndian.Uint32(code[at:])
		pc := s.pc + uint64(at)
		switch {
		case isStoreExclusive(w):
			return append(ends, pc+maxInstruction), nil
		case w&0xff000000 == 0x54000000 || w&0x7e000000 == 0x34000000:
			ends = append(ends, pc+offset(w>>5, 19))
		case w&0x7e000000 == 0x36000000:
			ends = append(ends, pc+offset(w>>5, 14))
		case at > 0 && opOfWord(w) != opOther:
			return nil, fmt.Errorf("%#x: an exclusive load is followed by a %v", pc, opOfWord(w))
		}
	}
	return nil, fmt.Errorf("%#x: an exclusive load without a store", s.pc)
}

// offset is a branch's distance, a number of so many bits.
func offset(field uint32, bits int) uint64 {
	return uint64(int64(int32(field<<(32-bits))>>(32-bits)) * maxInstruction)
}

// runTo lets the thread run to one of these places, by the CPU's own breakpoints: nothing is written into it.
func (s *stepper) runTo(ends []uint64) error {
	if err := s.breakAt(ends); err != nil {
		return fmt.Errorf("breakpoints at %#x: %w", ends, err)
	}
	if err := s.ptrace(unix.PTRACE_CONT, 0, 0); err != nil {
		return err
	}
	s.signal, s.mayBlock = 0, false
	status, err := s.wait(0)
	if err != nil {
		return err
	}
	if sig := status.StopSignal(); isSignalStop(status) && sig != unix.SIGTRAP {
		s.signal = int(sig)
	}
	return errors.Join(s.breakAt(make([]uint64, len(ends))), s.read())
}

// hardwareBreaks is struct user_hwdebug_state (arch/arm64/include/uapi/asm/ptrace.h).
type hardwareBreaks struct {
	_    uint64
	regs [16]struct {
		addr    uint64
		control uint32
		_       uint32
	}
}

// breakAt sets the CPU's breakpoints for this thread; an address of 0 sets none.
func (s *stepper) breakAt(addrs []uint64) error {
	// A breakpoint register's control (arch/arm64/include/asm/hw_breakpoint.h, decode_ctrl_reg): enabled, in user
	// space, when executed, four bytes.
	const control = 1 | 2<<1 | 0<<3 | 0xf<<5
	const ntARMHWBreak = 0x402
	var b hardwareBreaks
	if len(addrs) > len(b.regs) {
		return errors.New("too many")
	}
	for i, addr := range addrs {
		if b.regs[i].addr = addr; addr != 0 {
			b.regs[i].control = control
		}
	}
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(&b)), Len: uint64(8 + 16*len(addrs))}
	return s.ptrace(unix.PTRACE_SETREGSET, ntARMHWBreak, uintptr(unsafe.Pointer(&iov)))
}
