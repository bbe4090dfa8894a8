//go:build linux

package session

import (
	"encoding/binary"

	"goprof/arch"
	"goprof/profile"
	"goprof/target"
	"goprof/unwind"
)

// With --native-once a thread is stopped where it comes to rest for the first time, so that its native frames can be
// told. When it is seen at rest there again, without a stop, they are the same if every return address of theirs
// still stands where it stood.

// rests are the native parts of the stacks of threads at rest.
type rests map[int][]rest

// rest is one: from the leaf to the first frame of generated code, or to the root if there is none.
type rest struct {
	pc, sp  uint64
	frames  []profile.Frame
	returns []returnTo // to each frame but the first, that of generated code among them
	whole   bool       // there is no generated code: the frames are the whole stack
}

// returnTo is a frame that another one returns to: the word below sp is pc.
type returnTo struct{ sp, pc uint64 }

// maxRestsKept is how many are kept of a thread, as the sampler remembers them.
const maxRestsKept = 8

// note keeps the native part of a stack that was walked with all registers.
func (k rests) note(s *Session, snap *target.Snapshot, stack *profile.Stack) {
	if stack.Truncated != profile.Whole {
		return
	}
	n := nativePart(s, stack)
	if n == 0 {
		return
	}
	r := rest{pc: snap.Regs[s.Process.CPU().PC], sp: snap.SP, frames: append([]profile.Frame(nil), stack.Frames[:n]...),
		whole: n == len(stack.Frames)}
	end := n
	if !r.whole {
		end++ // the address that leads to generated code
	}
	for i := 1; i < end; i++ {
		to := returnTo{stack.Frames[i].SP, stack.Frames[i].PC}
		if at, ok := returnAt(s.Process.CPU(), snap, to.sp); !ok || at != to.pc {
			return // not by a plain call
		}
		r.returns = append(r.returns, to)
	}
	kept := append(k[snap.TID], r)
	if len(kept) > maxRestsKept {
		kept = kept[1:]
	}
	k[snap.TID] = kept
}

// nativePart is how many frames stand before the first of generated code.
func nativePart(s *Session, stack *profile.Stack) int {
	for i := range stack.Frames {
		if s.VM.InCode(stack.Frames[i].PC) {
			return i
		}
	}
	return len(stack.Frames)
}

// returnAt is the return address by which a frame with this stack pointer was returned to: on x86-64 the word below it.
func returnAt(cpu *arch.CPU, snap *target.Snapshot, sp uint64) (uint64, bool) {
	at := sp - 8 - snap.SP
	if cpu.LR >= 0 || sp < 8 || at > uint64(len(snap.Stack)) || uint64(len(snap.Stack))-at < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(snap.Stack[at:]), true
}

// complete puts the native part in place of the gap of a look without a stop.
func (k rests) complete(s *Session, snap *target.Snapshot, stack *profile.Stack) {
	gap := unwind.UnstoppedGap(stack)
	if gap < 0 {
		return
	}
	for _, r := range k[snap.TID] {
		if r.pc != snap.Regs[s.Process.CPU().PC] || r.sp != snap.SP || !r.stands(s.Process.CPU(), snap) {
			continue
		}
		rest := stack.Frames[gap+1:]
		if r.whole != (len(rest) == 0) {
			continue
		}
		if !r.whole && rest[0].SP != r.returns[len(r.returns)-1].sp {
			continue // Java goes on at another frame than it did
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

// stands reports whether every return address is where it was.
func (r *rest) stands(cpu *arch.CPU, snap *target.Snapshot) bool {
	for _, to := range r.returns {
		if pc, ok := returnAt(cpu, snap, to.sp); !ok || pc != to.pc {
			return false
		}
	}
	return true
}
