//go:build linux

package process

import (
	"encoding/binary"
	"slices"
	"strings"

	"goprof/arch"
)

// How goprof finds a thread-local variable that a library exports. Its address is different in each thread. The dynamic
// linker has written some words in the library, from which the library's code computes the variable's address. goprof
// reads these words, so it does not depend on the linker's own structures.

// Local describes the place of a thread-local variable in any thread.
type Local struct {
	// Offset is the variable's offset from the thread pointer, or with Table, in the thread's block of the library.
	Offset int64
	// Table: the library has a block in each thread. The fields below are only for such a library.
	Table bool
	// At is the offset from the thread pointer to the address of the thread's table of blocks.
	At int64
	// Head is the offset of the table's own words. The first of these HeadLen bytes are the number of blocks in the table.
	// The third word, if there is one, is a counter that increases whenever the table is updated.
	Head    int64
	HeadLen int
	// Block is the offset in the table of the address of the library's block. Module is the library's number. A table with
	// fewer blocks has no entry for the library yet.
	Block  int64
	Module uint64
	// Least is the smallest counter with which the table's entry belongs to this library, 0 if not known.
	Least uint64
}

const MaxLocalHead = 24

// Locals are all thread-local variables with one name.
type Locals struct {
	List []Local
	// Pending: the words of a library have not been written yet.
	Pending bool
	// Unknown: a variable is found through tables whose form is not known.
	Unknown bool
	// FromPthread is the distance from a thread's pthread_t up to its thread pointer, -1 if not known.
	FromPthread int64
}

const (
	// maxLocals bounds the libraries that export a variable of one name.
	maxLocals = 16
	maxModule = 1 << 20
)

// Locals finds the thread-local variables with a name that the images export.
func (p *Process) Locals(name string) (found Locals) {
	if !p.lock() {
		return Locals{}
	}
	defer p.mu.Unlock()
	layout := &p.cpu.Locals
	found.FromPthread = -1
	tables, known := (*localTables)(nil), false
	for _, l := range p.images {
		v := l.exported(name, layout)
		if v == nil {
			continue
		}
		if !known {
			tables, known = p.localTables(layout), true
			found.FromPthread = fromPthread(tables, layout)
		}
		local, state := v.resolve(p, layout, tables)
		switch state {
		case localFound:
			if !slices.Contains(found.List, local) { // otherwise one library's variable replaces that of another
				found.List = append(found.List, local)
			}
		case localPending:
			found.Pending = true
		case localUnknown:
			found.Unknown = true
		}
		if len(found.List) == maxLocals {
			break
		}
	}
	return found
}

// localState is the result of resolve.
type localState uint8

const (
	localFound localState = iota
	localPending
	localUnknown
)

// resolve reads the words that the linker has written. If the words are not plausible, the linker has not written them
// yet. A linker writes them before any code of the library runs, except that glibc up to 2.33 writes a descriptor at
// its first use.
func (v *exportedLocal) resolve(m Memory, layout *arch.LocalsLayout, tables *localTables) (Local, localState) {
	if v.kind == localProgram {
		return Local{Offset: v.distance}, localFound
	}
	var words [16]byte
	n := len(words)
	if v.kind == localPointer {
		n = 8
	}
	if m.Read(v.words, words[:n]) != nil {
		return Local{}, localPending
	}
	first, second := binary.LittleEndian.Uint64(words[:]), binary.LittleEndian.Uint64(words[8:])
	switch v.kind {
	case localPointer:
		if layout.IsStatic(first) {
			return Local{Offset: int64(first)}, localFound
		}
	case localDescriptor:
		if layout.IsStatic(second) {
			return Local{Offset: int64(second)}, localFound
		}
		// The argument of the descriptor's function begins with module and offset. In glibc the table's counter follows
		// (glibc sysdeps/generic/dl-tlsdesc.h: tlsdesc_dynamic_arg; musl ldso/dynlink.c: struct td_index).
		var arg [24]byte
		if second == 0 || second&7 != 0 || m.Read(second, arg[:]) != nil {
			return Local{}, localPending
		}
		return tables.local(binary.LittleEndian.Uint64(arg[:]), binary.LittleEndian.Uint64(arg[8:]),
			binary.LittleEndian.Uint64(arg[16:]), v)
	case localModule:
		if v.alone {
			second = v.offset // if only the module is relocated, the second word belongs to another variable
		}
		return tables.local(first, second, 0, v)
	}
	return Local{}, localPending
}

// fromPthread returns Locals.FromPthread. struct pthread begins or ends at the thread pointer (glibc
// sysdeps/x86_64/nptl/tls.h, sysdeps/aarch64/nptl/tls.h; musl arch/x86_64/pthread_arch.h).
func fromPthread(tables *localTables, layout *arch.LocalsLayout) int64 {
	switch {
	case !layout.Above:
		return 0
	case tables != nil && tables.pthread > 0:
		return tables.pthread
	}
	return -1
}

// localTables is the layout of a C library's tables of blocks.
type localTables struct {
	at      int64 // Local.At
	head    int64
	headLen int
	entry   uint64 // bytes of an entry
	counts  bool   // descriptors have the least counter of the table
	pthread int64  // the size of struct pthread if it ends at the thread pointer, otherwise 0
}

func (t *localTables) local(module, offset, least uint64, v *exportedLocal) (Local, localState) {
	switch {
	case module == 0 || module > maxModule || offset != v.offset:
		return Local{}, localPending
	case t == nil:
		return Local{}, localUnknown
	case !t.counts:
		least = 0
	}
	return Local{Table: true, Offset: int64(offset), At: t.at, Head: t.head, HeadLen: t.headLen,
		Block: int64(module * t.entry), Module: module, Least: least}, localFound
}

// localTables returns the layout of the tables (dtv) of the process's C library, or nil if the library is not known.
//
// In glibc (sysdeps/generic/dl-dtv.h) an entry has two words, and the first is the block's address. Entry 0 is a
// counter, and the entry before it holds the number of entries. In musl (src/internal/pthread_impl.h, ldso/dynlink.c)
// an entry is one word, and entry 0 holds the number of entries.
func (p *Process) localTables(layout *arch.LocalsLayout) *localTables {
	for _, l := range p.images {
		switch {
		case l.Name == "libc.so.6" || l.Name == "libpthread.so.0":
			if size, ok := p.agrees(l, layout); ok {
				return &localTables{at: layout.GlibcTable, head: -16, headLen: 24, entry: 16, counts: true, pthread: size}
			}
		case strings.HasPrefix(l.Name, "ld-musl-") || l.Name == "libc.so":
			return &localTables{at: layout.MuslTable, headLen: 8, entry: 8}
		}
	}
	return nil
}

// agrees compares the layout that goprof assumes with glibc's symbols for debuggers. Each symbol describes a field by
// three 32-bit numbers: its size in bits, the number of elements, and its offset (nptl_db/db_info.c,
// nptl_db/structs.def). pthread is the size of struct pthread on a CPU where this struct ends at the thread pointer.
func (p *Process) agrees(l *loaded, layout *arch.LocalsLayout) (pthread int64, agrees bool) {
	field := func(name string) (bits, offset uint32, ok bool) {
		var b [12]byte
		at, err := l.global("_thread_db_" + name)
		if err != nil || p.Read(at, b[:]) != nil {
			return 0, 0, false
		}
		return binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[8:]), true
	}
	entry, first, ok := field("dtv_dtv")
	word, at, ok2 := field("dtv_t_pointer_val")
	_, table, ok3 := field("pthread_dtvp")
	if !ok || !ok2 || !ok3 || entry != 128 || first != 0 || word != 64 || at != 0 {
		return 0, false
	}
	distance := int64(table)
	if layout.Above {
		size, _, ok := field("sizeof_pthread")
		if !ok {
			return 0, false
		}
		pthread = int64(size)
	}
	return pthread, distance-pthread == layout.GlibcTable
}
