package arch

import "debug/elf"

// LocalsLayout describes how code of a CPU finds thread-local variables. Each thread has a thread pointer. The
// variables of the program and of libraries that are loaded with it lie at fixed distances from the thread pointer
// (static TLS). A library that is loaded later has a block of its own in each thread. A table of the thread (dtv) leads
// to its blocks (U. Drepper, ELF Handling For Thread-Local Storage).
type LocalsLayout struct {
	// RegSet is the kernel's register set with the thread pointer, PointerAt the thread pointer's offset in that set.
	RegSet    uintptr
	PointerAt int

	// The types of the relocations that lead to a variable. Descriptor fills in two words: a function, and its argument.
	// Module and Offset fill in the number of the library and the offset in its block. Pointer fills in the distance from
	// the thread pointer.
	Descriptor, Module, Offset, Pointer uint32

	// GlibcTable and MuslTable are the distances from the thread pointer to the word with the address of the thread's
	// table.
	GlibcTable, MuslTable int64

	// Above: static variables lie above the thread pointer, behind Reserved bytes, the program's own first. Otherwise they
	// lie below, and the program's block ends at the thread pointer.
	Above    bool
	Reserved uint64
}

// RegSetGeneral is the set of the general registers: NT_PRSTATUS.
const RegSetGeneral = uintptr(elf.NT_PRSTATUS)

// MaxStaticLocals bounds the distance of a static variable from the thread pointer: a larger number is an address.
const MaxStaticLocals = 1 << 24

// IsStatic reports whether a word is the distance of a static variable from the thread pointer.
func (l *LocalsLayout) IsStatic(word uint64) bool {
	if l.Above {
		return word > 0 && word < MaxStaticLocals
	}
	return -word > 0 && -word < MaxStaticLocals
}

// OfProgram returns the distance of a variable of the program itself from the thread pointer. The variable is at offset
// in the program's block, which has that size and alignment (glibc elf/rtld.c, musl ldso/dynlink.c: the program's block
// comes first). ok is false for a block that no linker makes.
func (l *LocalsLayout) OfProgram(offset, size, align uint64) (distance int64, ok bool) {
	align = max(align, 1)
	if size > MaxStaticLocals || align > MaxStaticLocals || align&(align-1) != 0 || offset >= size {
		return 0, false
	}
	up := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	if l.Above {
		return int64(up(l.Reserved) + offset), true
	}
	return int64(offset) - int64(up(size)), true
}
