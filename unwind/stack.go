package unwind

import (
	"encoding/binary"

	"goprof/profile"
)

// toOwnStack goes on in the copy of the thread's own stack where the frame of a signal leads
// there, from a handler on an alternate one (sigaltstack(2)).
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
		over := int64(off) - int64(len(w.snap.Stack)) // negative where the word begins in the copy
		w.wantedMore = w.wantedMore || w.snap.Cut && over > -8 && over < mostBeyond
		return 0, false
	}
	return binary.LittleEndian.Uint64(w.snap.Stack[off:]), true
}

// slot reads the word that lies n words from base.
func (w *Walker) slot(base uint64, n int) (uint64, bool) {
	return w.word(base + uint64(int64(n)*8))
}

func (w *Walker) inCopy(addr uint64) bool {
	_, ok := w.word(addr)
	return ok
}

// mostBeyond is how far above a copy that was cut the thread's own stack may go on.
const mostBeyond = 8 << 20

// orCut is why a step found no caller. A step that asked for words above a copy that was cut, and did not get them,
// cannot distinguish a bad frame from one that is not in the copy.
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

// beyond says why a word outside the copy is missing.
func (w *Walker) beyond() profile.Reason {
	if w.snap.Cut {
		return profile.StackCut
	}
	return profile.StackRange
}
