//go:build linux

package process

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Function is the first instruction of a function in a mapped file.
type Function struct {
	Image  string // base name of the file
	Symbol string // linkage name
	Addr   uint64 // in the process
	Offset uint64 // in the file
}

// ErrIndirect: the symbol names code that chooses one of several functions when the program is loaded.
var ErrIndirect = errors.New("process: the function is chosen while the program is loaded")

// maxFunctions bounds the functions with one name: overloaded ones, and copies that a compiler made.
const maxFunctions = 8

// Functions returns the functions with a name: a linkage name, or a C++ name without template arguments and parameters
// (ObjectMonitor::enter). image is the name of the image's file, with or without its suffix: libc, libc.so, libc.so.6.
func (p *Process) Functions(image, name string) ([]Function, error) {
	if !p.lock() {
		return nil, ErrSilent
	}
	defer p.mu.Unlock()
	l := p.findImage(image)
	for i := 0; l == nil && i < len(p.images); i++ {
		if isCalled(p.images[i].Name, image) {
			l = p.images[i]
		}
	}
	if l == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoImage, image)
	}
	l.place()
	l.symbol(0) // reads the tables
	list, indirect := l.functions(name)
	switch {
	case len(list) == 0 && indirect:
		return nil, ErrIndirect
	case len(list) == 0:
		return nil, fmt.Errorf("%w: %s in %s", ErrNoSymbol, name, l.Name)
	case len(list) > maxFunctions:
		return nil, fmt.Errorf("%w: more than %d functions are called %s", ErrTooLong, maxFunctions, name)
	}
	return list, nil
}

// isCalled reports whether a library's file has that name. The file's name may also include a version, which users need
// not know.
func isCalled(file, name string) bool {
	rest, ok := strings.CutPrefix(file, name)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '-' && strings.Contains(rest, ".so"))
}

// functions returns the functions with a name. indirect: one of them is chosen at run time and has no code of its own
// (IFUNC).
func (l *loaded) functions(name string) (list []Function, indirect bool) {
	for _, prefix := range linkageNames(name) {
		for _, t := range l.syms {
			for i := range uint32(t.len()) {
				s := t.at(i)
				at, end := uint64(s.name), uint64(s.name)+uint64(len(prefix.text))
				if end > uint64(len(t.names)) || string(t.names[at:end]) != prefix.text || !s.defined() || !s.isFunc() {
					continue
				}
				symbol := string(cstring(t.names, s.name))
				if !prefix.covers(symbol) {
					continue
				}
				if s.typ() == elf.STT_GNU_IFUNC {
					indirect = true
					continue
				}
				f, ok := l.functionAt(s.value)
				if ok && !slices.ContainsFunc(list, func(o Function) bool { return o.Addr == f.Addr }) {
					f.Symbol = symbol
					list = append(list, f)
				}
				if len(list) > maxFunctions {
					return list, indirect
				}
			}
		}
		if len(list) > 0 {
			return list, indirect
		}
	}
	return nil, indirect
}

// functionAt returns the address at which an address of the file is mapped as code.
func (l *loaded) functionAt(addr uint64) (Function, bool) {
	at := l.Bias + addr
	for _, m := range l.exec {
		if at >= m.Start && at < m.End {
			return Function{Image: l.Name, Addr: at, Offset: m.Offset + (at - m.Start)}, true
		}
	}
	return Function{}, false
}

// linkageName is a name in a symbol table, or the beginning of one.
type linkageName struct {
	text  string
	whole bool
}

// covers reports whether a symbol is the function. In a mangled C++ name, the parameters follow, and then the
// compiler's suffixes for copies. Two of these suffixes mean that it is not the function: a cold part is not its
// beginning, and a copy with fewer parameters (isra) lacks parameters of the source.
func (n linkageName) covers(symbol string) bool {
	if n.whole {
		plain, _, _ := strings.Cut(symbol, "@") // read@@GLIBC_2.2.5
		return plain == n.text
	}
	return !strings.Contains(symbol, ".")
}

// linkageNames returns the possible spellings of a name in a symbol table (Itanium C++ ABI, "Mangling").
func linkageNames(name string) []linkageName {
	list := []linkageName{{name, true}}
	parts := strings.Split(name, "::")
	for _, part := range parts {
		if part == "" || strings.ContainsAny(part, "<>() ~") {
			return list
		}
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(strconv.Itoa(len(part)) + part)
	}
	if len(parts) == 1 {
		return append(list, linkageName{"_Z" + b.String(), false})
	}
	return append(list, linkageName{"_ZN" + b.String() + "E", false}, linkageName{"_ZNK" + b.String() + "E", false})
}

func (p *Process) OpenFunction(f Function) (*os.File, error) {
	if !p.lock() {
		return nil, ErrSilent
	}
	defer p.mu.Unlock()
	l, ok := findExec(p.exec, f.Addr)
	if !ok {
		return nil, ErrNoImage
	}
	file, _, err := patientFiles{p}.openImage(&l.group)
	if err != nil {
		return nil, err
	}
	if patient, ok := file.(*patientFile); ok {
		if file, ok := patient.imageFile.(*os.File); ok {
			return file, nil
		}
	}
	file.Close()
	return nil, errNotRegular
}
