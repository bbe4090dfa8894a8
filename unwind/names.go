package unwind

import (
	"cmp"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/vmstructs"
)

const (
	maxSymbol = 4096
	// maxDemangled (a power of two) bounds the length of a demangled name. A linkage name of 200 bytes can refer to its
	// own parts so often that it stands for gigabytes.
	maxDemangled = 12
)

// Demangled makes a C++ or Rust linkage name readable, without its parameters and without the version that some C
// symbols carry (read@@GLIBC_2.2.5).
func Demangled(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, "@")
	if len(symbol) > maxSymbol {
		return strings.ToValidUTF8(symbol[:maxSymbol], "\uFFFD")
	}
	// A name's length counts bytes, so a part of a name may end in the middle of a character.
	return strings.ToValidUTF8(demangle.Filter(symbol, demangle.NoParams, demangle.MaxLength(maxDemangled)), "\uFFFD")
}

// method returns the Func of a Java method, the same one each time.
func (w *Walker) method(m *vmstructs.Method) *profile.Func {
	if fn, ok := w.methods[m]; ok {
		return fn
	}
	name := m.Full()
	if !w.RawNames {
		name = naming.Method(m.Class, m.Name, m.File)
	}
	fn := &profile.Func{Name: name, File: m.File}
	w.methods[m] = fn
	return fn
}

// stubSite is the name of code that belongs to no method. It is valid while the code belongs to blob, or always if blob
// is nil (the interpreter's code).
type stubSite struct {
	blob *vmstructs.Blob
	fn   *profile.Func
}

// stubFunc returns the Func of generated code that belongs to no method.
func (w *Walker) stubFunc(b *vmstructs.Blob, pc uint64) *profile.Func {
	if s, ok := w.stubs[pc]; ok && s.blob == b {
		return s.fn
	}
	fn := &profile.Func{Name: cmp.Or(w.vm.StubName(pc), b.Name, b.Kind.String())}
	w.stubs[pc] = stubSite{b, fn}
	return fn
}
