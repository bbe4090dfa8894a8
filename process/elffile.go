package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

var ErrBadELF = errors.New("process: malformed ELF")

// Limits for ELF files. A libjvm.so with full symbols has 40 sections and 70,000 symbols (2 MB, with 4 MB of names).
const (
	maxProgs    = 256
	maxSections = 4096
	maxSection  = 128 << 20
	maxNotes    = 64 << 10
	maxBuildID  = 64
	// maxName bounds the copied name of a section or symbol. A longer name is cut, because many names may share one string
	// of megabytes.
	maxName = 4096
)

// elfFile has the headers of a 64-bit little-endian ELF file. goprof does not use package debug/elf, which is not
// hardened against hostile input. Sections may be missing: an image in memory has none, except for the vdso.
type elfFile struct {
	r        io.ReaderAt
	size     uint64
	budget   *readBudget
	machine  elf.Machine
	typ      elf.Type
	progs    []elf.Prog64
	sections []elfSection
}

type elfSection struct {
	elf.Section64
	name string
}

// readELF reads the headers of an ELF file of that size. All later reads also take from the budget. A nil budget is
// unlimited.
func readELF(r io.ReaderAt, size int64, budget *readBudget) (*elfFile, error) {
	f := &elfFile{r: r, size: uint64(max(size, 0)), budget: budget}
	var h elf.Header64
	if err := f.decode(0, 64, &h); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(h.Ident[:], []byte(elf.ELFMAG)) || elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64 ||
		elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, fmt.Errorf("%w: not a 64-bit little-endian file", ErrBadELF)
	}
	f.machine, f.typ = elf.Machine(h.Machine), elf.Type(h.Type)
	if h.Phnum > maxProgs || h.Phnum > 0 && h.Phentsize != 56 {
		return nil, fmt.Errorf("%w: %d program headers of %d bytes", ErrBadELF, h.Phnum, h.Phentsize)
	}
	f.progs = make([]elf.Prog64, h.Phnum)
	if err := f.decode(h.Phoff, uint64(h.Phnum)*56, f.progs); err != nil {
		return nil, err
	}
	f.readSections(&h)
	return f, nil
}

// readSections reads the section headers, if there are any. An image in memory has none.
func (f *elfFile) readSections(h *elf.Header64) {
	if h.Shnum == 0 || h.Shnum > maxSections || h.Shentsize != 64 || h.Shstrndx >= h.Shnum {
		return
	}
	headers := make([]elf.Section64, h.Shnum)
	if f.decode(h.Shoff, uint64(h.Shnum)*64, headers) != nil {
		return
	}
	f.sections = make([]elfSection, h.Shnum)
	for i := range headers {
		f.sections[i].Section64 = headers[i]
	}
	names, err := f.data(&f.sections[h.Shstrndx])
	if err != nil {
		f.sections = nil
		return
	}
	for i := range f.sections {
		f.sections[i].name = string(cstring(names, headers[i].Name))
	}
}

// cstring returns the string at an offset of a string table, nil if there is none. A string longer than maxName is cut.
func cstring(table []byte, at uint32) []byte {
	if uint64(at) >= uint64(len(table)) {
		return nil
	}
	b := table[at:]
	b = b[:min(len(b), maxName+1)]
	if end := bytes.IndexByte(b, 0); end >= 0 {
		return b[:end]
	}
	if len(b) > maxName {
		return b[:maxName]
	}
	return nil
}

func (f *elfFile) decode(off, n uint64, into any) error {
	b, err := f.bytes(off, n)
	if err != nil {
		return err
	}
	_, err = binary.Decode(b, binary.LittleEndian, into)
	return err
}

// bytes reads a part of the file. The result is shared and must not be written to.
func (f *elfFile) bytes(off, n uint64) ([]byte, error) {
	if off > f.size || n > f.size-off {
		return nil, fmt.Errorf("%w: %d bytes at %#x of %d", ErrBadELF, n, off, f.size)
	}
	if n > maxSection || !f.budget.spend(n) {
		return nil, fmt.Errorf("%w: a piece of %d bytes", ErrTooLong, n)
	}
	b, had, err := shared.read(f.r, filePlace{f.size, off, n})
	if err != nil {
		return nil, fmt.Errorf("%w: %d bytes at %#x: %w", ErrBadELF, n, off, err)
	}
	if had {
		f.budget.giveBack(n - n/sharedPart)
	}
	return b, nil
}

func (f *elfFile) section(name string) *elfSection {
	for i := range f.sections {
		if f.sections[i].name == name {
			return &f.sections[i]
		}
	}
	return nil
}

// data reads a section. It returns an error if the section is compressed, or has no bytes (as .bss, or other sections
// in debug files).
func (f *elfFile) data(s *elfSection) ([]byte, error) {
	if s == nil || elf.SectionType(s.Type) == elf.SHT_NOBITS || elf.SectionFlag(s.Flags)&elf.SHF_COMPRESSED != 0 {
		return nil, fmt.Errorf("%w: no such section", ErrBadELF)
	}
	return f.bytes(s.Off, s.Size)
}

// offset translates an address of the file to an offset in the file. left is the number of bytes of the segment from
// there on.
func (f *elfFile) offset(addr uint64) (off, left uint64, ok bool) {
	for i := range f.progs {
		p := &f.progs[i]
		if elf.ProgType(p.Type) == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return p.Off + (addr - p.Vaddr), p.Filesz - (addr - p.Vaddr), true
		}
	}
	return 0, 0, false
}

// prog finds the first program header of a type.
func (f *elfFile) prog(t elf.ProgType) *elf.Prog64 {
	for i := range f.progs {
		if elf.ProgType(f.progs[i].Type) == t {
			return &f.progs[i]
		}
	}
	return nil
}

// bias returns the number to add to the file's addresses. The file's bytes from offset on are mapped at start.
func (f *elfFile) bias(start, offset, size uint64) (uint64, bool) {
	for i := range f.progs {
		p := &f.progs[i]
		if elf.ProgType(p.Type) == elf.PT_LOAD && elf.ProgFlag(p.Flags)&elf.PF_X != 0 &&
			p.Off < offset+size && offset < p.Off+p.Filesz {
			// A loader maps whole pages: start-offset is the address that the file's byte 0 would have.
			return start - offset + p.Off - p.Vaddr, true
		}
	}
	return 0, false
}

// buildID returns the file's build id, nil if it has none. It prefers the section, because the program headers of a
// debug file describe the program.
func (f *elfFile) buildID() []byte {
	if s := f.section(".note.gnu.build-id"); s != nil && s.Size <= maxNotes {
		if b, err := f.data(s); err == nil {
			return findBuildID(b)
		}
	}
	for i := range f.progs {
		p := &f.progs[i]
		if elf.ProgType(p.Type) != elf.PT_NOTE || p.Filesz > maxNotes {
			continue
		}
		if b, err := f.bytes(p.Off, p.Filesz); err == nil {
			if id := findBuildID(b); id != nil {
				return id
			}
		}
	}
	return nil
}

// findBuildID returns the content of NT_GNU_BUILD_ID (3) of the owner "GNU", nil if there is none.
func findBuildID(b []byte) []byte {
	for id := range notesOf(b, "GNU\x00", 3) {
		if len(id) > 0 && len(id) <= maxBuildID {
			return id
		}
	}
	return nil
}

// notesOf iterates over the contents of an owner's ELF notes of a kind (gABI, "Note Section"). A note has three words,
// and then name and content, each padded to 4 bytes.
func notesOf(b []byte, owner string, kind uint32) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) >= 12 {
			namesz := uint64(binary.LittleEndian.Uint32(b))
			descsz := uint64(binary.LittleEndian.Uint32(b[4:]))
			desc := 12 + (namesz+3)&^3
			end := desc + (descsz+3)&^3
			if end > uint64(len(b)) {
				return
			}
			if binary.LittleEndian.Uint32(b[8:]) == kind && string(b[12:12+namesz]) == owner &&
				!yield(b[desc:desc+descsz]) {
				return
			}
			b = b[end:]
		}
	}
}

// LoadsNothing reports whether an ELF file of that size is a program that is complete in itself, as Go programs are.
// Such a program names no loader and no libraries.
func LoadsNothing(r io.ReaderAt, size int64) bool {
	f, err := readELF(r, size, nil)
	return err == nil && f.typ == elf.ET_EXEC && f.prog(elf.PT_INTERP) == nil && f.prog(elf.PT_DYNAMIC) == nil
}

// HasSection reports whether an ELF file of that size has a section of that name. A file that cannot be read has none.
func HasSection(r io.ReaderAt, size int64, name string) bool {
	f, err := readELF(r, size, nil)
	return err == nil && f.section(name) != nil
}
