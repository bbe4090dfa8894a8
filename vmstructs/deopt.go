package vmstructs

import (
	"fmt"

	"goprof/process"
)

// A thread that replaces a compiled frame with interpreted frames describes these in a vframeArray
// (runtime/vframeArray.hpp). The array is freed microseconds later, and the next one often has the same address. So
// goprof copies the array in the pause, as Snapshot.Followed.

const (
	maxVFrames    = maxInline // frames that replace one compiled frame
	maxVFrameCopy = 16 << 10  // bytes of an array that are copied in a pause: its head alone takes up to 6 KB
)

// Follow returns the offset in a thread's Side of the pointer to its vframeArray, and the number of bytes of the array
// to copy. Both are 0 if the JVM does not export the array's layout.
func (vm *VM) Follow() (at, size int) {
	l := &vm.l.deopt
	begin, have := vm.Side()
	if !l.whole || uint64(l.head) < begin || uint64(l.head)+8 > begin+uint64(have) {
		return 0, 0
	}
	return int(uint64(l.head) - begin), min(l.elements+maxVFrames*int(l.elementSize), maxVFrameCopy)
}

// vframeArray returns the vframeArray of snap's thread, up to its last element. It is empty if there is none.
func (vm *VM) vframeArray(snap *process.Snapshot) ([]byte, error) {
	l := &vm.l.deopt
	array := vm.vframesIn(snap.Side)
	if array == 0 {
		return nil, nil
	}
	raw := snap.Followed
	if !snap.RunsOn {
		n, err := vm.mem.I32(array + uint64(l.frames))
		if err != nil {
			return nil, err
		}
		if n <= 0 || n > maxVFrames {
			return nil, fmt.Errorf("%w: %d frames being unpacked", ErrBadThread, n)
		}
		raw = make([]byte, l.elements+int(n)*int(l.elementSize))
		if err := vm.mem.Bytes(array, raw); err != nil {
			return nil, err
		}
	}
	if len(raw) < l.elements {
		return nil, ErrChanged
	}
	n := l.frames.i32(raw)
	if n <= 0 || n > maxVFrames || l.elements+int(n)*int(l.elementSize) > len(raw) {
		return nil, fmt.Errorf("%w: %d frames being unpacked", ErrBadThread, n)
	}
	return raw[:l.elements+int(n)*int(l.elementSize)], nil
}

// Unpacking is a compiled frame that is being replaced with interpreted frames.
type Unpacking struct {
	Frames   []Scope // innermost first
	CallerSP uint64  // of the frame's caller
	CallerPC uint64  // the caller's pc
}

// VFrames returns the frames with which deoptimization was about to replace a compiled frame of snap's thread. There
// are none if the thread was not being deoptimized.
func (vm *VM) VFrames(snap *process.Snapshot) (none Unpacking, err error) {
	l := &vm.l.deopt
	if !l.whole {
		return none, ErrMissing
	}
	raw, err := vm.vframeArray(snap)
	if err != nil || len(raw) == 0 {
		return none, err
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
	return Unpacking{frames, l.caller.u64(raw), (l.caller + 8).u64(raw)}, nil
}
