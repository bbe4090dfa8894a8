//go:build linux

package events

import (
	"golang.org/x/sys/unix"

	"goprof/sampler/bpf"
)

// The program at the end of a system call. It counts the call for its File, and makes samples.

// exitProgram makes the program that runs at the end of a call.
func (o *IO) exitProgram(e *Event, number, pid, counts, zero, output int) *probeCode {
	c := o.newIOCode(pid, counts)
	c.Store(bpf.R10, ioCtx, bpf.R6)
	c.lookUp(o.threads, ioKey)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Mov(bpf.R8, bpf.R0)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callBegun)
	c.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "end")
	c.Store(bpf.R10, ioNew, bpf.R1)
	c.Zero(bpf.R8, callBegun)             // r1 keeps the value
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

// took stores at ioTook the time since a moment. since is the place of that moment on the stack.
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
	// A read, a write or an accept has ended.
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

// itsFile puts the File of the call into r6, and the kind of the call into r2. It goes to "lost" if that File has
// ended.
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

// isTried jumps to a label unless the thread tries to read or write the File in r6.
func (c *probeCode) isTried(otherwise string) {
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callTried)
	c.Load(bpf.Load64, bpf.R3, bpf.R10, ioFD)
	c.Imm(bpf.AddImm, bpf.R3, 1)
	c.Jump(bpfJumpNe, bpf.R1, bpf.R3, 0, otherwise)
	c.Load(bpf.Load64, bpf.R1, bpf.R8, callTryID)
	c.Load(bpf.Load64, bpf.R3, bpf.R6, 0)
	c.Jump(bpfJumpNe, bpf.R1, bpf.R3, 0, otherwise)
}

// try notes that the thread has been trying the File in r6 since its call began.
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

// sumAt sets r2 for access to a sum in the File at r6: the sum of the call's kind is then at r2 + fileSums.
func (c *probeCode) sumAt() {
	c.Load(bpf.Load64, bpf.R2, bpf.R10, ioCallKind)
	c.Imm(bpf.AndImm, bpf.R2, 7)
	c.Imm(bpf.MulImm, bpf.R2, sumSize)
	c.Op(bpf.Add, bpf.R2, bpf.R6, 0, 0)
}

// SlowIO is the duration from which a call always becomes a sample.
const SlowIO = 10_000_000

// sample makes a sample of a call if it is long, or by lot. Waits for any of many descriptors become no samples.
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
	e.spans.Read(c.Code, ioData+dataSpan)
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

// poll handles the end of a wait for one descriptor, or for several.
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
	c.Label("connected") // the connection that connect began is made
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

// connect notes who the peer is. A connection that takes longer is made when the descriptor is ready.
func (o *IO) connect(c *probeCode) {
	c.Label("connect")
	c.Load(bpf.Load64, bpf.R1, bpf.R6, fileConnecting)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "sum") // a second connect, which asks for the result
	o.peer(c, FileConnected)
	c.Jump(bpf.JumpNeImm, bpf.R9, 0, -int(unix.EINPROGRESS), "sum")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, ioNew)
	c.Store(bpf.R6, fileConnecting, bpf.R1)
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Op(bpfAtomicAdd, bpf.R6, bpf.R1, fileSums+sumSize*int(IOConnect), 0)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
}
