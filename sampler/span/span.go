//go:build linux

package span

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"goprof/sampler/bpf"
	"goprof/sampler/cpuset"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// Reader is what programs need to find the records of the threads of some processes. The nil Reader finds none.
type Reader struct {
	table   int  // a map: the process, and the ways to its records
	one     bool // the programs run for one process only. Its number may be another one for them (PID namespaces)
	pointer int  // where in the kernel's struct task_struct the thread pointer is
	told    map[uint32]uint64
}

// The ways to the records of a process, in the map. Those that do not exist are zero.
const (
	wayKind   = 0  // wayStatic or wayTable; 0: there is none
	wayOffset = 8  // process.Local has the others
	wayAt     = 16 // of a table, as all that follow
	wayHead   = 24
	wayBlock  = 32
	wayModule = 40
	wayLeast  = 48
	waySize   = 56
	waysSize  = ptrace.MaxContextWays * waySize

	wayStatic, wayTable = 1, 2
)

// Of what a program writes: ring.Bytes.Span reads it.
const (
	spanState  = 0
	spanRecord = 8
)

// unallocated stands in glibc's tables for a block that the thread has not needed yet (TLS_DTV_UNALLOCATED).
const unallocated = -1

// ErrFiles: goprof may not open files enough for what must be open, and for spans as well.
var ErrFiles = errors.New("sampler: too few files may be open")

// haveFiles reports whether there are descriptors for spans. A run has up to 8 for each CPU, 2 of them for spans.
func haveFiles() bool {
	var lim unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && lim.Cur >= 256+8*uint64(len(cpuset.Online()))
}

// New makes a Reader for as many processes, or for the one process that its programs run for: most is 0 then. The
// error says why records cannot be read here.
func New(most int) (*Reader, error) {
	if !haveFiles() {
		return nil, ErrFiles
	}
	pointer, err := pointerAt()
	if err != nil {
		return nil, err
	}
	table, err := bpf.NewMap(bpf.MapHash, 4, waysSize, max(most, 1))
	if err != nil {
		return nil, err
	}
	return &Reader{table: table, one: most == 0, pointer: pointer, told: map[uint32]uint64{}}, nil
}

// Close gives back the map. Programs keep it for as long as they run.
func (r *Reader) Close() {
	if r != nil {
		unix.Close(r.table)
	}
}

func (r *Reader) key(pid int) uint32 {
	if r.one {
		return 0
	}
	return uint32(pid)
}

// Follow tells the programs where a process publishes now. It is to be called now and then.
func (r *Reader) Follow(pid int, contexts *ptrace.Contexts) {
	if r == nil || contexts == nil {
		return
	}
	list, number := contexts.Ways()
	key := r.key(pid)
	if r.told[key] == number {
		return
	}
	r.Forget(pid)
	if len(list) == 0 {
		return
	}
	ways := make([]byte, waysSize)
	for i, v := range list {
		words := []int64{wayStatic, v.Offset, v.At, int64(v.Head), v.Block, int64(v.Module), int64(v.Least)}
		if v.Table {
			words[0] = wayTable
		}
		for j, word := range words {
			binary.NativeEndian.PutUint64(ways[i*waySize+8*j:], uint64(word))
		}
	}
	if bpf.Change(bpf.UpdateElem, r.table, key, ways) == nil {
		r.told[key] = number
	}
}

// Forget is for a process that has ended, or is not wanted any more.
func (r *Reader) Forget(pid int) {
	if r == nil {
		return
	}
	key := r.key(pid)
	if _, ok := r.told[key]; ok {
		delete(r.told, key)
		bpf.Change(bpf.DeleteElem, r.table, key, nil)
	}
}

// Read writes code that puts the context of the thread to a place on the program's stack: ring.SpanSize bytes. The
// code uses r0 to r5, r8 and r9. A process that publishes nothing has look.ContextUnasked.
func (r *Reader) Read(c *bpf.Code, to int) {
	for at := 0; at < ring.SpanSize; at += 8 {
		c.Zero(bpf.R10, to+at)
	}
	if r == nil {
		return
	}
	w := &way{c, to}
	c.Imm(bpf.MovImm, bpf.R0, 0)
	if !r.one {
		c.Call(bpf.GetCurrentPIDTGID)
		c.Imm(bpf.RightImm, bpf.R0, 32)
	}
	c.Store32(bpf.R10, to+spanRecord, bpf.R0)
	c.CallOf(bpf.MapLookup, r.table, to+spanRecord)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "span: end")
	c.Mov(bpf.R8, bpf.R0)
	w.is(look.ContextUnreadable)
	c.Call(bpf.GetCurrentTask)
	c.Mov(bpf.R3, bpf.R0)
	c.Imm(bpf.AddImm, bpf.R3, r.pointer)
	w.read(bpf.ReadKernel, 8, "span: end")
	c.Load(bpf.Load64, bpf.R9, bpf.R10, to+spanRecord)
	w.is(look.ContextNone)
	for range ptrace.MaxContextWays {
		w.follow()
		c.Imm(bpf.AddImm, bpf.R8, waySize)
	}
	c.Label("span: end")
}

// way is the code for one way. r8 points to it, r9 is the thread pointer. What is read lies where the record will be.
type way struct {
	*bpf.Code
	to int
}

// is sets what became of the search.
func (w *way) is(state look.ContextState) {
	w.Imm(bpf.MovImm, bpf.R1, int(state))
	w.Store(bpf.R10, w.to+spanState, bpf.R1)
}

// read reads what is at r3.
func (w *way) read(helper, size int, otherwise string) {
	w.Mov(bpf.R1, bpf.R10)
	w.Imm(bpf.AddImm, bpf.R1, w.to+spanRecord)
	w.Imm(bpf.MovImm, bpf.R2, size)
	w.Call(helper)
	w.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, otherwise)
}

// word reads a word into r3. It lies at r3, plus the way's field of, plus more.
func (w *way) word(of, more int) {
	w.Load(bpf.Load64, bpf.R1, bpf.R8, of)
	w.Op(bpf.Add, bpf.R3, bpf.R1, 0, 0)
	if more != 0 {
		w.Imm(bpf.AddImm, bpf.R3, more)
	}
	w.read(bpf.ProbeReadUser, 8, "span: unreadable")
	w.Load(bpf.Load64, bpf.R3, bpf.R10, w.to+spanRecord)
}

// tableAt is where the address of the thread's table is kept.
const tableAt = spanRecord + 8

// follow goes one way, as ptrace.Tracer.copyRecord does.
func (w *way) follow() {
	w.Load(bpf.Load64, bpf.R1, bpf.R8, wayKind)
	w.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "span: end")
	w.Mov(bpf.R3, bpf.R9)
	w.Jump(bpf.JumpEqImm, bpf.R1, 0, wayStatic, "span: block")
	w.block()
	w.Label("span: block")
	w.word(wayOffset, 0)
	w.Jump(bpf.JumpEqImm, bpf.R3, 0, 0, "span: none")
	w.Mov(bpf.R1, bpf.R3)
	w.Imm(bpf.AndImm, bpf.R1, 1) // a record begins at an even address
	w.Jump(bpf.JumpNeImm, bpf.R1, 0, 0, "span: unreadable")
	w.read(bpf.ProbeReadUser, look.ContextSize, "span: unreadable")
	w.is(look.ContextRead)
	w.Load(bpf.Load8, bpf.R1, bpf.R10, w.to+spanRecord+look.ContextValid)
	w.Jump(bpf.JumpEqImm, bpf.R1, 0, 1, "span: end")
	w.is(look.ContextInvalid)
	w.Jump(bpf.Goto, 0, 0, 0, "span: none")
	w.Label("span: unreadable")
	w.is(look.ContextUnreadable)
	w.Label("span: none")
}

// block puts the address of the library's block of this thread into r3.
func (w *way) block() {
	w.word(wayAt, 0)
	w.Jump(bpf.JumpEqImm, bpf.R3, 0, 0, "span: unreadable")
	w.Store(bpf.R10, w.to+tableAt, bpf.R3)
	w.word(wayHead, 0)
	w.Load(bpf.Load64, bpf.R1, bpf.R8, wayModule)
	w.Jump(bpf.JumpGt, bpf.R1, bpf.R3, 0, "span: none")
	w.Load(bpf.Load64, bpf.R1, bpf.R8, wayLeast)
	w.Jump(bpf.JumpEqImm, bpf.R1, 0, 0, "span: serves")
	w.Load(bpf.Load64, bpf.R3, bpf.R10, w.to+tableAt)
	w.word(wayHead, 16)
	w.Load(bpf.Load64, bpf.R1, bpf.R8, wayLeast)
	w.Jump(bpf.JumpGt, bpf.R1, bpf.R3, 0, "span: none")
	w.Label("span: serves")
	w.Load(bpf.Load64, bpf.R3, bpf.R10, w.to+tableAt)
	w.word(wayBlock, 0)
	w.Jump(bpf.JumpEqImm, bpf.R3, 0, 0, "span: none")
	w.Jump(bpf.JumpEqImm, bpf.R3, 0, unallocated, "span: none")
}
