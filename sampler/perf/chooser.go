//go:build linux

package perf

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/bpf"
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
	bpfDeleteElem = 3
	bpfJumpGt     = 0x2d
	bpfStore32    = 0x63
)

func newChooser() (*chooser, error) {
	table, err := bpf.NewMap(bpf.MapHash, 4, 8, mostChosen)
	if err != nil {
		return nil, err
	}
	prog, err := chooserProgram(table).LoadForPerf(nil)
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
func chooserProgram(table int) *bpf.Code {
	c := bpf.New()
	c.Call(bpf.GetCurrentPIDTGID)
	c.Imm(bpf.RightImm, bpf.R0, 32) // the upper half is the process
	c.Op(bpfStore32, bpf.R10, bpf.R0, -4, 0)
	c.Op(bpf.LoadWide, bpf.R1, bpf.MapFD, 0, int64(table))
	c.Op(0, 0, 0, 0, 0)
	c.Mov(bpf.R2, bpf.R10)
	c.Imm(bpf.AddImm, bpf.R2, -4)
	c.Call(bpf.MapLookup)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R6, bpf.R0, 0)
	c.Call(bpf.Random)
	c.Mov(bpf.R1, bpf.R0)
	c.Imm(bpf.MovImm, bpf.R0, 1)
	c.Jump(bpfJumpGt, bpf.R6, bpf.R1, 0, "end")
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Label("end")
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

// choose has a part of a process's samples pass.
func (c *chooser) choose(pid int, share float64) error {
	return c.change(bpf.UpdateElem, pid, uint64(share*(1<<32)))
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
	if command == bpf.UpdateElem {
		attr.value = uint64(uintptr(unsafe.Pointer(&entry.chance)))
	}
	_, err := bpf.Do(command, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return err
}
