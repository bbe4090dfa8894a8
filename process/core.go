package process

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"

	"goprof/arch"
	"goprof/arch/cpus"
)

var (
	ErrNotCore = errors.New("not a core file of a 64-bit Linux process")
	ErrCoreCPU = errors.New("a core file of a CPU that goprof does not know")
)

// Core is the process in a core file. It is a Target, so the same code walks live processes and cores. A Core belongs
// to one goroutine.
//
// A core file is not trusted. Its headers and notes are bounded and checked, overlapping segments count once, and
// reading memory that is not in the file returns ErrFault, never zeros. At most some MB of the file are in memory at
// any time.
type Core struct {
	space
	cpu      *arch.CPU
	bytes    *coreCache
	size     int64
	segments []segment
	notes    coreNotes
	backing  *backing
	cut      uint64 // bytes that the headers announce and the file does not have
	whole    bool   // it has section headers, which gcore writes and the kernel does not
}

const (
	maxCoreTables = 64 << 20 // symbols and unwind rules for a core: four times those of a libjvm.so with all symbols
	maxCoreImages = 4096     // libraries of a core; a JVM has some dozens
)

// CoreOptions say where goprof finds the files that a core does not contain.
type CoreOptions struct {
	Root      string   // the process's root, such as an unpacked container image; empty: the machine's root
	DebugDirs []string // folders with files by build id (.build-id/ab/cdef), or by name
}

// OpenCore reads the headers and notes of a core file of that size. The caller closes the file after Close.
func OpenCore(file io.ReaderAt, size int64, opt CoreOptions) (*Core, error) {
	c := &Core{bytes: newCoreCache(), size: size}
	c.space.init()
	c.space.tables.left = maxCoreTables
	c.bytes.add(file)
	h, err := c.readHeader()
	if err != nil {
		return nil, err
	}
	progs, err := c.readProgs(h)
	if err != nil {
		return nil, err
	}
	c.whole = h.Shnum > 0 && h.Phnum != pnXNum
	c.setSegments(progs)
	for i := range progs {
		if elf.ProgType(progs[i].Type) == elf.PT_NOTE {
			c.notes.read(c, &progs[i])
		}
	}
	if len(c.notes.threads) == 0 {
		if c.cut > 0 {
			return nil, fmt.Errorf("%w: it is cut off before its threads", ErrNotCore)
		}
		return nil, fmt.Errorf("%w: it has no threads", ErrNotCore)
	}
	c.backing = newBacking(c, opt)
	c.mappings = c.readMappings()
	c.setImages(groupImages(c.mappings, maxCoreImages), func(g *group) *loaded { return c.newLoaded(g, coreFiles{c}) })
	return c, nil
}

// Close closes the files that were opened for the core.
func (c *Core) Close() error {
	c.tables.giveAllBack()
	c.backing.close()
	return nil
}

func (c *Core) readHeader() (*elf.Header64, error) {
	var h elf.Header64
	f := &elfFile{r: c.bytes.source(0), size: uint64(max(c.size, 0))}
	if f.decode(0, 64, &h) != nil || string(h.Ident[:4]) != elf.ELFMAG || elf.Type(h.Type) != elf.ET_CORE ||
		elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, ErrNotCore
	}
	if c.cpu = cpus.ByMachine(elf.Machine(h.Machine)); c.cpu == nil {
		return nil, fmt.Errorf("%w: %v", ErrCoreCPU, elf.Machine(h.Machine))
	}
	return &h, nil
}

const (
	// pnXNum: there are more program headers than that. Their number is in the first section header (PN_XNUM,
	// include/uapi/linux/elf.h).
	pnXNum    = 0xffff
	progSize  = 56
	progBatch = 4096
)

// readProgs reads the program headers that the file has.
func (c *Core) readProgs(h *elf.Header64) ([]elf.Prog64, error) {
	f := &elfFile{r: c.bytes.source(0), size: uint64(max(c.size, 0))}
	n := uint64(h.Phnum)
	if h.Phnum == pnXNum {
		var s elf.Section64
		if err := f.decode(h.Shoff, 64, &s); err != nil {
			return nil, fmt.Errorf("%w: it does not say how many segments it has", ErrNotCore)
		}
		n = uint64(s.Info)
	}
	if n == 0 || n > maxMappings+16 || h.Phentsize != progSize {
		return nil, fmt.Errorf("%w: %d program headers of %d bytes", ErrNotCore, n, h.Phentsize)
	}
	progs := make([]elf.Prog64, 0, min(n, progBatch))
	for at := uint64(0); at < n; at += progBatch {
		k := min(n-at, progBatch)
		if f.size < h.Phoff || (f.size-h.Phoff)/progSize < at+k {
			return nil, fmt.Errorf("%w: it is cut off in its headers", ErrNotCore)
		}
		batch := make([]elf.Prog64, k)
		if err := f.decode(h.Phoff+at*progSize, k*progSize, batch); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotCore, err)
		}
		progs = append(progs, batch...)
	}
	return progs, nil
}

func (c *Core) CPU() *arch.CPU { return c.cpu }

// Generation implements Target. A core's mappings do not change.
func (c *Core) Generation() uint64 { return 1 }

func (c *Core) Code(pc uint64, exact bool) (Code, bool) {
	return c.codeAt(pc, exact, func() bool { return false })
}

func (c *Core) Image(name string) (Image, bool) { return c.imageCalled(name) }

func (c *Core) Global(image, symbol string) (uint64, error) { return c.globalOf(image, symbol) }

// Mappings returns the process's mappings that the core has.
func (c *Core) Mappings() []Mapping { return c.mappings }

// Threads returns the threads in the core's order. In the kernel's cores, the thread that caused the core comes first
// (fs/binfmt_elf.c, fill_note_info).
func (c *Core) Threads() []CoreThread { return slices.Clone(c.notes.threads) }

// PID returns the process's number in its own namespace. It is 0 if the core does not have it.
func (c *Core) PID() int { return c.notes.pid }

// Command returns the kernel's name of the process, of up to 15 bytes, and up to 79 bytes of its arguments.
func (c *Core) Command() (name, args string) { return c.notes.name, c.notes.args }

// MadeByTool reports whether a debugger (gcore) has written the core, not the kernel. Then the process may still live.
// The kernel's cores have no section headers.
func (c *Core) MadeByTool() bool { return c.whole }

// Cut returns the number of bytes that the core's headers announce and the file does not have.
func (c *Core) Cut() uint64 { return c.cut }

func (c *Core) Size() int64 { return c.size }

// Missing lists the files that were needed and not found.
func (c *Core) Missing() []MissingFile { return c.backing.missing() }

// Unproven lists the files that were read although they have no build id. The only proof is that their content agrees
// with the core.
func (c *Core) Unproven() []UnprovenFile { return c.backing.unproven() }
