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

// Reader lets BPF programs find the records of the threads of some processes. The nil Reader finds none.
type Reader struct {
	table   int  // a map from a process to the ways to its records
	one     bool // the programs run for one process only, whose number they may see differently (PID namespaces)
	pointer int  // the offset of the thread pointer in the kernel's struct task_struct
	told    map[uint32]uint64
}

// The fields of a way to records in the map. A way that does not exist is zero.
const (
	wayKind   = 0  // wayStatic or wayTable; 0: there is no way
	wayOffset = 8  // this field and those below are as in process.Local
	wayAt     = 16 // this field and those below are only for wayTable
	wayHead   = 24
	wayBlock  = 32
	wayModule = 40
	wayLeast  = 48
	waySize   = 56
	waysSize  = ptrace.MaxContextWays * waySize

	wayStatic, wayTable = 1, 2
)

// The fields that a program writes and ring.Bytes.Span reads.
const (
	spanState  = 0
	spanRecord = 8
)

// unallocated stands in glibc's tables for a block that the thread has not needed yet (TLS_DTV_UNALLOCATED).
const unallocated = -1

// ErrFiles: goprof may not open enough files for spans.
var ErrFiles = errors.New("sampler: too few files may be open")

// haveFiles reports whether there are enough descriptors for spans. A run uses up to 8 for each CPU, 2 of them for
// spans.
func haveFiles() bool {
	var lim unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && lim.Cur >= 256+8*uint64(len(cpuset.Online()))
}

// New makes a Reader for at most that many processes. most is 0 if the programs run for one process only. The error
// says why records cannot be read here.
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

// Close closes the map. Running programs keep it.
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

// Follow updates where a process publishes. Call it now and then.
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

// Forget drops a process that has ended or is no longer wanted.
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

// Read writes code that puts the context of the thread at a place on the program's stack: ring.SpanSize bytes. The code
// uses r0 to r5, r8 and r9. For a process that publishes nothing the state is look.ContextUnasked.
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

// way writes the code for one way. r8 points to the way, and r9 is the thread pointer. Intermediate reads use the room
// of the record.
type way struct {
	*bpf.Code
	to int
}

// is sets the state of the context.
func (w *way) is(state look.ContextState) {
	w.Imm(bpf.MovImm, bpf.R1, int(state))
	w.Store(bpf.R10, w.to+spanState, bpf.R1)
}

// read reads size bytes from r3. It jumps to otherwise if they cannot be read.
func (w *way) read(helper, size int, otherwise string) {
	w.Mov(bpf.R1, bpf.R10)
	w.Imm(bpf.AddImm, bpf.R1, w.to+spanRecord)
	w.Imm(bpf.MovImm, bpf.R2, size)
	w.Call(helper)
	w.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, otherwise)
}

// word reads the word at r3 + field + more into r3. of is the offset of the field in the way.
func (w *way) word(of, more int) {
	w.Load(bpf.Load64, bpf.R1, bpf.R8, of)
	w.Op(bpf.Add, bpf.R3, bpf.R1, 0, 0)
	if more != 0 {
		w.Imm(bpf.AddImm, bpf.R3, more)
	}
	w.read(bpf.ProbeReadUser, 8, "span: unreadable")
	w.Load(bpf.Load64, bpf.R3, bpf.R10, w.to+spanRecord)
}

// tableAt is the place for the address of the thread's table.
const tableAt = spanRecord + 8

// follow follows one way, as ptrace.Tracer.copyRecord does.
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
