//go:build linux

package sampler

import (
	"encoding/binary"
	"runtime"
	"unsafe"
)

// Functions that a program hands to the kernel, to be called there (bpf_loop). The kernel follows each of them once,
// and not as often as it is called. It wants to know the types of the program and its functions for that
// (Documentation/bpf/btf.rst).

// function is where a function begins. What stands before it must be over.
func (c *bpfCode) function(name string) {
	for _, at := range c.jumps[name] {
		c.insns[at].imm = int32(len(c.insns) - at - 1)
	}
	delete(c.jumps, name)
	c.functions = append(c.functions, uint32(len(c.insns)), bpfFunctionType)
}

// functionAddress loads the address of a function that is placed later.
func (c *bpfCode) functionAddress(dst bpfReg, name string) {
	c.jumps[name] = append(c.jumps[name], len(c.insns))
	c.op(bpfLoadWide, dst, bpfFunction, 0, 0)
	c.op(0, 0, 0, 0, 0)
}

// bpfFunctionType is the number of the type of all of them.
const bpfFunctionType = 3

// bpfTypes tells the kernel of the types: 1 is int, 2 a function that returns one, 3 such a function with a name.
func bpfTypes() (fd int, err error) {
	const (
		magic, version, header = 0xeb9f, 1, 24
		kindInt, kindFunction  = 1 << 24, 12 << 24
		kindPrototype          = 13 << 24
		signed32               = 1<<24 | 32
	)
	types := []uint32{1, kindInt, 4, signed32, 0, kindPrototype, 1, 1, kindFunction, 2}
	names := []byte("\x00f\x00")
	size := uint32(4 * len(types))
	b := binary.NativeEndian.AppendUint32(nil, magic|version<<16)
	for _, word := range append([]uint32{header, 0, size, size, uint32(len(names))}, types...) {
		b = binary.NativeEndian.AppendUint32(b, word)
	}
	b = append(b, names...)
	var pin runtime.Pinner
	defer pin.Unpin()
	attr := struct {
		types, log              uint64
		size, logSize, logLevel uint32
		_                       uint32
	}{types: bpfAddress(&pin, b), size: uint32(len(b))}
	return bpf(bpfTypesLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}
