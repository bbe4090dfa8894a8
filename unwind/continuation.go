package unwind

import (
	"bytes"
	"slices"

	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// A virtual thread's stack ends at Continuation.enter. The frame of Continuation.enterSpecial follows below it on the
// carrier's stack, and then the carrier's own frames. If the lowest frames of the virtual thread are in the heap, the
// lowest frame on the stack returns to the return barrier. From there the walk continues in the chunks of
// process.Continuation (chunk.go).
//
// goprof reads the chunks when the thread is running again. No counter shows how often the thread has passed the
// barrier since the stack was copied. So the walk uses the frames in the chunks only if
//   - two reads gave the same frames, and the thread still ran the same continuation,
//   - the lowest frame on the stack was unchanged after these reads,
//   - the thread is not giving up its carrier, because then the stack and the heap have the same frames (if both were
//     copied in one moment, each frame is reported once),
//   - every return address in them follows a call that the compiler has recorded,
//   - their last frame is Continuation.enter.
//
// One error is still possible: right after the stop the thread passes the barrier, and the frame that replaces the
// lowest one has the same method, words and address.

// entryMethod is the lowest frame of a virtual thread.
const entryMethod = "jdk.internal.vm.Continuation.enter"

// yieldMethod runs when a virtual thread gives up its carrier: the frames from yieldMethod downwards are copied to the
// heap. A chunk with yieldMethod on top belongs to a thread that is on no stack, or has only just returned to one.
const yieldMethod = "jdk.internal.vm.Continuation.yield0"

// maxEntryPad is the word that alignment may add above a ContinuationEntry (runtime/continuationFreezeThaw.cpp,
// ReconstructedStack).
const maxEntryPad = 8

func (w *Walker) beginContinuation() {
	k := &w.snap.Continuation
	w.out.Carrier, w.out.Mounted = 0, k.Entry != 0 && !k.Late
	w.out.Virtual = profile.VirtualThread{}
	if !k.Late {
		w.out.Virtual = profile.VirtualThread{ID: k.ID, Name: k.Name}
	}
	w.metEntry, w.isThawing = false, false
	w.framePointer, w.frameAt = 0, -1
}

// meetEntry notes that the copied stack leads to a ContinuationEntry. The first entry belongs to the virtual thread
// that the carrier ran. If goprof read the virtual thread only after the look (Late), the copied stack proves that the
// thread had this entry at the look.
func (w *Walker) meetEntry(at uint64) {
	k := &w.snap.Continuation
	if !w.metEntry && k.Late && k.Entry == at {
		w.out.Virtual = profile.VirtualThread{ID: k.ID, Name: k.Name}
	}
	w.metEntry = true
}

// passEntry notes where the carrier's frames begin, if b is the code that enters a virtual thread's continuation. If
// frames are being thawed, the virtual thread's frames are not reported (see thawing).
func (w *Walker) passEntry(b *vmstructs.Blob) profile.Reason {
	if w.cur.exact || w.out.Carrier > 0 || !w.vm.IsContinuationEntry(b) {
		return profile.Whole
	}
	w.meetEntry(w.cur.sp)
	entry, ok := w.stackBytes(w.cur.sp, vmstructs.EntryBytes)
	if !ok {
		return w.beyond()
	}
	if virtual, _ := w.vm.VirtualEntry(entry); !virtual {
		return profile.Whole
	}
	if w.isThawing {
		w.out.Mounted, w.out.Virtual = false, profile.VirtualThread{}
		return profile.Whole
	}
	if !w.atContinuationRoot() {
		return profile.Continuation
	}
	w.out.Mounted, w.out.Carrier = true, len(w.out.Frames)
	return profile.Whole
}

// atContinuationRoot reports whether the last frame is a continuation's lowest.
func (w *Walker) atContinuationRoot() bool {
	n := len(w.out.Frames)
	return n > 0 && w.out.Frames[n-1].Kind.Java() && w.out.Frames[n-1].Func.Name == entryMethod
}

func (w *Walker) stackBytes(addr uint64, n int) ([]byte, bool) {
	off := addr - w.snap.SP
	if off > uint64(len(w.snap.Stack)) || uint64(len(w.snap.Stack))-off < uint64(n) || addr&7 != 0 {
		return nil, false
	}
	return w.snap.Stack[off : off+uint64(n)], true
}

// heapFrames emits the frames to which the return barrier at the cursor leads. If they are not credible, it emits
// nothing and returns false.
func (w *Walker) heapFrames() bool {
	k := &w.snap.Continuation
	if !k.Settled || len(k.Chunks) == 0 || !w.endsAtEntry() || !w.stillThere() {
		return false
	}
	back, n := w.cur, len(w.out.Frames)
	ok := true
	for i := range k.Chunks {
		// Only the last chunk has the root.
		ok = w.chunkFrames(&k.Chunks[i]) && (i == len(k.Chunks)-1 || !w.atContinuationRoot())
		if !ok || len(w.out.Frames) >= w.MaxDepth {
			break
		}
	}
	ok = ok && len(w.out.Frames) > n && w.out.Frames[n].Kind != profile.Stub &&
		w.out.Frames[n].Kind != profile.NativeMethod
	ok = ok && (w.out.Frames[n].Func.Name != yieldMethod || k.Together && w.dropFrozen(n))
	if len(w.out.Frames) < w.MaxDepth {
		ok = ok && w.atContinuationRoot()
	}
	w.cur = back
	if !ok {
		w.out.Frames = w.out.Frames[:n]
		return false
	}
	w.out.Mounted = true
	w.meetEntry(k.Entry)
	return true
}

// dropFrozen is for a thread that is giving up its carrier, and has copied its frames to the heap. It drops these
// copies: the frames from n on, which are also on the stack. It returns false if the copies differ.
func (w *Walker) dropFrozen(n int) bool {
	fs := w.out.Frames
	first := slices.IndexFunc(fs[:n], func(f profile.Frame) bool { return f.Func.Name == yieldMethod })
	if first < 0 || len(fs)-n <= n-first {
		return false
	}
	for i := range n - first {
		was, now := &fs[first+i], &fs[n+i]
		if was.Func != now.Func || was.Line != now.Line || was.Kind != now.Kind || i > 0 && was.PC != now.PC {
			return false
		}
	}
	w.out.Frames = append(fs[:n], fs[n+n-first:]...)
	return true
}

// thawing reports whether the thread was copying a virtual thread's frames back from the heap, with none of them on the
// stack yet. goprof cannot know which frames had already left the heap, so it reports only the carrier's own frames.
// thawing returns false if it is not known where the carrier's frames are.
func (w *Walker) thawing() bool {
	k := &w.snap.Continuation
	entry, ok := w.stackBytes(k.Entry, vmstructs.EntryBytes)
	if k.Entry == 0 || k.Late || !ok || k.Entry < w.cur.sp ||
		slices.ContainsFunc(w.out.Frames, func(f profile.Frame) bool { return f.Kind.Java() }) {
		return false
	}
	w.isThawing, _ = w.vm.VirtualEntry(entry)
	return w.isThawing
}

// carrierFrames continues the walk at the ContinuationEntry.
func (w *Walker) carrierFrames() profile.Reason {
	ret := w.vm.ContinuationReturn()
	if ret == 0 || !w.vm.InCode(ret) {
		w.out.Carrier = len(w.out.Frames) // the address of the entry's code is not known
		return profile.Continuation
	}
	w.toCaller(ret, w.snap.Continuation.Entry, 0, false)
	return w.stepGenerated()
}

// WalkContinuation walks the stack of a virtual thread without a carrier. The whole stack is in the heap.
func (w *Walker) WalkContinuation(k *process.Continuation, out *profile.Stack) {
	w.run(&process.Snapshot{Continuation: *k}, out, w.walkContinuation)
}

// walkContinuation walks the frames of all chunks, up to the root of the virtual thread.
func (w *Walker) walkContinuation() profile.Reason {
	k := &w.snap.Continuation
	for i := range k.Chunks {
		if !w.chunkFrames(&k.Chunks[i]) {
			return profile.Continuation
		}
		if len(w.out.Frames) >= w.MaxDepth {
			return profile.TooDeep
		}
	}
	if !w.atContinuationRoot() {
		return profile.Continuation
	}
	return profile.Whole
}

// endsAtEntry reports whether the last frame is directly above the ContinuationEntry, with only its arguments and a
// word of padding in between.
func (w *Walker) endsAtEntry() bool {
	entry := w.snap.Continuation.Entry
	b, ok := w.stackBytes(entry, vmstructs.EntryBytes)
	if !ok || w.cur.sp > entry {
		return false
	}
	_, args := w.vm.VirtualEntry(b)
	return entry-w.cur.sp <= args+maxEntryPad
}

// stillThere reports whether the lowest frame on the stack was the same after the chunks had been read. While the frame
// is in a call, its words do not change. If it is the running frame and interpreted, only words change that do not
// identify it.
func (w *Walker) stillThere() bool {
	n := len(w.out.Frames)
	if n == 0 {
		return false
	}
	last := &w.out.Frames[n-1]
	from := last.SP
	if last.Kind == profile.Interpreted {
		if w.frameAt != n-1 {
			return false
		}
		l := w.vm.Interp()
		for _, slot := range [...]int{l.SenderSP, l.Method, 0, 1} {
			at := w.framePointer + uint64(int64(slot)*8)
			if at < w.snap.Continuation.BaseAddr || !w.sameBase(at, at+8) { // very many locals: not all were read again
				return false
			}
		}
		if from = w.framePointer + 16; w.out.Frames[0].SP == last.SP {
			return true // its locals
		}
	}
	return w.sameBase(from, w.snap.Continuation.Entry)
}

// sameBase compares the copied stack with the bytes that were read afterwards. Of a large frame, only the uppermost
// part was read.
func (w *Walker) sameBase(from, to uint64) bool {
	k := &w.snap.Continuation
	from = max(from, k.BaseAddr)
	if from >= to {
		return to <= k.Entry
	}
	off := from - k.BaseAddr
	was, ok := w.stackBytes(from, int(to-from))
	return ok && off <= uint64(len(k.Base)) && uint64(len(k.Base))-off >= to-from &&
		bytes.Equal(was, k.Base[off:off+to-from])
}
