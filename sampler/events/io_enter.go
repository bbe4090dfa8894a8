//go:build linux

package events

import (
	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/bpf"
)

// The program at the beginning of a system call. It notes the thread's call, and what the thread tries or waits for.

// enterProgram makes the program that runs at the beginning of a call.
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
	// From here on: a call whose end counts.
	c.Load(bpf.Load64, bpf.R9, bpf.R10, ioFD)
	c.Imm(bpf.MovImm, bpf.R1, 0)
	c.Jump(bpfJumpSLeImm, bpf.R9, 0, -1, "no file")
	o.fileOf(c, zero)
	c.Load(bpf.Load64, bpf.R1, bpf.R0, 0)
	c.Label("no file")
	c.Store(bpf.R10, ioTmp, bpf.R1)
	c.Load(bpf.Load64, bpf.R6, bpf.R8, callAgain)
	c.Zero(bpf.R8, callAgain)
	// A call that begins again has the same values in all of these fields. After a signal handler without SA_RESTART,
	// another call may follow.
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

// leave forgets a thread that ends. Its wait has no other end.
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

// goOn is for restart_syscall, which continues a call that a signal or a stop has interrupted. Other calls begin again
// with their own number.
func (c *probeCode) goOn() {
	c.Jump(bpf.JumpNeImm, bpf.R9, 0, int(ioRestart), "no restart")
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callAgain)
	c.Store(bpf.R8, callBegun, bpf.R1)
	c.Zero(bpf.R8, callAgain)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("no restart")
}

// ERESTARTSYS to ERESTART_RESTARTBLOCK (include/linux/errno.h) never reach the program: the kernel begins the call
// again, or a signal handler has ended it.
const firstRestart, lastRestart = -516, -512

// callArguments reads the arguments of the call. The function that it returns gives the place of an argument on the
// stack, counted from 1.
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
	c.Call(bpf.ReadKernel)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "end")
	return func(number int) int { return ioArgs + regs[number-1] - first }
}

// descriptor stores the call's descriptor at ioFD, -1 if there is none, and other arguments at ioNew. r9 is the kind of
// the call.
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

// dropTry forgets that the thread has tried to read, if this call is about another descriptor. Then its waits were not
// part of a read.
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

// addPolls adds the thread's waits to a count at to + at, and their time to the sum nanos bytes behind the count.
func (c *probeCode) addPolls(to bpf.Reg, at, nanos int) {
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callPolls)
	c.Op(bpfAtomicAdd, to, bpf.R1, at, 0)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callPolled)
	c.Op(bpfAtomicAdd, to, bpf.R1, at+nanos, 0)
	c.Zero(bpf.R8, callPolls)
	c.Zero(bpf.R8, callPolled)
}

// follow handles epoll_ctl and the calls that close descriptors. The program ends after them.
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
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end") // dropTry has left only a try of this descriptor
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
