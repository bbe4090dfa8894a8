//go:build linux

package session

import (
	"encoding/binary"
	"slices"

	"goprof/arch"
	"goprof/process"
	"goprof/profile"
	"goprof/unwind"
	"goprof/vmstructs"
)

// With --native-once a thread is stopped when it is first seen at rest, and the stop shows its native frames. Later, a
// look without a stop may find the thread at rest in the same place. Its native frames are the same if each of their
// return addresses is still in its place.

// nativeRests are the native parts of the stacks of threads at rest.
type nativeRests map[int][]nativeRest

// nativeRest is the native part of one stack: from the leaf to the first frame of generated code, or to the root if
// there is none.
type nativeRest struct {
	pc, sp  uint64
	frames  []profile.Frame
	returns []returnTo // the returns to each frame but the first, and to the frame of generated code
	whole   bool       // there is no generated code: the frames are the whole stack
}

type returnTo struct {
	sp, pc uint64
	at     []uint64 // the words that may be the return address, because they hold pc; none if a leaf has it in a register
}

// maxRestsKept is the number of rests that are kept for a thread: as many as the sampler remembers.
const maxRestsKept = 8

// note keeps the native part of a stack that was walked with all registers.
func (k nativeRests) note(s *Session, snap *process.Snapshot, stack *profile.Stack) {
	if stack.Truncated != profile.Whole {
		return
	}
	n := slices.IndexFunc(stack.Frames, func(f profile.Frame) bool { return s.VM.InCode(f.PC) })
	if n == 0 {
		return
	}
	if n < 0 {
		n = len(stack.Frames)
	}
	cpu := s.Process.CPU()
	r := nativeRest{pc: restingPC(cpu, snap), sp: snap.SP, frames: append([]profile.Frame(nil), stack.Frames[:n]...),
		whole: n == len(stack.Frames)}
	end := n
	if !r.whole {
		end++ // the return address into generated code
	}
	for i := 1; i < end; i++ {
		to := returnTo{sp: stack.Frames[i].SP, pc: stack.Frames[i].PC}
		for at, top := cpu.ReturnSlots(stack.Frames[i-1].SP, to.sp); at < top; at += 8 {
			if pc, ok := returnAt(snap, at); ok && pc == to.pc {
				to.at = append(to.at, at)
			}
		}
		// The return addresses above show which function the leaf is: no caller calls two functions from one place.
		if len(to.at) == 0 && (i > 1 || !cpu.ReturnsInRegister) {
			return // it was not a plain call
		}
		r.returns = append(r.returns, to)
	}
	kept := append(k[snap.TID], r)
	if len(kept) > maxRestsKept {
		kept = kept[1:]
	}
	k[snap.TID] = kept
}

// restingPC returns the pc that /proc shows while the thread is at rest: the one after the system call. A stop that
// interrupts a call sets the pc back, so that the call is made again.
func restingPC(cpu *arch.CPU, snap *process.Snapshot) uint64 {
	pc := snap.Regs[cpu.PC]
	if snap.Syscall >= 0 {
		pc += uint64(len(cpu.SyscallInst))
	}
	return pc
}

func returnAt(snap *process.Snapshot, addr uint64) (uint64, bool) {
	at := addr - snap.SP
	if at > uint64(len(snap.Stack)) || uint64(len(snap.Stack))-at < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(snap.Stack[at:]) &^ snap.PACMask, true
}

// complete replaces the gap of a look without a stop with the kept native frames.
func (k nativeRests) complete(s *Session, snap *process.Snapshot, stack *profile.Stack) {
	gap := unwind.UnstoppedGap(stack)
	if gap < 0 {
		return
	}
	for _, r := range k[snap.TID] {
		if r.pc != snap.Regs[s.Process.CPU().PC] || r.sp != snap.SP || !r.returnsUnchanged(snap) {
			continue
		}
		rest := stack.Frames[gap+1:]
		if r.whole != (len(rest) == 0) {
			continue
		}
		if !r.whole && !vmstructs.SameFrame(rest[0].SP, r.returns[len(r.returns)-1].sp) {
			continue // the Java frames now begin at another place
		}
		frames := append(append([]profile.Frame(nil), r.frames...), rest...)
		if stack.Carrier > 0 {
			stack.Carrier += len(frames) - len(stack.Frames)
		}
		stack.Frames = frames
		if r.whole {
			stack.Truncated = profile.Whole
		}
		return
	}
}

// returnsUnchanged reports whether every return address is still in its place.
func (r *nativeRest) returnsUnchanged(snap *process.Snapshot) bool {
	for i := range r.returns {
		for _, at := range r.returns[i].at {
			if pc, ok := returnAt(snap, at); !ok || pc != r.returns[i].pc {
				return false
			}
		}
	}
	return true
}
