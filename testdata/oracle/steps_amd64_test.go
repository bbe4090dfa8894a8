//go:build linux

package oracle

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// pushed is by how much a call moves the stack pointer down.
const pushed = 8

const maxInstruction = 15 // Intel SDM volume 2, 2.3.11

// signalReturn is where the kernel makes signal handlers return to: the C library's.
const signalReturn = "__restore_rt"

// opOf tells an instruction by its opcode (Intel SDM volume 2, appendix A). It is written
// apart from package arch's decoder, which is among what it checks.
func opOf(code []byte) op {
	i := skipPrefixes(code)
	if i+1 >= len(code) {
		return opOther
	}
	switch b := code[i]; {
	case b == 0xe8:
		return opCall
	case b == 0xc3, b == 0xc2:
		return opReturn
	case b == 0xe9, b == 0xeb, b >= 0x70 && b <= 0x7f, b >= 0xe0 && b <= 0xe3:
		return opJump
	case b == 0x0f && code[i+1] >= 0x80 && code[i+1] <= 0x8f:
		return opJump
	case b == 0x0f && code[i+1] == 0x05:
		return opSyscall
	case b == 0x9c:
		return opPushFlags
	case b == 0x9d:
		return opPopFlags
	case b == 0xff && code[i+1]>>3&7 == 2:
		return opCall
	case b == 0xff && code[i+1]>>3&7 == 4:
		return opJump
	}
	return opOther
}

// skipPrefixes goes past prefixes: 66, F2 (BND), F3 (REP), 3E (NOTRACK), 2E, 64 and REX.
func skipPrefixes(code []byte) int {
	i := 0
	for i < len(code) {
		switch code[i] {
		case 0x66, 0xf2, 0xf3, 0x3e, 0x2e, 0x64:
			i++
			continue
		}
		break
	}
	if i < len(code) && code[i]&0xf0 == 0x40 {
		i++
	}
	return i
}

// returnAddress is what a call leaves behind: the word on top of the stack.
func (m *moment) returnAddress() (uint64, bool) { return m.word(m.sp) }

// calledFrom reports whether that is how a caller was found.
func (m *moment) calledFrom(caller *physical) bool {
	to, ok := m.returnAddress()
	return ok && caller.pc == to && caller.slot == m.sp
}

// mayMoveSlot: an address that was once pushed stays where it is.
func mayMoveSlot(op) bool { return false }

// instead does what a step cannot do.
func (s *stepper) instead(next op) (done bool, err error) {
	if next == opPopFlags {
		return true, s.popFlags(skipPrefixes(s.code[:]) + 1)
	}
	return false, nil
}

// afterwards mends what a step has left behind.
func (s *stepper) afterwards(next op) error {
	if next == opPushFlags {
		return s.hideTrapFlag()
	}
	return nil
}

// A thread is stepped by TF in its EFLAGS. Left behind it kills the process. The kernel keeps
// it from the program (arch/x86/kernel/step.c, TIF_FORCED_TF), but not where the program stores
// its flags, and loses its hold on it where they are loaded. So PUSHF and POPF want help.
const trapFlag = 1 << 8

// Where registers lie in struct user_regs_struct (arch/x86/include/asm/user_64.h).
const (
	ripAt    = 16 * 8
	eflagsAt = 18 * 8
	rspAt    = 19 * 8
)

// hideTrapFlag takes the trap flag out of the flags that were just pushed.
func (s *stepper) hideTrapFlag() error {
	var word [8]byte
	if err := s.p.Read(s.sp, word[:]); err != nil {
		return err
	}
	word[1] &^= trapFlag >> 8
	_, err := unix.PtracePokeData(s.tid, uintptr(s.sp), word[:])
	return err
}

// popFlags does what a POPF of that many bytes does.
func (s *stepper) popFlags(length int) error {
	var word [8]byte
	if err := s.p.Read(s.sp, word[:]); err != nil {
		return err
	}
	for _, set := range [...]struct {
		at    uintptr
		value uint64
	}{{ripAt, s.pc + uint64(length)}, {rspAt, s.sp + 8}, {eflagsAt, binary.LittleEndian.Uint64(word[:]) &^ trapFlag}} {
		if err := s.ptrace(unix.PTRACE_POKEUSR, set.at, uintptr(set.value)); err != nil {
			return err
		}
	}
	return s.read()
}

// slotOf finds where the return address into a frame stands: right below it, unless its callee is
// interpreted. Then the callee's locals lie between, and the word two below the return address is
// the caller's sp (runtime/frame.hpp, interpreter_frame_sender_sp).
func (m *moment) slotOf(callee, caller *physical) uint64 {
	if callee.framed {
		for at := callee.sp + 16; at <= caller.sp; at += 8 {
			if v, _ := m.word(at); v == caller.pc {
				if v, _ := m.word(at - 16); v == caller.sp {
					return at
				}
			}
		}
	}
	if v, ok := m.word(caller.sp - 8); ok && v == caller.pc {
		return caller.sp - 8
	}
	if v, ok := m.word(callee.sp); ok && v == caller.pc && callee.sp == m.sp {
		return m.sp // of a topmost frame that is not built yet, or no more
	}
	return 0
}
