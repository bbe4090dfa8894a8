package unwind

import (
	"encoding/binary"

	"goprof/profile"
)

// toOwnStack switches to the copy of the thread's own stack if the frame of a signal leads there from an alternate
// stack (sigaltstack(2)). Otherwise it returns false.
func (w *Walker) toOwnStack() bool {
	if !w.cur.exact || w.cur.sp-w.snap.UnderSP >= uint64(len(w.snap.Under)) {
		return false
	}
	w.own = *w.snap
	w.own.SP, w.own.Stack, w.own.Cut = w.snap.UnderSP, w.snap.Under, false
	w.own.UnderSP, w.own.Under = 0, nil
	w.snap = &w.own
	return true
}

func (w *Walker) word(addr uint64) (uint64, bool) {
	off := addr - w.snap.SP
	if off > uint64(len(w.snap.Stack)) || uint64(len(w.snap.Stack))-off < 8 || addr&7 != 0 {
		over := int64(off) - int64(len(w.snap.Stack)) // negative if the word begins in the copy
		w.wantedMore = w.wantedMore || w.snap.Cut && over > -8 && over < mostBeyond
		return 0, false
	}
	return binary.LittleEndian.Uint64(w.snap.Stack[off:]), true
}

// slot reads the word n words above base.
func (w *Walker) slot(base uint64, n int) (uint64, bool) {
	return w.word(base + uint64(int64(n)*8))
}

func (w *Walker) inCopy(addr uint64) bool {
	_, ok := w.word(addr)
	return ok
}

// mostBeyond is the number of bytes above a cut copy that may still belong to the thread's stack.
const mostBeyond = 8 << 20

// orCut returns why. If the step needed words above a cut copy, it returns the reason for that instead, because a bad
// frame cannot be distinguished from a frame that is not in the copy.
func (w *Walker) orCut(why profile.Reason) profile.Reason {
	if !w.wantedMore {
		return why
	}
	switch why {
	case profile.BadMethod, profile.BadInterpreted, profile.BadCompiled, profile.StubFrame, profile.EntryFrame:
		return profile.StackCut
	}
	return why
}

// beyond returns the reason why a word is not in the copy.
func (w *Walker) beyond() profile.Reason {
	if w.snap.Cut {
		return profile.StackCut
	}
	return profile.StackRange
}
