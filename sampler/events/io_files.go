//go:build linux

package events

import (
	"fmt"

	"golang.org/x/sys/unix"

	"goprof/sampler/bpf"
)

// The parts of programs that make, find and end Files in the map of descriptors.

// sinceOf adds to a register, which holds a File, the offset of the word of since for the thread's call: reading or
// writing, by the last bit of the kind.
func (c *probeCode) sinceOf(file bpf.Reg) {
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callKind)
	c.Imm(bpf.AndImm, bpf.R1, 1)
	c.Imm(bpf.LeftImm, bpf.R1, 3)
	c.Op(bpf.Add, file, bpf.R1, 0, 0)
}

// forget ends the File at ioFD, if there is one. It uses r9.
func (o *IO) forget(c *probeCode) {
	c.lookUp(o.files, ioFD)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "forgotten")
	c.Mov(bpf.R9, bpf.R0)
	c.Zero(bpf.R9, fileFresh)
	o.pushEnded(c, bpf.R9)
	c.MapFD(bpf.R1, o.files)
	c.stackAt(bpf.R2, ioFD)
	c.Call(bpf.MapDelete)
	c.Label("forgotten")
}

// pushEnded puts a File that has ended into the queue. If the queue is full, the sums go to QueueFull.
func (o *IO) pushEnded(c *probeCode, file bpf.Reg) {
	o.push(c, file)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "pushed")
	for kind := range int(NumIO) {
		for _, at := range []struct{ from, to int }{{0, 0}, {sumNanos, 8}} {
			c.Load(bpf.Load64, bpf.R1, file, fileSums+sumSize*kind+at.from)
			c.Op(bpfAtomicAdd, bpf.R7, bpf.R1, countIOQueueFull+at.to, 0)
		}
	}
	c.Label("pushed")
}

// push puts a File into the queue. r0 is 0 if there was room.
func (o *IO) push(c *probeCode, file bpf.Reg) {
	c.MapFD(bpf.R1, o.fresh)
	c.Mov(bpf.R2, file)
	c.Imm(bpf.MovImm, bpf.R3, 0)
	c.Call(bpfPush)
}

// fileOf puts the File at ioFD into r0. If it makes the File, it asks goprof to read what the File leads to.
func (o *IO) fileOf(c *probeCode, zero int) {
	o.makeFile(c, zero, true)
	c.lookUp(o.files, ioFD)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "file")
	c.count(countIOFull)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("file")
}

// makeFile makes the File at ioFD, unless there is one. It destroys r0 to r5.
func (o *IO) makeFile(c *probeCode, zero int, tell bool) {
	c.lookUp(o.files, ioFD)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "made")
	c.MapFD(bpf.R1, o.files)
	c.stackAt(bpf.R2, ioFD)
	c.Value(bpf.R3, zero)
	c.Imm(bpf.MovImm, bpf.R4, bpfNoExist)
	c.Call(bpf.MapUpdate)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "made") // another thread was faster, or the map is full
	c.Call(bpf.KtimeGetNS)
	c.Store(bpf.R10, ioEnd, bpf.R0)
	c.lookUp(o.files, ioFD)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "made")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioEnd)
	c.Store(bpf.R0, 0, bpf.R1)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioFD)
	c.Store(bpf.R0, fileFD, bpf.R1)
	if tell {
		o.tell(c, bpf.R0)
	}
	c.Label("made")
}

// opened handles the end of calls that make a descriptor, which is in r9. For open it puts the File into r6.
func (o *IO) opened(c *probeCode, zero int) {
	c.Label("open")
	c.Jump(bpfJumpSGE, bpf.R9, 0, 0, "is open")
	c.count(countIOUnopened)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("is open")
	o.newFile(c, zero)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callArg2)
	c.Imm(bpf.LeftImm, bpf.R1, 32) // an int
	c.Imm(bpfRightSigned, bpf.R1, 32)
	c.Store(bpf.R6, fileFolder, bpf.R1)
	c.fileAt(bpf.R1, fileName)
	c.Imm(bpf.MovImm, bpf.R2, ioName)
	c.Load(bpf.Load64, bpf.R3, bpf.R8, callArg)
	c.Call(bpfProbeReadString)
	c.fileSort(FileOpened)
	c.Jump(bpfJumpSGE, bpf.R0, 0, 2, "has name") // the length includes the zero byte
	c.Zero(bpf.R6, fileSort)
	o.tell(c, bpf.R6)
	c.Label("has name")
	c.Load(bpf.Load64, bpf.R9, bpf.R10, ioArgs)
	c.Jump(bpf.Goto, 0, 0, 0, "sum")
	c.Label("accept")
	c.Jump(bpfJumpSLeImm, bpf.R9, 0, -1, "its file")
	o.newFile(c, zero)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callArg)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "not asked")
	o.peer(c, FileAccepted)
	c.Jump(bpf.Goto, 0, 0, 0, "accepted")
	c.Label("not asked")
	o.tell(c, bpf.R6)
	c.Label("accepted")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callFD)
	c.Store(bpf.R10, ioFD, bpf.R1)
	c.Load(bpf.Load64, bpf.R9, bpf.R10, ioArgs)
	c.Jump(bpf.Goto, 0, 0, 0, "its file")
}

// newFile begins the File of the descriptor in r9, and puts the File into r6.
func (o *IO) newFile(c *probeCode, zero int) {
	c.Store(bpf.R10, ioFD, bpf.R9)
	o.forget(c)
	o.makeFile(c, zero, false)
	c.lookUp(o.files, ioFD)
	c.Mov(bpf.R6, bpf.R0)
	c.Jump(bpf.JumpNeImm, bpf.R6, 0, 0, "new file")
	c.count(countIOFull)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("new file")
}

// fileAt loads the address of a place in the File in r6.
func (c *probeCode) fileAt(dst bpf.Reg, at int) {
	c.Mov(dst, bpf.R6)
	c.Imm(bpf.AddImm, dst, at)
}

func (c *probeCode) fileSort(s FileSort) {
	c.Imm(bpf.MovImm, bpf.R1, int(s))
	c.Store(bpf.R6, fileSort, bpf.R1)
}

// tell asks goprof to read what a File leads to.
func (o *IO) tell(c *probeCode, file bpf.Reg) {
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Store(file, fileFresh, bpf.R1)
	o.push(c, file)
}

// peer reads the address that the call was given, or returned, into the File in r6: a struct sockaddr.
func (o *IO) peer(c *probeCode, sort FileSort) {
	none := fmt.Sprint("no peer ", sort)
	read := func(call, at, size int) {
		c.fileAt(bpf.R1, fileName+at)
		c.Imm(bpf.MovImm, bpf.R2, size)
		c.Load(bpf.Load64, bpf.R3, bpf.R8, callArg)
		c.Imm(bpf.AddImm, bpf.R3, at)
		c.Call(call)
	}
	read(bpf.ProbeReadUser, 0, unix.SizeofSockaddrInet4)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, none)
	c.fileSort(sort)
	c.Load(bpf.Load32, bpf.R1, bpf.R6, fileName)
	c.Imm(bpf.AndImm, bpf.R1, 0xffff)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, unix.AF_INET, none)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, unix.AF_UNIX, none+" of IPv4")
	read(bpfProbeReadString, 2, unixPath)
	c.Jump(bpf.Goto, 0, 0, 0, none)
	c.Label(none + " of IPv4")
	read(bpf.ProbeReadUser, 0, unix.SizeofSockaddrInet6)
	c.Label(none)
}

// unixPath is the size of the name in a struct sockaddr_un.
const unixPath = 108

// The fields of a thread's look-up of a name.
const (
	lookupSP   = 0
	lookupWhen = 8
	lookupName = 16
	lookupSize = 24
)
