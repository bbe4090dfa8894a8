//go:build linux

package ptrace

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process"
	"goprof/sampler/look"
)

// If a process publishes contexts (look.Context), the pause is one system call longer. A chain of pointers leads to the
// thread's record. The call reads all pointers and the record at once, at the addresses that the last look found. Each
// pointer must then lead to the address that was read for the next step. From the first difference on, goprof reads the
// chain step by step. The rules of pause.go hold here too.

// copyContext copies the record of a stopped thread's context. If pointer is 0, the thread pointer is taken from the
// registers, which must have been read.
//
//go:nosplit
func (t *Tracer) copyContext(tid int, pointer uint64) {
	if t.Contexts == nil || t.reader == nil {
		return
	}
	w := t.Contexts.ways.Load()
	if w == nil || len(t.context.guess) == 0 {
		return
	}
	t.look.context = look.ContextUnreadable
	if pointer == 0 {
		var ok bool
		if pointer, ok = t.threadPointer(tid); !ok {
			return
		}
	}
	g := &t.context.guess[uint(tid)%contextGuesses]
	if g.tid != tid || g.number != w.number || g.pointer != pointer {
		*g = contextGuess{tid: tid, number: w.number, pointer: pointer}
	}
	t.look.context = look.ContextNone
	for i := range w.n {
		state := t.copyRecord(tid, &w.list[i], g, i)
		if state == look.ContextRead && t.reader.context.record[look.ContextValid] != 1 {
			state = look.ContextInvalid
		}
		if state != look.ContextNone {
			t.look.context = state
		}
		if state == look.ContextRead {
			return
		}
	}
}

// copyRecord follows one chain of pointers to the record. It returns ContextRead if it could read a record, whatever
// the record says.
//
//go:nosplit
func (t *Tracer) copyRecord(tid int, v *process.Local, g *contextGuess, i int) look.ContextState {
	d, at := &t.reader.context, &g.at[i]
	slot := g.pointer + uint64(v.Offset)
	got := -1
	if v.Table {
		if at.block != 0 {
			got = t.readGuess(tid, v, g, i) - (8 + v.HeadLen + 8)
		}
		if got < 0 || d.table != at.table || d.block != at.block || !tableServes(v, d) {
			if state := t.findBlock(tid, v, g, i); state != look.ContextRead {
				return state
			}
			got = -1
		}
		slot = at.block + uint64(v.Offset)
	}
	if got < 0 {
		got = t.readRecord(tid, slot, at.record)
	}
	switch {
	case got < 8:
		return look.ContextUnreadable
	case d.slot == 0:
		return look.ContextNone
	case d.slot == at.record && got == 8+look.ContextSize:
		return look.ContextRead
	}
	at.record = d.slot
	if d.slot&1 != 0 { // a record begins at an even address
		return look.ContextUnreadable
	}
	t.reader.set(0, &d.record[0], d.slot, look.ContextSize)
	if t.fetchContext(tid, 1) != look.ContextSize {
		return look.ContextUnreadable
	}
	return look.ContextRead
}

// readGuess reads a whole chain that goes through a table, at the guessed addresses. It returns how many bytes it read.
//
//go:nosplit
func (t *Tracer) readGuess(tid int, v *process.Local, g *contextGuess, i int) int {
	k, d, at := t.reader, &t.reader.context, &g.at[i]
	k.set(0, (*byte)(unsafe.Pointer(&d.table)), g.pointer+uint64(v.At), 8)
	k.set(1, &d.head[0], at.table+uint64(v.Head), v.HeadLen)
	k.set(2, (*byte)(unsafe.Pointer(&d.block)), at.table+uint64(v.Block), 8)
	return t.fetchContext(tid, 3+t.setRecord(3, at.block+uint64(v.Offset), at.record))
}

// readRecord reads the variable in one call with the record, which it expects at its last address. It returns how many
// bytes it read.
//
//go:nosplit
func (t *Tracer) readRecord(tid int, slot, record uint64) int {
	return t.fetchContext(tid, t.setRecord(0, slot, record))
}

//go:nosplit
func (t *Tracer) setRecord(first int, slot, record uint64) int {
	k, d := t.reader, &t.reader.context
	k.set(first, (*byte)(unsafe.Pointer(&d.slot)), slot, 8)
	if record == 0 {
		return 1
	}
	k.set(first+1, &d.record[0], record, look.ContextSize)
	return 2
}

// findBlock finds the library's block of thread-local variables for this thread, step by step. It returns ContextRead
// if there is one.
//
//go:nosplit
func (t *Tracer) findBlock(tid int, v *process.Local, g *contextGuess, i int) look.ContextState {
	k, d, at := t.reader, &t.reader.context, &g.at[i]
	at.table, at.block = 0, 0
	k.set(0, (*byte)(unsafe.Pointer(&d.table)), g.pointer+uint64(v.At), 8)
	if t.fetchContext(tid, 1) != 8 || d.table == 0 {
		return look.ContextUnreadable
	}
	k.set(0, &d.head[0], d.table+uint64(v.Head), v.HeadLen)
	if t.fetchContext(tid, 1) != v.HeadLen {
		return look.ContextUnreadable
	}
	if !tableServes(v, d) {
		return look.ContextNone // the thread has not used the library's variables yet
	}
	k.set(0, (*byte)(unsafe.Pointer(&d.block)), d.table+uint64(v.Block), 8)
	if t.fetchContext(tid, 1) != 8 {
		return look.ContextUnreadable
	}
	if d.block == 0 || d.block == unallocated {
		return look.ContextNone
	}
	at.table, at.block = d.table, d.block
	return look.ContextRead
}

// unallocated stands in glibc's tables for a block that the thread has not needed yet (TLS_DTV_UNALLOCATED).
const unallocated = ^uint64(0)

// tableServes reports whether the thread's table has an entry that belongs to the library.
//
//go:nosplit
func tableServes(v *process.Local, d *contextReads) bool {
	size := *(*uint64)(unsafe.Pointer(&d.head[0]))
	count := *(*uint64)(unsafe.Pointer(&d.head[16]))
	return size >= v.Module && (v.Least == 0 || count >= v.Least)
}

// fetchContext is fetch for a context. It reads nothing once the time for all reads of this look is over: each read may
// take some ms longer, and a context may need many.
//
//go:nosplit
func (t *Tracer) fetchContext(tid int, n int) int {
	if Monotonic() >= t.readUntil {
		return 0
	}
	t.context.reads++
	return t.fetch(tid, 0, uintptr(n))
}

// threadPointer returns the thread pointer of a stopped thread, whose general registers have been read.
//
//go:nosplit
func (t *Tracer) threadPointer(tid int) (uint64, bool) {
	l := t.locals
	if l.RegSet == arch.RegSetGeneral {
		return *(*uint64)(unsafe.Pointer(&t.regs[l.PointerAt])), true
	}
	t.pointerVec.Len = uint64(unsafe.Sizeof(t.pointer))
	if ptrace(unix.PTRACE_GETREGSET, uintptr(tid), l.RegSet, uintptr(unsafe.Pointer(&t.pointerVec))) != 0 {
		return 0, false
	}
	return t.pointer, true
}
