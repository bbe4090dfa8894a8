//go:build linux

package process

import (
	"errors"
	"fmt"
	"slices"

	"goprof/arch"
)

// ErrNoEnds: not all ends of a function are known.
var ErrNoEnds = errors.New("process: not all instructions are known with which the function ends")

const (
	maxEndCode   = 16 << 20 // bytes of an image's code
	maxEndPieces = 16       // of one function: its cold part, and functions that it jumps to
	maxEndPiece  = 64 << 10 // bytes of a piece
	maxEnds      = 256      // ends of one function
	maxStub      = 4        // instructions of a linker's stub before its jump
)

// Ends finds the instructions with which a function ends: its returns, and jumps that leave the image. If a function
// jumps to another function, the ends of that function are included.
//
// Ends reads the code from the file, because the code in memory may have another profiler's breakpoints. It decodes
// each instruction, up to the function's end in the unwind information. It returns ErrNoEnds if it does not know an
// instruction, or if a branch leads into the middle of an instruction, because a wrong breakpoint would be fatal.
func (p *Process) Ends(f Function) (returns, leaves []Function, err error) {
	if !p.lock() {
		return nil, nil, ErrSilent
	}
	defer p.mu.Unlock()
	e, err := p.codeOf(f)
	if err == nil {
		err = e.find(f)
	}
	if e == nil {
		return nil, nil, err
	}
	if err == nil && len(e.returns)+len(e.leaves) == 0 {
		err = fmt.Errorf("%w: %s in %s has none", ErrNoEnds, f.Symbol, f.Image)
	}
	return e.functions(e.returns, f.Symbol), e.functions(e.leaves, f.Symbol), err
}

// Enter finds the first instruction of a function that is neither a comparison nor a no-op. The arguments and the stack
// pointer are still unchanged there. A probe at a comparison costs more: the kernel needs a second trap to step over
// it, and none for a branch or a push (arch/x86/kernel/uprobes.c, branch_setup_xol_ops, push_setup_xol_ops).
func (p *Process) Enter(f Function) Function {
	if !p.lock() {
		return f
	}
	defer p.mu.Unlock()
	e, err := p.codeOf(f)
	if err != nil {
		return f
	}
	at := uint32(f.Addr - e.l.Bias - e.start)
	for range maxSkipped {
		var in arch.Inst
		if !e.cpu.Read(e.code, at, &in) || in.Len == 0 {
			return f
		}
		if in.Flow != arch.FlowNext || in.Kind != arch.KindNop && in.Kind != arch.KindCompare {
			if to := e.functions([]uint64{e.start + uint64(at)}, f.Symbol); len(to) == 1 {
				return to[0]
			}
			return f
		}
		at += in.Len
	}
	return f
}

const maxSkipped = 4

func (p *Process) codeOf(f Function) (e *endFinder, err error) {
	l, ok := findExec(p.exec, f.Addr)
	if !ok {
		return nil, ErrNoImage
	}
	l.place()
	i := slices.IndexFunc(l.exec, func(m Mapping) bool { return f.Addr >= m.Start && f.Addr < m.End })
	if i < 0 || l.exec[i].End-l.exec[i].Start > maxEndCode {
		return nil, fmt.Errorf("%w: %s", ErrNoEnds, f.Image)
	}
	m := &l.exec[i]
	e = &endFinder{l: l, cpu: p.cpu, start: m.Start - l.Bias}
	if failed := l.with(func(file *elfFile) {
		e.code, err = file.bytes(m.Offset, min(m.End-m.Start, file.size-min(m.Offset, file.size)))
	}); failed != nil {
		return nil, failed
	}
	return e, err
}

type endFinder struct {
	l       *loaded
	cpu     *arch.CPU
	code    []byte // the mapping with the function
	start   uint64 // the address of code in the file
	pieces  []fde
	known   map[uint32]bool // where instructions begin
	targets []uint32        // targets of branches
	returns []uint64        // addresses in the file
	leaves  []uint64
}

func (e *endFinder) find(f Function) error {
	if !e.add(f.Addr - e.l.Bias) {
		return fmt.Errorf("%w: %s has no unwind information", ErrNoEnds, f.Symbol)
	}
	if !e.readAll() {
		return fmt.Errorf("%w: %s in %s", ErrNoEnds, f.Symbol, f.Image)
	}
	return nil
}

// readAll reads all pieces. It returns false if a branch leads to an address that is not a known instruction.
func (e *endFinder) readAll() bool {
	e.known = map[uint32]bool{}
	for i := 0; i < len(e.pieces); i++ { // reading a piece may add pieces to the list
		if !e.read(e.pieces[i]) {
			return false
		}
	}
	return !slices.ContainsFunc(e.targets, func(to uint32) bool { return !e.known[to] })
}

// add adds the piece of code at an address. It returns false if there is no such piece.
func (e *endFinder) add(addr uint64) bool {
	if slices.ContainsFunc(e.pieces, func(o fde) bool { return addr-o.start < o.size }) {
		return true
	}
	t := e.l.unwindTable()
	if t == nil {
		return false
	}
	piece, err := t.find(addr)
	size := uint64(len(e.code))
	if err != nil || piece.start-e.start >= size || piece.size > min(maxEndPiece, size-(piece.start-e.start)) {
		return false
	}
	e.pieces = append(e.pieces, piece)
	return len(e.pieces) <= maxEndPieces
}

func (e *endFinder) read(piece fde) bool {
	at := uint32(piece.start - e.start)
	begin, end := at, at+uint32(piece.size)
	for at < end {
		var in arch.Inst
		if !e.cpu.Read(e.code, at, &in) || in.Len == 0 || len(e.returns)+len(e.leaves) >= maxEnds {
			return false
		}
		e.known[at] = true
		away := in.HasTarget && (in.Target < begin || in.Target >= end)
		jumps := in.Flow == arch.FlowJump || in.Flow == arch.FlowBranch
		switch here := e.start + uint64(at); {
		case in.Flow == arch.FlowReturn:
			e.returns = append(e.returns, here)
		case in.Flow == arch.FlowJump && (!in.HasTarget || away && e.isStub(in.Target)):
			e.leaves = append(e.leaves, here)
		case jumps && (!in.HasTarget || away && (e.isStub(in.Target) || !e.add(e.start+uint64(in.Target)))):
			return false // it is not known whether a branch out of the image is taken; or the piece is not known
		case jumps:
			e.targets = append(e.targets, in.Target)
		}
		at += in.Len
	}
	return at == end
}

// isStub reports whether the code at an offset jumps to another image: a few instructions, and a jump to a computed
// address.
func (e *endFinder) isStub(at uint32) bool {
	for range maxStub {
		var in arch.Inst
		if !e.cpu.Read(e.code, at, &in) || in.Flow == arch.FlowJump {
			return in.Flow == arch.FlowJump && !in.HasTarget
		}
		if in.Flow != arch.FlowNext {
			return false
		}
		at += in.Len
	}
	return false
}

func (e *endFinder) functions(addrs []uint64, symbol string) (list []Function) {
	for _, addr := range addrs {
		if f, ok := e.l.functionAt(addr); ok {
			f.Symbol = symbol
			list = append(list, f)
		}
	}
	return list
}
