package process

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

var (
	ErrNoImage  = errors.New("process: no such image")
	ErrNoSymbol = errors.New("process: no such symbol")
	// ErrSilent: the target's memory, or one of its files, does not answer.
	ErrSilent = errors.New("process: its memory does not answer")

	errPanicked = errors.New("a check of ours is missing")
)

type imageFile interface {
	io.ReaderAt
	io.Closer
}

type imageFiles interface {
	Memory
	// openImage opens the mapped file itself, never another file of the same name.
	openImage(g *group) (imageFile, int64, error)
	// openDebug opens a separate debug file by its path.
	openDebug(path string, where debugRoot) (imageFile, int64, error)
	// inRoot returns the path of an image below the target's root.
	inRoot(path string) string
}

// loaded is one image and the tables of it that were read so far. Each table is read at its first use. If that fails,
// it is not tried again.
type loaded struct {
	group
	files  imageFiles
	budget *readBudget // for tables
	sums   *readBudget // for checksums of debug files

	noFile error // why the last attempt to open the file failed
	placed bool
	build  string // its build id
	cfi    *cfiTable
	hasCFI bool // whether unwind information was searched for
	dynsym *symtab
	hasDyn bool
	syms   []*symtab
	hasSym bool
	full   bool // whether syms has all symbols, not only exported ones
	// soname is the name that the file gives itself (DT_SONAME).
	soname    string
	hasSoname bool
	local     *exportedLocal // see exported
	hasLocal  bool
}

// place finds the bias and the build id.
func (l *loaded) place() {
	if l.placed {
		return
	}
	l.placed = true
	l.with(func(f *elfFile) {
		l.build = hex.EncodeToString(f.buildID())
		for _, m := range l.exec {
			if bias, ok := f.bias(m.Start, m.Offset, m.End-m.Start); ok {
				l.Bias = bias
				return
			}
		}
	})
}

func (l *loaded) name() string { return l.Name }

// ownName returns the file's soname. The name on disk may have changed.
func (l *loaded) ownName() string {
	if !l.hasSoname {
		l.hasSoname = true
		l.place()
		l.with(func(f *elfFile) { l.soname = f.soname(l.Bias) })
	}
	return l.soname
}

// with opens the image and calls do. If the file cannot be opened, do gets its mapped part. If do panics because of a
// damaged file, with returns an error.
func (l *loaded) with(do func(*elfFile)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %w: %v", ErrBadELF, errPanicked, r)
		}
	}()
	if l.Name != vdsoName {
		file, size, err := l.files.openImage(&l.group)
		l.noFile = err
		if err == nil {
			defer file.Close()
			var f *elfFile
			f, err = readELF(file, size, l.budget)
			if err == nil {
				do(f)
				return nil
			}
		}
		if errors.Is(err, ErrSilent) {
			return err // the mapped memory may not answer, either
		}
	}
	f, err := readELF(&mappedFile{l.files, l.all}, l.mappedSize(), l.budget)
	if err != nil {
		return err
	}
	do(f)
	return nil
}

// code returns the Code at a pc. at is the address of the instruction: pc itself, or the call before it.
func (l *loaded) code(pc, at uint64) Code {
	l.place()
	row := l.row(at - l.Bias)
	if row != nil && row.Signal {
		// No instruction calls a signal's trampoline: the handler returns to its first instruction. For unwinders that do not
		// know this, the trampoline's unwind rules begin one byte earlier. Its symbol does not.
		at = pc
	}
	return Code{Image: l.Name, BuildID: l.build, Offset: pc - l.Bias, Symbol: l.symbol(at - l.Bias), Row: row}
}

// symbol returns the name of the code at an address of the file. It is empty if there is none.
func (l *loaded) symbol(addr uint64) string {
	if !l.hasSym {
		l.hasSym = true
		l.with(l.readSymbols)
	}
	for _, t := range l.syms {
		if name, ok := t.lookup(addr); ok {
			return strings.ToValidUTF8(string(name), "\uFFFD")
		}
	}
	return ""
}

// readSymbols reads the best symbol table of the image or of its debug files. A full table includes the dynamic one.
// The table in the mini debug info does not.
func (l *loaded) readSymbols(f *elfFile) {
	full := f.readSymtab(".symtab")
	if full == nil {
		full = l.debugSymbols(f)
	}
	if full != nil {
		l.syms, l.full = []*symtab{full}, true
	} else {
		for _, t := range []*symtab{l.readDynsym(f), miniSymbols(f)} {
			if t != nil {
				l.syms = append(l.syms, t)
			}
		}
	}
	for _, t := range l.syms {
		t.sort(f)
	}
	if !l.full && l.dynsym != nil {
		l.dynsym.readBodies(f)
	}
}

func (l *loaded) readDynsym(f *elfFile) *symtab {
	if !l.hasDyn {
		l.hasDyn = true
		if l.dynsym = f.readSymtab(".dynsym"); l.dynsym == nil {
			l.dynsym = f.dynamicSymtab(l.Bias)
		}
	}
	return l.dynsym
}

// isText reports whether the address lies in an executable segment.
func (f *elfFile) isText(addr uint64) bool {
	for i := range f.progs {
		p := &f.progs[i]
		if elf.ProgType(p.Type) == elf.PT_LOAD && elf.ProgFlag(p.Flags)&elf.PF_X != 0 && addr >= p.Vaddr &&
			addr-p.Vaddr < p.Memsz {
			return true
		}
	}
	return false
}

// global finds a symbol by name. It searches the dynamic table first, because it is small, and then the full tables,
// which symbol reads.
func (l *loaded) global(name string) (uint64, error) {
	l.place()
	if !l.hasDyn {
		if err := l.with(func(f *elfFile) { l.readDynsym(f) }); err != nil {
			return 0, err
		}
	}
	if l.dynsym != nil {
		if addr, ok := l.dynsym.find(name); ok {
			return l.Bias + addr, nil
		}
	}
	l.symbol(0)
	for _, t := range l.syms {
		if addr, ok := t.find(name); ok {
			return l.Bias + addr, nil
		}
	}
	return 0, fmt.Errorf("%w: %s in %s", ErrNoSymbol, name, l.Name)
}

// unwindTable returns the unwind information of the file, nil if there is none.
func (l *loaded) unwindTable() *cfiTable {
	if !l.hasCFI {
		l.hasCFI = true
		l.with(func(f *elfFile) { l.cfi, _ = readCFI(f) })
	}
	return l.cfi
}

// row returns the unwind rules at an address of the file, nil if there are none.
func (l *loaded) row(addr uint64) *Row {
	t := l.unwindTable()
	if t == nil {
		return nil
	}
	m := cfiMachines.Get().(*cfiMachine)
	defer cfiMachines.Put(m)
	row, err := t.row(addr, m)
	if err != nil {
		return nil
	}
	return row
}
