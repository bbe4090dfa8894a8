//go:build linux

package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"goprof/arch"
	"goprof/process"
	"goprof/profile"
	"goprof/sampler/ptrace"
	"goprof/session"
)

// moment is a thread between two instructions: the machine, and what the walker made of it.
type moment struct {
	pc, sp  uint64
	regs    arch.Regs
	code    [maxInstruction]byte // the instruction that comes next
	where   place                // of pc
	signal  int                  // not 0: the next step delivers it
	frames  []physical           // the walk, topmost first
	why     profile.Reason       // Whole unless the walk was cut short
	stackAt uint64               // address of stack[0]
	stack   []byte

	walk profile.Stack
	snap process.Snapshot
}

// physical is a frame on the stack, with all methods that are inlined into it.
type physical struct {
	pc, sp uint64
	// slot is where pc stands as a return address, or that it stands in a register; 0 where it is no return
	// address (the topmost frame, one that a signal interrupted) or is not to be found.
	slot    uint64
	methods []profile.Frame // innermost first; the last one owns the frame
	// patched: pc is where HotSpot sends those that return into a frame which it has
	// given up (nmethod::deopt_handler_begin).
	patched bool
	// framed: the frame is found by its frame pointer: the interpreter's, the call stub's.
	framed bool
}

func (p *physical) owner() *profile.Frame { return &p.methods[len(p.methods)-1] }

// place is the piece of code that a pc lies in.
type place struct {
	what string // "native", "interpreter", or the kind of the blob
	name string // of the codelet, stub, method or C function
	at   uint64 // where that piece of code begins, 0 for native code
}

const (
	inNative      = "native"
	inInterpreter = "interpreter"
)

// isEntry: a method's entry in the interpreter, where its frame is built.
func (p place) isEntry() bool {
	return p.what == inInterpreter && strings.Contains(p.name, "method entry point")
}

func (p place) String() string { return p.what + " " + p.name }

// onTop: the topmost frame is the one whose code the thread is in.
func (m *moment) onTop() bool { return m.frames[0].pc == m.pc && m.frames[0].sp == m.sp }

// word reads a word of the stack as it was then.
func (m *moment) word(addr uint64) (uint64, bool) {
	off := addr - m.stackAt
	if off >= uint64(len(m.stack)) || uint64(len(m.stack))-off < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(m.stack[off:]), true
}

var errOffStack = errors.New("the thread is not on its stack")

// take fills m with the moment at which the stepper's thread stands.
func (m *moment) take(s *session.Session, st *stepper, h ptrace.Hint) error {
	m.pc, m.sp, m.regs, m.signal = st.pc, st.sp, st.regs, st.signal
	if m.sp >= h.StackTop || h.StackTop-m.sp > 4<<20 {
		return errOffStack
	}
	n := int(h.StackTop - m.sp)
	if cap(m.stack) < n {
		m.stack = make([]byte, n, n+64<<10)
	}
	m.stack, m.stackAt = m.stack[:n], m.sp
	snap := &m.snap
	snap.TID, snap.Regs, snap.SP, snap.Stack, snap.Syscall = st.tid, m.regs, m.sp, m.stack, -1
	snap.PACMask = st.pac
	if len(snap.Side) != h.SideLen {
		snap.Side = make([]byte, h.SideLen)
	}
	snap.SideAddr = h.Side
	reads := [...]process.Range{{Addr: m.sp, Buf: m.stack}, {Addr: h.Side, Buf: snap.Side}, {Addr: m.pc, Buf: m.code[:]}}
	s.Process.ReadMany(reads[:])
	if !reads[0].OK || !reads[1].OK {
		return errOffStack
	}
	if !reads[2].OK { // at the end of a mapping
		clear(m.code[:])
	}
	st.code = m.code
	s.Walker.Walk(snap, &m.walk)
	m.why = m.walk.Truncated
	m.group(s)
	m.where = placeOf(s, m.pc, m.frames)
	return nil
}

// group makes physical frames of the walk: what is inlined shares pc and sp with its owner.
func (m *moment) group(s *session.Session) {
	m.frames = m.frames[:0]
	all := m.walk.Frames
	for i := 0; i < len(all); {
		n := i + 1
		for n < len(all) && all[n].PC == all[i].PC && all[n].SP == all[i].SP {
			n++
		}
		p := physical{pc: all[i].PC, sp: all[i].SP, methods: all[i:n]}
		p.framed = s.VM.InInterpreter(p.pc) || p.pc == s.VM.CallStubReturn()
		if i > 0 {
			p.slot = m.slotOf(&m.frames[len(m.frames)-1], &p)
		}
		if k := p.owner().Kind; k == profile.C1 || k == profile.C2 {
			b, err := s.VM.Blob(p.pc)
			p.patched = err == nil && (p.pc == b.DeoptHandlers[0] || p.pc == b.DeoptHandlers[1])
		}
		m.frames = append(m.frames, p)
		i = n
	}
}

func placeOf(s *session.Session, pc uint64, frames []physical) place {
	name := ""
	if len(frames) > 0 {
		name = frames[0].owner().Func.Name
	}
	if !s.VM.InCode(pc) {
		if len(frames) > 0 && frames[0].owner().Kind == profile.Interpreted { // of JDK 9 to 15: unwind/trampoline.go
			return place{what: inInterpreter, name: "method entry point in the archive of class data"}
		}
		return place{what: inNative, name: name}
	}
	if c, ok := s.VM.Codelet(pc); ok {
		return place{what: inInterpreter, name: s.VM.Describe(c), at: c.Begin}
	}
	b, err := s.VM.Blob(pc)
	if err != nil {
		return place{what: "unknown", name: name}
	}
	return place{what: b.Kind.String(), name: name, at: b.Begin}
}

func (m *moment) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pc %#x sp %#x in %v, signal %d, %v, code % x\n", m.pc, m.sp, m.where, m.signal, m.why, m.code)
	for i, f := range m.frames {
		if i == 12 {
			fmt.Fprintf(&b, "    ... %d more\n", len(m.frames)-i)
			break
		}
		fmt.Fprintf(&b, "    pc %#x sp %#x slot %#x", f.pc, f.sp, f.slot)
		for _, method := range f.methods {
			fmt.Fprintf(&b, " | %v %s:%d bci %d", method.Kind, method.Func.Name, method.Line, method.BCI)
		}
		b.WriteByte('\n')
	}
	for i := uint64(0); i < 16; i++ {
		if v, ok := m.word(m.sp + i*8); ok {
			fmt.Fprintf(&b, "      sp+%#x: %#x\n", i*8, v)
		}
	}
	return b.String()
}
