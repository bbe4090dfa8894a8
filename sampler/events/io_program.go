//go:build linux

package events

import (
	"fmt"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/bpf"
)

// The programs behind IO. r6 is the context, r7 the counts, r8 the ioCall of the thread.

// ioCall is what is kept of a thread: the call that it is in, and what it has tried.
type ioCall struct {
	begun, kind, fd, id, arg, arg2 uint64
	tried                          uint64 // a descriptor + 1 that the thread tries to read or write; 0: none
	triedID, triedSince            uint64
	waited                         uint64 // 1: the thread has waited for it since
	polled, polls                  uint64 // the time of these waits, and how many
	again                          uint64 // when a call began that the kernel is going to begin again; 0: none is
}

const (
	callBegun  = 0
	callKind   = 8
	callFD     = 16
	callID     = 24
	callArg    = 32 // an address: a path, a peer, an array of struct pollfd
	callArg2   = 40
	callTried  = 48
	callTryID  = 56
	callSince  = 64
	callWaited = 72
	callPolled = 80
	callPolls  = 88
	callAgain  = 96
	callSize   = 104
)

// Places on the stack of a program. All are below what a record has.
const (
	ioData     = -dataCopies - ioDataSize
	ioKey      = ioData - 8 // the thread
	ioFD       = ioData - 16
	ioCtx      = ioData - 24
	ioNow      = ioData - 32
	ioTook     = ioData - 40
	ioCallKind = ioData - 48
	ioTmp      = ioData - 56
	ioEnd      = ioData - 64
	ioArgs     = ioData - 64 - 80
	ioNew      = ioArgs - callSize
)

// What a record tells of a call, in Look.Event.Data.
const (
	ioDataID   = 0
	ioDataFD   = 8
	ioDataKind = 16
	ioDataRet  = 24
	ioDataTook = 32
	ioDataSize = 40
)

// Others of the kernel's numbers.
const (
	bpfReadKernel = 113 // bpf_probe_read_kernel(to, size, from)
	bpfPush       = 87  // bpf_map_push_elem(map, value, flags): 0, or an error if it is full
	bpfNoExist    = 1
	bpfOr         = 0x4f
	bpfJumpSGE    = 0x75 // signed, with a constant
	bpfStore32    = 0x63

	epollDel     = unix.EPOLL_CTL_DEL
	epollOneShot = unix.EPOLLONESHOT
	pollBroken   = unix.POLLERR | unix.POLLHUP
)

// newIOCode begins a program: it ends for other processes, and while calls do not count. The thread is at ioKey.
func (o *IO) newIOCode(pid, counts int) *probeCode {
	c := &probeCode{bpf.New()}
	c.Mov(bpf.R6, bpf.R1)
	c.Call(bpf.GetCurrentPIDTGID)
	c.Store(bpf.R10, ioKey, bpf.R0)
	c.Imm(bpf.RightImm, bpf.R0, 32)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, pid, "end")
	c.Value(bpf.R7, counts)
	c.Load(bpf.Load64, bpf.R1, bpf.R7, countPaused)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "end")
	return c
}

// enterProgram is for where a call begins.
func (o *IO) enterProgram(pid, counts, zero int, cpu *arch.CPU) *probeCode {
	c := o.newIOCode(pid, counts)
	c.Load(bpf.Load64, bpf.R1, bpf.R6, 8) // the number of the call
	c.Store(bpf.R10, ioTmp, bpf.R1)
	c.Jump(bpf.JumpGtImm, bpf.R1, 0, mostCalls-1, "end")
	c.lookUp(o.kinds, ioTmp)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R9, bpf.R0, 0)
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, 0, "end")
	c.Imm(bpf.AddImm, bpf.R9, -1)
	c.Store(bpf.R10, ioCallKind, bpf.R9)
	o.leave(c)
	arg := c.callArguments(cpu)
	c.lookUp(o.threads, ioKey)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "known")
	for at := 0; at < callSize; at += 8 {
		c.Zero(bpf.R10, ioNew+at)
	}
	c.update(o.threads, ioKey, ioNew)
	c.lookUp(o.threads, ioKey)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "known")
	c.count(countIOFull)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("known")
	c.Mov(bpf.R8, bpf.R0)
	c.Zero(bpf.R8, callBegun)
	c.Imm(bpf.AndImm, bpf.R9, 0xff)
	c.goOn()
	c.descriptor(arg)
	o.dropTry(c)
	o.follow(c, arg)
	o.connectAgain(c)
	// A call whose end counts.
	c.Load(bpf.Load64, bpf.R9, bpf.R10, ioFD)
	c.Imm(bpf.MovImm, bpf.R1, 0)
	c.Jump(bpfJumpSLeImm, bpf.R9, 0, -1, "no file")
	o.fileOf(c, zero)
	c.Load(bpf.Load64, bpf.R1, bpf.R0, 0)
	c.Label("no file")
	c.Store(bpf.R10, ioTmp, bpf.R1)
	c.Load(bpf.Load64, bpf.R6, bpf.R8, callAgain)
	c.Zero(bpf.R8, callAgain)
	// A call that begins again is the same in all of these. After a handler without SA_RESTART another one may follow.
	c.Imm(bpf.MovImm, bpf.R3, 0)
	for _, k := range []struct{ from, to int }{{ioTmp, callID}, {ioFD, callFD}, {ioNew, callArg},
		{ioNew + 8, callArg2}, {ioCallKind, callKind}} {
		c.Load(bpf.Load64, bpf.R1, bpf.R10, k.from)
		c.Load(bpf.Load64, bpf.R2, bpf.R8, k.to)
		c.Store(bpf.R8, k.to, bpf.R1)
		c.Op(bpf.Sub, bpf.R2, bpf.R1, 0, 0)
		c.Op(bpfOr, bpf.R3, bpf.R2, 0, 0)
	}
	c.Jump(bpf.JumpNeImm, bpf.R3, 0, 0, "begins")
	c.Jump(bpf.JumpNeImm, bpf.R6, 0, 0, "goes on")
	c.Label("begins")
	c.Call(bpf.KtimeGetNS)
	c.Mov(bpf.R6, bpf.R0)
	c.Label("goes on")
	c.Store(bpf.R8, callBegun, bpf.R6)
	return c.end()
}

// leave forgets a thread that ends. What it has waited for has no other end.
func (o *IO) leave(c *probeCode) {
	c.Jump(bpf.JumpNeImm, bpf.R9, 0, int(ioExit), "stays")
	c.lookUp(o.threads, ioKey)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Mov(bpf.R8, bpf.R0)
	c.addPolls(bpf.R7, countIOClosed, 8)
	c.MapFD(bpf.R1, o.threads)
	c.stackAt(bpf.R2, ioKey)
	c.Call(bpf.MapDelete)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("stays")
}

// goOn is for restart_syscall: the call goes on that a signal or a stop has interrupted. Other calls begin with the
// same number again.
func (c *probeCode) goOn() {
	c.Jump(bpf.JumpNeImm, bpf.R9, 0, int(ioRestart), "no restart")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callAgain)
	c.Store(bpf.R8, callBegun, bpf.R1)
	c.Zero(bpf.R8, callAgain)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("no restart")
}

// ERESTARTSYS to ERESTART_RESTARTBLOCK (include/linux/errno.h) never come to the program: the call is begun again, or a
// handler of a signal has ended it.
const firstRestart, lastRestart = -516, -512

// callArguments reads the arguments of the call, and returns where the one with a number is, counted from 1.
func (c *probeCode) callArguments(cpu *arch.CPU) func(number int) int {
	p := &cpu.Probe
	regs := []int{p.Arg(1), p.Arg(2), p.Arg(3), int(p.Offsets[cpu.FourthArg])}
	first, last := regs[0], regs[0]
	for _, at := range regs {
		first, last = min(first, at), max(last, at)
	}
	c.Load(bpf.Load64, bpf.R3, bpf.R6, 0) // struct pt_regs
	c.Imm(bpf.AddImm, bpf.R3, first)
	c.stackAt(bpf.R1, ioArgs)
	c.Imm(bpf.MovImm, bpf.R2, last+8-first)
	c.Call(bpfReadKernel)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "end")
	return func(number int) int { return ioArgs + regs[number-1] - first }
}

// descriptor puts the descriptor that the call is about at ioFD, -1 if there is none, and what else is kept at ioNew.
// r9 is the kind of the call.
func (c *probeCode) descriptor(arg func(int) int) {
	keep := func(first, second int) {
		for i, number := range []int{first, second} {
			c.Load(bpf.Load64, bpf.R1, bpf.R10, arg(number))
			c.Store(bpf.R10, ioNew+8*i, bpf.R1)
		}
	}
	keep(2, 1)
	for _, k := range []struct {
		kind IOKind
		arg  int
	}{{ioEpoll, 3}, {ioDup, 2}} {
		c.Load(bpf.Load64, bpf.R1, bpf.R10, arg(k.arg))
		c.Jump(bpf.JumpEqImm, bpf.R9, 0, int(k.kind), "told")
	}
	c.Imm(bpf.MovImm, bpf.R1, -1)
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, int(IOOpen), "told")
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, int(ioPoll), "poll")
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, int(ioPath), "path")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, arg(1))
	c.Jump(bpf.Goto, 0, 0, 0, "told")
	c.Label("path")
	keep(1, 1)
	c.Imm(bpf.MovImm, bpf.R1, unix.AT_FDCWD)
	c.Store(bpf.R10, ioNew+8, bpf.R1)
	c.Imm(bpf.MovImm, bpf.R1, int(IOOpen))
	c.Store(bpf.R10, ioCallKind, bpf.R1)
	c.Imm(bpf.MovImm, bpf.R9, int(IOOpen))
	c.Imm(bpf.MovImm, bpf.R1, -1)
	c.Jump(bpf.Goto, 0, 0, 0, "told")
	c.Label("poll") // struct pollfd: the descriptor is its first member
	keep(1, 2)
	c.Imm(bpf.MovImm, bpf.R1, -1)
	c.Load(bpf.Load64, bpf.R2, bpf.R10, arg(2))
	c.Jump(bpf.JumpNeImm, bpf.R2, 0, 1, "told")
	c.Load(bpf.Load64, bpf.R3, bpf.R10, arg(1))
	c.readUser(ioTmp, 8)
	c.Imm(bpf.MovImm, bpf.R1, -1)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "told")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioTmp)
	c.Label("told")
	c.Imm(bpf.LeftImm, bpf.R1, 32) // an int
	c.Imm(bpfRightSigned, bpf.R1, 32)
	c.Store(bpf.R10, ioFD, bpf.R1)
}

const bpfRightSigned = 0xc7

// dropTry ends what the thread has tried if this call is about something else. Its waits then were no part of a read.
func (o *IO) dropTry(c *probeCode) {
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callTried)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "no try")
	c.Load(bpf.Load64, bpf.R2, bpf.R10, ioFD)
	c.Imm(bpf.AddImm, bpf.R2, 1)
	c.Jump(bpfJumpNe, bpf.R1, bpf.R2, 0, "drop")
	for _, k := range []IOKind{ioClose, ioDup, IOForce} {
		c.Jump(bpf.JumpEqImm, bpf.R9, 0, int(k), "drop")
	}
	c.Jump(bpf.Goto, 0, 0, 0, "no try")
	c.Label("drop")
	c.Zero(bpf.R8, callTried)
	c.Load(bpf.Load64, bpf.R2, bpf.R8, callPolls)
	c.Jump(bpf.JumpEqImm, bpf.R2, 0, 0, "no try")
	c.Imm(bpf.AddImm, bpf.R1, -1)
	c.Store(bpf.R10, ioTmp, bpf.R1)
	c.lookUp(o.files, ioTmp)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "gone")
	c.Load(bpf.Load64, bpf.R1, bpf.R0, 0)
	c.Load(bpf.Load64, bpf.R2, bpf.R8, callTryID)
	c.Jump(bpfJumpNe, bpf.R1, bpf.R2, 0, "gone")
	c.addPolls(bpf.R0, fileSums+sumSize*int(IOWait), sumNanos)
	c.Jump(bpf.Goto, 0, 0, 0, "no try")
	c.Label("gone")
	c.addPolls(bpf.R7, countIOClosed, 8)
	c.Label("no try")
}

// addPolls adds the thread's waits to calls and time that are at to + at.
func (c *probeCode) addPolls(to bpf.Reg, at, nanos int) {
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callPolls)
	c.Op(bpfAtomicAdd, to, bpf.R1, at, 0)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callPolled)
	c.Op(bpfAtomicAdd, to, bpf.R1, at+nanos, 0)
	c.Zero(bpf.R8, callPolls)
	c.Zero(bpf.R8, callPolled)
}

// follow does what calls that close descriptors mean, and epoll_ctl, and ends the program for these.
func (o *IO) follow(c *probeCode, arg func(int) int) {
	for _, k := range []IOKind{ioClose, ioDup} {
		c.Jump(bpf.JumpEqImm, bpf.R9, 0, int(k), "forget")
	}
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, int(ioRange), "range")
	c.Jump(bpf.JumpNeImm, bpf.R9, 0, int(ioEpoll), "counts")
	c.lookUp(o.files, ioFD)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Mov(bpf.R9, bpf.R0)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, arg(2))
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, epollDel, "watch")
	c.Zero(bpf.R9, fileSince)
	c.Zero(bpf.R9, fileSince+8)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("watch")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callTried)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end") // the try is of this descriptor: dropTry
	c.Load(bpf.Load64, bpf.R3, bpf.R10, arg(4))
	c.readUser(ioTmp, 8) // struct epoll_event
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioTmp)
	c.Imm(bpf.AndImm, bpf.R1, epollOneShot)
	c.Zero(bpf.R8, callTried)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callTryID)
	c.Load(bpf.Load64, bpf.R2, bpf.R9, 0)
	c.Jump(bpfJumpNe, bpf.R1, bpf.R2, 0, "end")
	c.sinceOf(bpf.R9)
	c.Load(bpf.Load64, bpf.R1, bpf.R9, fileSince)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callSince)
	c.Store(bpf.R9, fileSince, bpf.R1)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("range")
	c.count(countIORanges)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("forget")
	o.forget(c)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("counts")
}

// connectAgain ends the File of a socket that had another peer before.
func (o *IO) connectAgain(c *probeCode) {
	c.Jump(bpf.JumpNeImm, bpf.R9, 0, int(IOConnect), "same peer")
	c.lookUp(o.files, ioFD)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "same peer")
	c.Load(bpf.Load64, bpf.R1, bpf.R0, fileSort)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, int(FileUnknown), "same peer")
	c.Load(bpf.Load64, bpf.R1, bpf.R0, fileConnecting)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "same peer")
	o.forget(c)
	c.Label("same peer")
}

// sinceOf moves a register from a File to that File's word of since, in which the thread's call belongs: reading or
// writing. The last bit of the kind says which.
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

// pushEnded puts a File that has ended into the queue. If there is no room its sums are counted as untold.
func (o *IO) pushEnded(c *probeCode, file bpf.Reg) {
	o.push(c, file)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "pushed")
	for kind := range int(NumIO) {
		for _, at := range []struct{ from, to int }{{0, 0}, {sumNanos, 8}} {
			c.Load(bpf.Load64, bpf.R1, file, fileSums+sumSize*kind+at.from)
			c.Op(bpfAtomicAdd, bpf.R7, bpf.R1, countIOUntold+at.to, 0)
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

// fileOf puts the File at ioFD into r0. One that is made is told to goprof, which reads where it leads to.
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
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "made") // another thread was faster, or there is no room
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

// exitProgram is for where a call ends.
func (o *IO) exitProgram(e *Event, number, pid, counts, zero, output int) *probeCode {
	c := o.newIOCode(pid, counts)
	c.Store(bpf.R10, ioCtx, bpf.R6)
	c.lookUp(o.threads, ioKey)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Mov(bpf.R8, bpf.R0)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callBegun)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end")
	c.Store(bpf.R10, ioNew, bpf.R1)
	c.Zero(bpf.R8, callBegun)             // r1 is what it was
	c.Load(bpf.Load64, bpf.R9, bpf.R6, 8) // what the call returns
	c.Store(bpf.R10, ioArgs, bpf.R9)
	c.Jump(bpfJumpSGE, bpf.R9, 0, lastRestart+1, "ended")
	c.Jump(bpfJumpSLeImm, bpf.R9, 0, firstRestart-1, "ended")
	c.Store(bpf.R8, callAgain, bpf.R1)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("ended")
	c.Call(bpf.KtimeGetNS)
	c.Store(bpf.R10, ioNow, bpf.R0)
	c.took(ioNew)
	for _, k := range []struct{ from, to int }{{callFD, ioFD}, {callKind, ioCallKind}} {
		c.Load(bpf.Load64, bpf.R2, bpf.R8, k.from)
		c.Store(bpf.R10, k.to, bpf.R2)
	}
	c.Imm(bpf.AndImm, bpf.R2, 0xff)
	for _, k := range []struct {
		kind  IOKind
		label string
	}{{IOOpen, "open"}, {IOAccept, "accept"}, {ioPoll, "poll"}} {
		c.Jump(bpf.JumpEqImm, bpf.R2, 0, int(k.kind), k.label)
	}
	c.Jump(bpf.Goto, 0, 0, 0, "its file")
	o.opened(c, zero)
	o.poll(c)
	o.finish(c, e, number, output)
	return c.end()
}

// took puts at ioTook how long it is since the moment at a place on the stack.
func (c *probeCode) took(since int) {
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioNow)
	c.Load(bpf.Load64, bpf.R3, bpf.R10, since)
	c.Op(bpf.Sub, bpf.R1, bpf.R3, 0, 0)
	c.Store(bpf.R10, ioTook, bpf.R1)
}

// finish writes the rest of exitProgram. r9 is what the call returns, and ioNew the moment when it began.
func (o *IO) finish(c *probeCode, e *Event, number, output int) {
	c.Label("its file")
	o.itsFile(c)
	for _, k := range []struct {
		kind  IOKind
		label string
	}{{IOConnect, "connect"}, {IOWait, "sum"}, {IOForce, "sum"}} {
		c.Jump(bpf.JumpEqImm, bpf.R2, 0, int(k.kind), k.label)
	}
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, -int(unix.EAGAIN), "again")
	// A read, a write or an accept has come to its end.
	c.isTried("not waited")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callWaited)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "not waited")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callSince)
	c.Store(bpf.R10, ioNew, bpf.R1)
	c.Label("not waited")
	for _, at := range []int{callTried, callWaited, callPolls, callPolled} {
		c.Zero(bpf.R8, at)
	}
	c.Mov(bpf.R2, bpf.R6)
	c.sinceOf(bpf.R2)
	c.Load(bpf.Load64, bpf.R1, bpf.R2, fileSince)
	c.Zero(bpf.R2, fileSince)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "since")
	c.Store(bpf.R10, ioNew, bpf.R1)
	c.Label("since")
	c.took(ioNew)
	c.Jump(bpf.Goto, 0, 0, 0, "sum")
	o.connect(c)
	o.sum(c)
	o.sample(c, e, number, output)
	c.Label("lost")
	c.count(countIOClosed)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioTook)
	c.Op(bpfAtomicAdd, bpf.R7, bpf.R1, countIOClosed+8, 0)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("again")
	c.count(countIOTries)
	c.isTried("new try")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callWaited)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "end")
	c.Label("new try")
	c.try()
}

// itsFile puts the File of the call into r6, and the kind of the call into r2. It ends where that File has ended.
func (o *IO) itsFile(c *probeCode) {
	c.lookUp(o.files, ioFD)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "lost")
	c.Mov(bpf.R6, bpf.R0)
	c.Load(bpf.Load64, bpf.R1, bpf.R6, 0)
	c.Load(bpf.Load64, bpf.R2, bpf.R8, callID)
	c.Jump(bpfJumpNe, bpf.R1, bpf.R2, 0, "lost")
	c.Load(bpf.Load64, bpf.R2, bpf.R8, callKind)
	c.Imm(bpf.AndImm, bpf.R2, 0xff)
}

// isTried goes to a label unless the File in r6 is what the thread tries to read or write.
func (c *probeCode) isTried(otherwise string) {
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callTried)
	c.Load(bpf.Load64, bpf.R3, bpf.R10, ioFD)
	c.Imm(bpf.AddImm, bpf.R3, 1)
	c.Jump(bpfJumpNe, bpf.R1, bpf.R3, 0, otherwise)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callTryID)
	c.Load(bpf.Load64, bpf.R3, bpf.R6, 0)
	c.Jump(bpfJumpNe, bpf.R1, bpf.R3, 0, otherwise)
}

// try notes that the thread tries the File in r6 since its call has begun.
func (c *probeCode) try() {
	c.addPolls(bpf.R7, countIOClosed, 8)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioFD)
	c.Imm(bpf.AddImm, bpf.R1, 1)
	c.Store(bpf.R8, callTried, bpf.R1)
	c.Load(bpf.Load64, bpf.R1, bpf.R6, 0)
	c.Store(bpf.R8, callTryID, bpf.R1)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioNew)
	c.Store(bpf.R8, callSince, bpf.R1)
	c.Zero(bpf.R8, callWaited)
}

// sum adds the call to the sums of the File in r6. r9 is what the call returns.
func (o *IO) sum(c *probeCode) {
	c.Label("sum")
	c.sumAt()
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Op(bpfAtomicAdd, bpf.R2, bpf.R1, fileSums, 0)
	c.Load(bpf.Load64, bpf.R3, bpf.R10, ioTook)
	c.Op(bpfAtomicAdd, bpf.R2, bpf.R3, fileSums+sumNanos, 0)
	c.Jump(bpfJumpSGE, bpf.R9, 0, 0, "went well")
	c.Op(bpfAtomicAdd, bpf.R2, bpf.R1, fileSums+sumFailed, 0)
	c.Jump(bpf.Goto, 0, 0, 0, "sample")
	c.Label("went well")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioCallKind)
	c.Jump(bpf.JumpGtImm, bpf.R1, 0, int(IOWrite), "sample")
	c.Op(bpfAtomicAdd, bpf.R2, bpf.R9, fileSums+sumBytes, 0)
	c.Label("sample")
}

// sumAt puts the address of the File in r6 into r2, so far on that fileSums is the sum of the call's kind.
func (c *probeCode) sumAt() {
	c.Load(bpf.Load64, bpf.R2, bpf.R10, ioCallKind)
	c.Imm(bpf.AndImm, bpf.R2, 7)
	c.Imm(bpf.MulImm, bpf.R2, sumSize)
	c.Op(bpf.Add, bpf.R2, bpf.R6, 0, 0)
}

// SlowIO is how long a call lasts that always becomes a sample.
const SlowIO = 10_000_000

// sample makes a sample of a call if it is long, or by lot. Waits for any of many descriptors become none.
func (o *IO) sample(c *probeCode, e *Event, number, output int) {
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioCallKind)
	c.Imm(bpf.AndImm, bpf.R1, 0xff)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, int(IOWait), "end")
	c.Load(bpf.Load64, bpf.R8, bpf.R10, ioTook)
	c.count(countHits)
	c.Op(bpfAtomicAdd, bpf.R7, bpf.R8, countAmount, 0)
	c.Store(bpf.R10, ioData+dataOwn, bpf.R8)
	c.LoadWide(bpf.R9, uint64(max(o.Min, 0)))
	c.Jump(bpf.JumpGe, bpf.R8, bpf.R9, 0, "long enough")
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("long enough")
	c.LoadWide(bpf.R9, SlowIO)
	c.Jump(bpf.JumpGe, bpf.R8, bpf.R9, 0, "take")
	c.Load(bpf.Load64, bpf.R9, bpf.R7, countInterval)
	c.Jump(bpf.JumpGe, bpf.R8, bpf.R9, 0, "take")
	c.chance()
	c.Mov(bpf.R8, bpf.R9)
	c.Label("take")
	c.Store(bpf.R10, ioData+dataAmount, bpf.R8)
	c.Imm(bpf.MovImm, bpf.R1, number)
	c.Store(bpf.R10, ioData+dataNumber, bpf.R1)
	c.Load(bpf.Load64, bpf.R1, bpf.R6, 0)
	c.Store(bpf.R10, ioData+dataCopies+ioDataID, bpf.R1)
	for _, k := range []struct{ from, to int }{{ioFD, ioDataFD}, {ioCallKind, ioDataKind}, {ioArgs, ioDataRet},
		{ioTook, ioDataTook}} {
		c.Load(bpf.Load64, bpf.R1, bpf.R10, k.from)
		c.Store(bpf.R10, ioData+dataCopies+k.to, bpf.R1)
	}
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioCtx)
	c.MapFD(bpf.R2, output)
	c.LoadWide(bpf.R3, bpf.ThisCPU)
	c.stackAt(bpf.R4, ioData)
	c.Imm(bpf.MovImm, bpf.R5, e.dataSize())
	c.Call(bpf.PerfOutput)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.count(countMissed)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
}

// poll is for the end of a wait for one descriptor, or for several.
func (o *IO) poll(c *probeCode) {
	c.Label("poll")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioFD)
	c.Jump(bpfJumpSGE, bpf.R1, 0, 0, "polls one")
	c.count(countIOPolls)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioTook)
	c.Op(bpfAtomicAdd, bpf.R7, bpf.R1, countIOPolls+8, 0)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("polls one")
	o.itsFile(c)
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, 1, "ready")
	c.addPolls(bpf.R6, fileSums+sumSize*int(IOWait), sumNanos)
	c.Zero(bpf.R8, callTried)
	c.Imm(bpf.MovImm, bpf.R1, int(IOWait))
	c.Store(bpf.R10, ioCallKind, bpf.R1)
	c.Jump(bpf.Goto, 0, 0, 0, "sum")
	c.Label("ready")
	c.Load(bpf.Load64, bpf.R1, bpf.R6, fileConnecting)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "connected")
	c.isTried("polled first")
	c.Jump(bpf.Goto, 0, 0, 0, "waited")
	c.Label("polled first")
	c.try()
	c.Label("waited")
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Store(bpf.R8, callWaited, bpf.R1)
	c.Op(bpfAtomicAdd, bpf.R8, bpf.R1, callPolls, 0)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioTook)
	c.Op(bpfAtomicAdd, bpf.R8, bpf.R1, callPolled, 0)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("connected") // what connect has begun has come to its end
	c.Zero(bpf.R6, fileConnecting)
	c.Store(bpf.R10, ioNew, bpf.R1)
	c.took(ioNew)
	c.Zero(bpf.R10, ioArgs)
	c.Load(bpf.Load64, bpf.R3, bpf.R8, callArg)
	c.readUser(ioTmp, 8)
	c.Load(bpf.Load64, bpf.R9, bpf.R10, ioTmp)
	c.Imm(bpf.RightImm, bpf.R9, 48) // struct pollfd: revents
	c.Imm(bpf.AndImm, bpf.R9, pollBroken)
	c.Imm(bpf.MovImm, bpf.R1, int(IOConnect))
	c.Store(bpf.R10, ioCallKind, bpf.R1)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioTook)
	c.Op(bpfAtomicAdd, bpf.R6, bpf.R1, fileSums+sumSize*int(IOConnect)+sumNanos, 0)
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, 0, "is connected")
	c.Imm(bpf.MovImm, bpf.R1, -1)
	c.Store(bpf.R10, ioArgs, bpf.R1)
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Op(bpfAtomicAdd, bpf.R6, bpf.R1, fileSums+sumSize*int(IOConnect)+sumFailed, 0)
	c.Label("is connected")
	c.Jump(bpf.Goto, 0, 0, 0, "sample")
}

// connect notes who the peer is. A connection that is not made at once is, when the descriptor is ready.
func (o *IO) connect(c *probeCode) {
	c.Label("connect")
	c.Load(bpf.Load64, bpf.R1, bpf.R6, fileConnecting)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "sum") // it asks again
	o.peer(c, FileConnected)
	c.Jump(bpf.JumpNeImm, bpf.R9, 0, -int(unix.EINPROGRESS), "sum")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioNew)
	c.Store(bpf.R6, fileConnecting, bpf.R1)
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Op(bpfAtomicAdd, bpf.R6, bpf.R1, fileSums+sumSize*int(IOConnect), 0)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
}

// opened is for the end of calls that bring a descriptor. r9 is the descriptor. It puts the File of open into r6.
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
	c.Jump(bpfJumpSGE, bpf.R0, 0, 2, "has name") // with its zero byte
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

// newFile begins the File of a descriptor, r9, and puts it into r6.
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

// tell has goprof read where a File leads to.
func (o *IO) tell(c *probeCode, file bpf.Reg) {
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Store(file, fileFresh, bpf.R1)
	o.push(c, file)
}

// peer reads the address that the call was given, or gave, into the File in r6: a struct sockaddr.
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

// What is kept of a look-up of a name, by thread.
const (
	lookupSP   = 0
	lookupWhen = 8
	lookupName = 16
	lookupSize = 24
)

// lookupProgram is for where getaddrinfo begins.
func (o *IO) lookupProgram(pid, counts int, cpu *arch.CPU) *probeCode {
	c := o.newIOCode(pid, counts)
	c.Load(bpf.Load64, bpf.R1, bpf.R6, int(cpu.Probe.Offsets[cpu.SP]))
	c.Store(bpf.R10, ioNew+lookupSP, bpf.R1)
	c.argument(bpf.R1, 1, cpu)
	c.Store(bpf.R10, ioNew+lookupName, bpf.R1)
	c.Call(bpf.KtimeGetNS)
	c.Store(bpf.R10, ioNew+lookupWhen, bpf.R0)
	c.update(o.lookups, ioKey, ioNew)
	return c.end()
}

// lookedProgram is for where getaddrinfo ends, with what it returns in its register. The look-up is a File by itself,
// which has ended.
func (o *IO) lookedProgram(e *Event, number, pid, counts, output int, cpu *arch.CPU) *probeCode {
	c := o.newIOCode(pid, counts)
	c.Store(bpf.R10, ioCtx, bpf.R6)
	c.lookUp(o.lookups, ioKey)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Mov(bpf.R8, bpf.R0)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, lookupSP)
	c.Load(bpf.Load64, bpf.R2, bpf.R6, int(cpu.Probe.Offsets[cpu.SP]))
	c.Jump(bpfJumpNe, bpf.R1, bpf.R2, 0, "end")
	c.Load(bpf.Load64, bpf.R9, bpf.R6, int(cpu.Probe.Offsets[cpu.SyscallResult]))
	c.Imm(bpf.LeftImm, bpf.R9, 32) // an int
	c.Imm(bpfRightSigned, bpf.R9, 32)
	c.Jump(bpf.JumpEqImm, bpf.R9, 0, 0, "found")
	c.Imm(bpf.MovImm, bpf.R9, -1)
	c.Label("found")
	c.Store(bpf.R10, ioArgs, bpf.R9)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, lookupWhen)
	c.Store(bpf.R10, ioNew, bpf.R1)
	c.Call(bpf.KtimeGetNS)
	c.Store(bpf.R10, ioNow, bpf.R0)
	c.took(ioNew)
	c.Zero(bpf.R10, ioTmp)
	c.lookUp(o.scratch, ioTmp)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Mov(bpf.R6, bpf.R0)
	for at := fileSort; at < fileSums+sumSize*int(NumIO); at += 8 {
		c.Zero(bpf.R6, at)
	}
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioNow)
	c.Store(bpf.R6, 0, bpf.R1)
	c.fileSort(FileLookup)
	c.fileAt(bpf.R1, fileName)
	c.Imm(bpf.MovImm, bpf.R2, ioName)
	c.Load(bpf.Load64, bpf.R3, bpf.R8, lookupName)
	c.Call(bpfProbeReadString)
	c.Imm(bpf.MovImm, bpf.R1, -1)
	c.Store(bpf.R10, ioFD, bpf.R1)
	c.Imm(bpf.MovImm, bpf.R1, int(IOOpen))
	c.Store(bpf.R10, ioCallKind, bpf.R1)
	o.sum(c)
	o.pushEnded(c, bpf.R6)
	o.sample(c, e, number, output)
	return c.end()
}
