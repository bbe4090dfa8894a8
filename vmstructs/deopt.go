package vmstructs

import (
	"fmt"
	"slices"

	"goprof/target"
)

// A thread that turns a compiled frame into interpreted ones keeps in a vframeArray what these are to
// be (runtime/vframeArray.hpp). It is through with that in microseconds; then the array is freed, and
// the next one often lies in the same place. So it is read right after the pause, as
// Snapshot.Unpacked, and whether it was still that frame's is for the walker to ask.

// maxVFrames bounds the frames that one compiled frame is turned into.
const maxVFrames = maxInline

// Unpackings reads vframeArrays. It has memory of its own: one goroutine may use it while another uses
// the VM that it was made of.
type Unpackings struct{ vm *VM }

// NewUnpackings returns a reader of vframeArrays, nil if nothing tells how.
func (vm *VM) NewUnpackings() *Unpackings {
	if !vm.l.deopt.whole {
		return nil
	}
	u := &Unpackings{newVM(vm.t, vm.l)}
	u.vm.lib, u.vm.version, u.vm.barrier = vm.lib, vm.version, vm.barrier
	return u
}

// Read fills in snap.Unpacked, soon after the thread was let go. It stays empty if there was no array, or
// if it has gone.
func (u *Unpackings) Read(snap *target.Snapshot) {
	raw, err := u.vm.readUnpacked(snap, snap.Unpacked[:0])
	if err != nil {
		raw = raw[:0]
	}
	if raw == nil {
		raw = []byte{} // it was asked for
	}
	snap.Unpacked = raw
}

// readUnpacked reads the array that the thread had in the pause into dst. It must be there still.
func (vm *VM) readUnpacked(snap *target.Snapshot, dst []byte) ([]byte, error) {
	l := &vm.l.deopt
	array := vm.vframesIn(snap.Side)
	if array == 0 {
		return dst[:0], nil
	}
	n, err := vm.mem.I32(array + uint64(l.frames))
	if err != nil {
		return dst[:0], err
	}
	if n <= 0 || n > maxVFrames {
		return dst[:0], fmt.Errorf("%w: %d frames being unpacked", ErrBadThread, n)
	}
	size := l.elements + int(n)*int(l.elementSize)
	dst = slices.Grow(dst[:0], size)[:size]
	if err := vm.mem.Bytes(array, dst); err != nil {
		return dst[:0], err
	}
	begin, _ := vm.Side()
	again, err := vm.mem.Ptr(snap.SideAddr + uint64(l.head) - begin)
	if err != nil || again != array || l.frames.u32(dst) != uint32(n) {
		return dst[:0], ErrChanged
	}
	return dst, nil
}

// Unpacking is a compiled frame on its way to be interpreted ones.
type Unpacking struct {
	Frames   []Scope // innermost first
	CallerSP uint64  // of the frame's caller
}

// VFrames returns the frames that deoptimization was about to build in place of a compiled frame of
// snap's thread; none if it was not at it.
func (vm *VM) VFrames(snap *target.Snapshot) (none Unpacking, err error) {
	l := &vm.l.deopt
	if !l.whole {
		return none, ErrMissing
	}
	raw := snap.Unpacked
	switch {
	case len(raw) > 0:
	case raw != nil: // it had gone right after the pause: what is there by now is another one
		if vm.vframesIn(snap.Side) != 0 {
			return none, ErrChanged
		}
		return none, nil
	default: // nobody looked
		if raw, err = vm.readUnpacked(snap, nil); err != nil || len(raw) == 0 {
			return none, err
		}
	}
	if len(raw) < l.elements {
		return none, ErrBadThread
	}
	// The array's elements go from the youngest to the oldest.
	var frames []Scope
	for elements := raw[l.elements:]; uint64(len(elements)) >= l.elementSize; elements = elements[l.elementSize:] {
		m, err := vm.MethodNow(l.method.u64(elements))
		if err != nil {
			return none, err
		}
		bci := l.bci.i32(elements)
		if bci < -1 || bci >= int32(m.CodeSize) && !m.Native {
			return none, fmt.Errorf("%w: bci %d of %d", ErrBadThread, bci, m.CodeSize)
		}
		frames = append(frames, Scope{m, bci, m.Line(bci)})
	}
	return Unpacking{frames, l.caller.u64(raw)}, nil
}
