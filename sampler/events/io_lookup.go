//go:build linux

package events

import (
	"goprof/arch"
	"goprof/sampler/bpf"
)

// The programs at the beginning and the ends of getaddrinfo.

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

// lookedProgram makes the program that runs where getaddrinfo ends. The look-up becomes a File of its own, which has
// ended.
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
