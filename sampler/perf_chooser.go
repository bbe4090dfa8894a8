//go:build linux

package sampler

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// chooser lets the samples of some processes pass, and of each a part that is drawn by lot. It is a BPF program with a
// table: the number of a process, and the chance of its samples.
type chooser struct {
	prog, table int
}

// mostChosen bounds how many processes the table holds. The kernel allots all entries in the beginning: an interrupt
// cannot wait for memory.
const mostChosen = 4096

const (
	bpfMapHash    = 1
	bpfDeleteElem = 3
	bpfLookUp     = 1 // bpf_map_lookup_elem(map, key): the address of the value, or 0
	bpfJumpGt     = 0x2d
	bpfStore32    = 0x63
)

func newChooser() (*chooser, error) {
	table, err := bpfNewMap(bpfMapHash, 4, 8, mostChosen)
	if err != nil {
		return nil, err
	}
	prog, err := chooserProgram(table).loadForPerf(nil)
	if err != nil {
		unix.Close(table)
		return nil, err
	}
	return &chooser{prog, table}, nil
}

func (c *chooser) close() {
	unix.Close(c.prog)
	unix.Close(c.table)
}

// chooserProgram returns 1 for a sample that is wanted. The chance of a process is a number of 32 bits or, for all
// samples, more than that: a random number of 32 bits is below it.
func chooserProgram(table int) *bpfCode {
	c := &bpfCode{jumps: map[string][]int{}}
	c.call(bpfGetCurrentPIDTGID)
	c.imm(bpfRightImm, r0, 32) // the upper half is the process
	c.op(bpfStore32, r10, r0, -4, 0)
	c.op(bpfLoadWide, r1, bpfMapFD, 0, int64(table))
	c.op(0, 0, 0, 0, 0)
	c.mov(r2, r10)
	c.imm(bpfAddImm, r2, -4)
	c.call(bpfLookUp)
	c.jump(bpfJumpEqImm, r0, 0, 0, "end")
	c.load(bpfLoad64, r6, r0, 0)
	c.call(bpfRandom)
	c.mov(r1, r0)
	c.imm(bpfMovImm, r0, 1)
	c.jump(bpfJumpGt, r6, r1, 0, "end")
	c.imm(bpfMovImm, r0, 0)
	c.label("end")
	c.op(bpfExit, 0, 0, 0, 0)
	return c
}

// choose has a part of a process's samples pass.
func (c *chooser) choose(pid int, share float64) error {
	return c.change(bpfUpdateElem, pid, uint64(share*(1<<32)))
}

// leaveOut has no sample of a process pass. There is nothing to do where the process is not in the table.
func (c *chooser) leaveOut(pid int) { c.change(bpfDeleteElem, pid, 0) }

// change changes the entry of a process. The kernel gets the address of something on the heap only: Go's stacks move.
func (c *chooser) change(command uintptr, pid int, chance uint64) error {
	entry := &struct {
		pid    uint32
		_      uint32
		chance uint64
	}{pid: uint32(pid), chance: chance}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(entry)
	attr := struct {
		table, _          uint32
		key, value, flags uint64
	}{table: uint32(c.table), key: uint64(uintptr(unsafe.Pointer(&entry.pid)))}
	if command == bpfUpdateElem {
		attr.value = uint64(uintptr(unsafe.Pointer(&entry.chance)))
	}
	_, err := bpf(command, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}
