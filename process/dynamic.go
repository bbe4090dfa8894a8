package process

import (
	"debug/elf"
	"encoding/binary"
)

// maxDynamic bounds the entries of a dynamic section. Libraries have about 30.
const maxDynamic = 1024

// maxChain bounds the symbols in one bucket of a hash table. Linkers aim at a few.
const maxChain = 4096

// dynamic reads the dynamic section. Like a loader, it uses PT_DYNAMIC, because an image in memory has no section
// headers. If several entries have the same tag, the last one counts.
func (f *elfFile) dynamic() map[elf.DynTag]uint64 {
	p := f.prog(elf.PT_DYNAMIC)
	if p == nil {
		return nil
	}
	off, left, ok := f.offset(p.Vaddr)
	if !ok {
		return nil
	}
	b, err := f.bytes(off, min(left, p.Filesz, maxDynamic*16))
	if err != nil {
		return nil
	}
	entries := make(map[elf.DynTag]uint64)
	for ; len(b) >= 16; b = b[16:] {
		entries[elf.DynTag(binary.LittleEndian.Uint64(b))] = binary.LittleEndian.Uint64(b[8:])
	}
	return entries
}

// dynamicSymtab finds the dynamic symbols. bias is the distance by which the image was moved: glibc writes relocated
// addresses into the dynamic section, musl does not.
func (f *elfFile) dynamicSymtab(bias uint64) *symtab {
	d := f.dynamic()
	n := f.countGNUHash(d[elf.DT_GNU_HASH], bias)
	if h := f.at(d[elf.DT_HASH], 8, bias); n == 0 && h != nil {
		n = uint64(binary.LittleEndian.Uint32(h[4:])) // nchain: one for each symbol
	}
	if n == 0 || n > maxSymbols {
		return nil
	}
	t := &symtab{raw: f.at(d[elf.DT_SYMTAB], n*symSize, bias), names: f.at(d[elf.DT_STRTAB], d[elf.DT_STRSZ], bias)}
	if t.raw == nil || t.names == nil {
		return nil
	}
	return t
}

const maxSoname = 64

// soname returns a library's own name (DT_SONAME), empty if it has none.
func (f *elfFile) soname(bias uint64) string {
	d := f.dynamic()
	name, ok := d[elf.DT_SONAME]
	if !ok || name >= d[elf.DT_STRSZ] || d[elf.DT_STRTAB] == 0 {
		return ""
	}
	return string(cstring(f.at(d[elf.DT_STRTAB]+name, min(maxSoname, d[elf.DT_STRSZ]-name), bias), 0))
}

// at reads n bytes at addr. addr is an address of the file, or one that the loader has relocated. at returns nil if it
// fails.
func (f *elfFile) at(addr, n, bias uint64) []byte {
	for _, a := range []uint64{addr, addr - bias} {
		off, left, ok := f.offset(a)
		if !ok || addr == 0 || n > left {
			continue
		}
		if b, err := f.bytes(off, n); err == nil {
			return b
		}
	}
	return nil
}

// countGNUHash counts the symbols. Each bucket has a chain of symbols, and the chain with the highest first index ends
// with the last symbol. The hash table has four words, the Bloom filter, a word for each bucket, and a word for each
// hashed symbol, whose lowest bit ends a chain (binutils, elflink.c).
func (f *elfFile) countGNUHash(addr, bias uint64) uint64 {
	head := f.at(addr, 16, bias)
	if head == nil {
		return 0
	}
	buckets := uint64(binary.LittleEndian.Uint32(head))
	first := uint64(binary.LittleEndian.Uint32(head[4:]))
	bloom := uint64(binary.LittleEndian.Uint32(head[8:]))
	if buckets > maxSymbols || bloom > maxSymbols {
		return 0
	}
	at := addr + 16 + bloom*8
	last := uint64(0)
	table := f.at(at, buckets*4, bias)
	for ; len(table) >= 4; table = table[4:] {
		last = max(last, uint64(binary.LittleEndian.Uint32(table)))
	}
	if last < first || last > maxSymbols {
		return first
	}
	at += buckets*4 + (last-first)*4
	for range maxChain {
		word := f.at(at, 4, bias)
		if word == nil {
			return 0
		}
		last++
		if word[0]&1 != 0 {
			return last
		}
		at += 4
	}
	return 0
}
