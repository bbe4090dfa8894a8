package postmortem

import (
	"bytes"
	"fmt"

	"goprof/arch"
	"goprof/process"
	"goprof/profile"
)

// core fills in the facts that are not about threads, and moves the thread that died to the front.
func (d *dump) core() {
	c := d.out.Core
	c.Size, c.Cut, c.Tool = d.Core.Size(), d.Core.Cut(), d.Core.MadeByTool()
	for _, m := range d.Core.Missing() {
		c.Missing = append(c.Missing, profile.MissingFile{Path: m.Path, BuildID: m.BuildID, Why: m.Err.Error()})
	}
	for _, u := range d.Core.Unproven() {
		c.Unproven = append(c.Unproven, profile.UnprovenFile{Path: u.Path, Percent: u.Percent})
	}
	d.heap(c)
	died := d.signal(c)
	profile.Order(d.out.Threads)
	if died < 0 {
		return
	}
	for i := range d.out.Threads {
		if t := &d.out.Threads[i]; t.Died {
			first := *t
			copy(d.out.Threads[1:i+1], d.out.Threads[:i])
			d.out.Threads[0] = first
			c.Died = first.Ref()
			break
		}
	}
}

func (d *dump) heap(c *profile.Core) {
	h := d.VM.NewHealth()
	c.Collector = h.Collector()
	use := h.Heap()
	c.HeapUsed, c.HeapCommitted, c.HeapMax = use.Heap.Used.Or(0), use.Heap.Committed.Or(0), use.Heap.Max.Or(0)
	c.Collecting = use.Active.Or(false)
}

// signal finds out what ended the process. It returns the index of the thread that died, or -1 if no thread did.
func (d *dump) signal(c *profile.Core) int {
	if len(d.threads) == 0 {
		return -1
	}
	t := &d.threads[0] // the kernel writes it first
	info := process.SigInfo{Signal: t.Signal}
	if t.Info != nil && (t.Info.Signal == t.Signal || t.Signal == 0) {
		info = *t.Info
	}
	if !deadly[info.Signal] || c.Tool && info.Code <= 0 && info.Signal == sigTrap {
		return -1
	}
	at := t.Regs[d.Core.CPU().PC]
	c.Signal = d.describeSignal(&info, at)
	c.Signal.Frame = 0
	if info.Signal == sigAbort {
		d.cause(c, &d.out.Threads[0].Stack)
	}
	d.out.Threads[0].Died = true
	return 0
}

// cause looks for the fault that led to an abort. HotSpot's signal handler writes its report and calls abort. So the
// kernel's frame for the fault is still on the stack, with its siginfo_t. While the handler writes the report, it may
// fault again, any number of times (utilities/vmError.cpp, crash_handler). The lowest such frame is the first fault.
func (d *dump) cause(c *profile.Core, stack *profile.Stack) {
	cpu := d.Core.CPU()
	for i := 0; i+1 < len(stack.Frames); i++ {
		f := &stack.Frames[i]
		if f.Kind != profile.Native || !d.isHandlerReturn(f.PC) {
			continue
		}
		var b [arch.MaxSigInfo]byte
		if d.Core.Read(f.SP+uint64(cpu.SigInfo), b[:]) != nil {
			continue
		}
		if info := process.DecodeSigInfo(b[:]); deadly[info.Signal] {
			c.Cause = d.describeSignal(&info, stack.Frames[i+1].PC)
			c.Cause.Frame = i + 1
		}
	}
}

// isHandlerReturn reports whether a signal handler returns to pc.
func (d *dump) isHandlerReturn(pc uint64) bool {
	if want := d.Core.CPU().Sigreturn; len(want) > 0 {
		code := make([]byte, len(want))
		return d.Core.Read(pc, code) == nil && bytes.Equal(code, want)
	}
	code, ok := d.Core.Code(pc, true)
	return ok && code.Row != nil && code.Row.Signal
}

// codeBytes is how many bytes of code are shown at the place of a signal.
const codeBytes = 16

func (d *dump) describeSignal(info *process.SigInfo, pc uint64) *profile.Signal {
	s := &profile.Signal{Number: info.Signal, Name: signalName(info.Signal), PC: pc, Frame: -1}
	s.Why = reasonOfSignal(info.Signal, info.Code)
	if info.Code <= 0 {
		s.Sender = info.PID
	} else if faults[info.Signal] {
		s.Addr, s.HasAddr = info.Addr, true
		s.Where = d.where(info.Addr)
	}
	b := make([]byte, codeBytes)
	s.Code = b[:d.Core.ReadUpTo(pc, b)]
	return s
}

// where describes what an address is in: an image, a heap, a stack.
func (d *dump) where(addr uint64) string {
	if addr < 4096 {
		return "the first page: a null pointer, or a field of one"
	}
	for i := range d.threads {
		t := &d.threads[i].java
		if t.Addr != 0 && addr < t.StackBase && addr >= t.StackBase-t.StackSize {
			return fmt.Sprintf("the stack of thread %d, %d KB above its end", d.threads[i].TID,
				(addr-(t.StackBase-t.StackSize))>>10)
		}
	}
	for _, m := range d.Core.Mappings() {
		if addr >= m.Start && addr < m.End {
			switch {
			case m.Path != "":
				return m.Path
			case m.Perm == 0:
				return "memory that no code may touch"
			}
			return "memory of the process"
		}
	}
	return "no mapping"
}
