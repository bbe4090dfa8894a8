package process

import (
	"debug/elf"
	"encoding/binary"

	"goprof/arch"
)

// exportedLocal is a thread-local variable of an image, and the words with which its code finds the variable.
type exportedLocal struct {
	offset   uint64 // offset in the image's block
	kind     localKind
	words    uint64 // their address
	alone    bool   // no other library's variable can replace it
	distance int64  // of a localProgram
}

const (
	// maxRelocations bounds the bytes of one table of relocations. libLLVM, the largest library of Debian, has 7 MB.
	maxRelocations = 32 << 20
	relaSize       = 24 // sizeof(Elf64_Rela)
)

// localKind is the way in which code finds a variable.
type localKind uint8

const (
	localNone       localKind = iota
	localPointer              // one word: the distance from the thread pointer
	localProgram              // no words: the linker knows the distance
	localDescriptor           // two words: a function, and its argument
	localModule               // two words: module and offset
)

// exported returns the image's own variable of that name, nil if there is none. It caches the result.
func (l *loaded) exported(name string, layout *arch.LocalsLayout) *exportedLocal {
	if l.hasLocal {
		return l.local
	}
	l.hasLocal = true
	if l.Name == vdsoName || !l.mayExportLocals() {
		return nil
	}
	l.place()
	l.with(func(f *elfFile) {
		t := l.readDynsym(f)
		if t == nil {
			return
		}
		if number, s, ok := t.findLocal(name); ok {
			v := &exportedLocal{offset: s.value}
			if v.find(f, l.Bias, number, layout); v.kind != localNone {
				l.local = v
			}
		}
	})
	return l.local
}

// mayExportLocals reports whether the image may have thread-local variables. It reads the headers in memory, and opens
// no file.
func (l *loaded) mayExportLocals() bool {
	f, err := readELF(&mappedFile{l.files, l.all}, l.mappedSize(), l.budget)
	return err != nil || f.prog(elf.PT_TLS) != nil
}

// findLocal finds a thread-local variable that the image defines. ok is false if there is none.
func (t *symtab) findLocal(name string) (number uint32, s sym, ok bool) {
	for i := range uint32(t.len()) {
		s := t.at(i)
		if s.typ() == elf.STT_TLS && elf.SectionIndex(s.shndx) != elf.SHN_UNDEF &&
			string(cstring(t.names, s.name)) == name {
			return i, s, true
		}
	}
	return 0, sym{}, false
}

// find finds the words that the linker fills in for the variable. Relocations refer to the variable by its symbol's
// number, or by its offset if no other library can replace the variable.
func (v *exportedLocal) find(f *elfFile, bias uint64, number uint32, layout *arch.LocalsLayout) {
	d := f.dynamic()
	for _, table := range [][2]elf.DynTag{{elf.DT_RELA, elf.DT_RELASZ}, {elf.DT_JMPREL, elf.DT_PLTRELSZ}} {
		if size := d[table[1]]; size <= maxRelocations {
			v.relocations(f.at(d[table[0]], size, bias), bias, number, layout)
		}
	}
	if v.kind != localNone || f.prog(elf.PT_INTERP) == nil && f.typ != elf.ET_EXEC {
		return
	}
	if p := f.prog(elf.PT_TLS); p != nil {
		if distance, ok := layout.OfProgram(v.offset, p.Memsz, p.Align); ok {
			v.kind, v.distance = localProgram, distance
		}
	}
}

// relocations reads a table of relocations, and keeps the words that the linker fills in for v.
func (v *exportedLocal) relocations(b []byte, bias uint64, number uint32, layout *arch.LocalsLayout) {
	for ; len(b) >= relaSize; b = b[relaSize:] {
		info, addend := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
		kind := localNone
		switch uint32(info) {
		case layout.Pointer:
			kind = localPointer
		case layout.Descriptor:
			kind = localDescriptor
		case layout.Module:
			kind = localModule
		}
		symbol := uint32(info >> 32)
		// All variables of the library have the same module.
		ours := symbol == number && addend == 0 || symbol == 0 && (addend == v.offset || kind == localModule)
		if kind != localNone && ours && (v.kind == localNone || kind < v.kind) {
			v.kind, v.words, v.alone = kind, bias+binary.LittleEndian.Uint64(b), symbol == 0
		}
	}
}
