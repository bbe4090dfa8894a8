//go:build linux

package events

import (
	"golang.org/x/sys/unix"

	"goprof/sampler/bpf"
)

// The common parts of IO's programs. r6 is the context, r7 the counts, r8 the ioCall of the thread.

// ioCall is the state of a thread: the call that it is in, and what it has tried.
type ioCall struct {
	begun, kind, fd, id, arg, arg2 uint64
	tried                          uint64 // a descriptor + 1 that the thread tries to read or write; 0: none
	triedID, triedSince            uint64
	waited                         uint64 // 1: the thread has since waited for the descriptor
	polled, polls                  uint64 // the time of these waits, and their number
	again                          uint64 // when a call began that the kernel is going to restart; 0: there is none
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

// Places on the stack of a program, all below the bytes of a record.
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

// The fields of a record about a call, in Look.Event.Data.
const (
	ioDataID   = 0
	ioDataFD   = 8
	ioDataKind = 16
	ioDataRet  = 24
	ioDataTook = 32
	ioDataSize = 40
)

// Numbers of the kernel.
const (
	bpfPush    = 87 // bpf_map_push_elem(map, value, flags): 0, or an error if the map is full
	bpfNoExist = 1
	bpfOr      = 0x4f
	bpfJumpSGE = 0x75 // a signed comparison with a constant

	epollDel     = unix.EPOLL_CTL_DEL
	epollOneShot = unix.EPOLLONESHOT
	pollBroken   = unix.POLLERR | unix.POLLHUP
)

// newIOCode returns the beginning of a program. The program ends for other processes, and while hits do not count. The
// thread is at ioKey.
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
