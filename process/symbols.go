package process

import (
	"debug/elf"
	"encoding/binary"
	"slices"
)

const (
	symSize = 24 // sizeof(Elf64_Sym)
	// orderSize is the memory that sort needs for a symbol: an address during sorting, and the symbol's index in the
	// result.
	orderSize = 8 + 4
	// maxSymbols is 16 million, far beyond any program. Indexes must fit into 24 bits.
	maxSymbols = 1<<24 - 1
	// maxNest bounds the symbols that begin inside another symbol before pc.
	maxNest = 32
)

// symtab is the raw symbol table of a file, and a list of its symbols for code, sorted by address. The raw table is not
// converted. So the 70,000 symbols of libjvm take two reads and one sort, and no allocation for each.
type symtab struct {
	raw   []byte // Elf64_Sym
	names []byte
	order *order   // nil until it is needed
	ends  []uint64 // the ends of the file's sections, by number
	// bodies has the ends of functions without a size (readBodies). If it is nil, such functions end at the next symbol.
	bodies map[uint32]uint64
}

// readSymtab reads a symbol table section with its names. It returns nil if there is none.
func (f *elfFile) readSymtab(section string) *symtab {
	s := f.section(section)
	if s == nil || s.Entsize != symSize || s.Size/symSize > maxSymbols || uint64(s.Link) >= uint64(len(f.sections)) {
		return nil
	}
	raw, err := f.data(s)
	if err != nil {
		return nil
	}
	names, err := f.data(&f.sections[s.Link])
	if err != nil {
		return nil
	}
	order := s.Size / symSize * orderSize
	if shared.paidInPart(raw) && shared.paidInPart(names) && shared.hasOrder(raw, names, f.progs) {
		order /= sharedPart // the process that paid for the table has also paid for its order
	}
	if !f.budget.spend(order) {
		return nil
	}
	t := &symtab{raw: raw[:len(raw)/symSize*symSize], names: names}
	for i := range f.sections {
		t.ends = append(t.ends, f.sections[i].Addr+f.sections[i].Size)
	}
	return t
}

func (t *symtab) len() int { return len(t.raw) / symSize }

type sym struct {
	name        uint32
	info        uint8
	shndx       uint16
	value, size uint64
}

func (t *symtab) at(i uint32) sym {
	b := t.raw[int(i)*symSize:][:symSize]
	return sym{
		name:  binary.LittleEndian.Uint32(b),
		info:  b[4],
		shndx: binary.LittleEndian.Uint16(b[6:]),
		value: binary.LittleEndian.Uint64(b[8:]),
		size:  binary.LittleEndian.Uint64(b[16:]),
	}
}

func (s sym) typ() elf.SymType { return elf.SymType(s.info & 0xf) }

func (s sym) isFunc() bool { return s.typ() == elf.STT_FUNC || s.typ() == elf.STT_GNU_IFUNC }

func (s sym) end() uint64 { return s.value + s.size }

// defined reports whether the symbol is defined in this file, and is not thread-local.
func (s sym) defined() bool {
	i := elf.SectionIndex(s.shndx)
	return i != elf.SHN_UNDEF && i != elf.SHN_COMMON && s.typ() != elf.STT_TLS && s.typ() != elf.STT_FILE &&
		s.typ() != elf.STT_SECTION
}

func (t *symtab) find(name string) (uint64, bool) {
	for i := range uint32(t.len()) {
		s := t.at(i)
		at := uint64(s.name)
		end := at + uint64(len(name))
		if end < uint64(len(t.names)) && t.names[end] == 0 && string(t.names[at:end]) == name && s.defined() {
			return s.value, true
		}
	}
	return 0, false
}

// sort sorts the symbols for code by address.
func (t *symtab) sort(f *elfFile) {
	t.order = shared.order(t.raw, t.names, f.progs, func() []uint32 { return t.sorted(f.isText) })
}

// sorted returns the symbols for code, sorted by address. Of several symbols at one address it returns the best. text
// reports whether an address is code.
func (t *symtab) sorted(text func(uint64) bool) []uint32 {
	keys := make([]uint64, 0, t.len())
	for i := range uint32(t.len()) {
		s := t.at(i)
		if !s.defined() || s.value >= 1<<40 || s.size >= 1<<40 ||
			!s.isFunc() && (s.typ() != elf.STT_NOTYPE || !t.isLabel(s)) || !text(s.value) {
			continue
		}
		keys = append(keys, s.value<<24|uint64(i))
	}
	slices.Sort(keys)
	order := make([]uint32, 0, len(keys))
	funcEnd := uint64(0) // the highest end of the functions so far
	for _, k := range keys {
		i := uint32(k & maxSymbols)
		s := t.at(i)
		if !s.isFunc() && s.value < funcEnd {
			continue // a label inside a function is not another function
		}
		if s.isFunc() {
			funcEnd = max(funcEnd, s.end())
		}
		if n := len(order); n > 0 {
			if last := t.at(order[n-1]); last.value == s.value {
				if s.betterThan(last) {
					order[n-1] = i
				}
				continue
			}
		}
		order = append(order, i)
	}
	return order
}

// isLabel returns false for nameless symbols and for the marks that distinguish code from data on arm64 ("$x", "$d":
// ELF for the Arm 64-bit Architecture, "Mapping symbols").
func (t *symtab) isLabel(s sym) bool {
	if uint64(s.name)+1 >= uint64(len(t.names)) {
		return false
	}
	first, second := t.names[s.name], t.names[s.name+1]
	return first != 0 && first != '$' && !(first == '.' && second == 'L')
}

// betterThan reports whether s is a better name than o for their address.
func (s sym) betterThan(o sym) bool {
	if s.isFunc() != o.isFunc() {
		return s.isFunc()
	}
	if (s.size > 0) != (o.size > 0) {
		return s.size > 0
	}
	return elf.SymBind(s.info>>4) == elf.STB_GLOBAL && elf.SymBind(o.info>>4) != elf.STB_GLOBAL
}

// reaches reports whether the symbol may extend to addr. A symbol without a size ends with its section. For example,
// the linker's code (.plt) is not part of _init in the section before.
func (t *symtab) reaches(i uint32, s sym, addr uint64) bool {
	if s.size > 0 {
		return addr < s.end()
	}
	if end, known := t.bodies[i]; known {
		return addr < end
	}
	return int(s.shndx) >= len(t.ends) || addr < t.ends[s.shndx]
}

// lookup returns the name of the code at addr. It returns false if there is none. A symbol without a size ends at the
// next symbol, or at the end of its own code.
func (t *symtab) lookup(addr uint64) (name []byte, ok bool) {
	if t.order == nil {
		return nil, false
	}
	order := t.order.symbols
	n, _ := slices.BinarySearchFunc(order, addr, func(i uint32, a uint64) int {
		if binary.LittleEndian.Uint64(t.raw[int(i)*symSize+8:]) <= a {
			return -1
		}
		return 1
	})
	for k := n - 1; k >= 0 && k >= n-maxNest; k-- {
		s := t.at(order[k])
		if (s.size > 0 || k == n-1) && t.reaches(order[k], s, addr) {
			return cstring(t.names, s.name), true
		}
	}
	return nil, false
}
