package vmstructs

import "goprof/arch"

// Interp returns the layout of this JVM's interpreter frames.
func (vm *VM) Interp() arch.InterpLayout {
	if vm.l.jdk8 {
		return vm.t.CPU().Interp.JDK8
	}
	return vm.t.CPU().Interp.JDK9
}

// SlotAddress returns the address in a slot of the interpreter's frame at fp. Up to 21 the slot has the address, in 25
// the number of words from fp (interp_masm_*.cpp, prepare_to_jump_from_interpreted).
func SlotAddress(fp, slot uint64) uint64 {
	if words := int64(slot); words < 0 && words > -1<<20 {
		return fp + slot*8
	}
	return slot
}

// SameFrame compares two stack pointers of a frame of generated code. On arm64, in a frame that interprets a native
// method, HotSpot stores the stack pointer of the expressions, which is not aligned
// (templateInterpreterGenerator_aarch64.cpp, generate_native_entry).
func SameFrame(a, b uint64) bool { return a&^15 == b&^15 }
