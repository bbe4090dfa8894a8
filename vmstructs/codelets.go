package vmstructs

import (
	"slices"
	"sort"
	"strings"
)

// Codelet is the interpreter's code for one bytecode, one kind of method entry, and so on.
type Codelet struct {
	Begin, End  uint64
	Role        Role
	description uint64 // the address of its text
}

// Role is the purpose of a codelet, as far as a walk needs it.
type Role uint8

const (
	OtherRole   Role = iota
	MethodEntry      // builds the frame of a method
	Throwing         // the code in which exceptions leave methods
	Branching        // a bytecode that may lead back in a loop
	ReturnEntry      // where calls of Java return to
)

// maxCodelets bounds the codelets. There are about 300.
const maxCodelets = 8192

// roleOf returns a codelet's role by its description, the JVM's only information about the codelet
// (interpreter/templateInterpreterGenerator.cpp, generate_all).
func roleOf(description string) Role {
	switch {
	case anyOf(strings.HasPrefix, description, "method entry point", "native method entry point"):
		return MethodEntry
	case description == "exception handling":
		return Throwing
	case strings.Contains(description, "return entry points"):
		return ReturnEntry
	case anyOf(strings.HasPrefix, description, "if", "goto"):
		return Branching
	}
	return OtherRole
}

// Codelet returns the interpreter's codelet that holds pc.
func (vm *VM) Codelet(pc uint64) (Codelet, bool) {
	if !vm.interp.has(pc) {
		return Codelet{}, false
	}
	vm.ListCodelets()
	i := sort.Search(len(vm.codelets), func(i int) bool { return vm.codelets[i].End > pc })
	if i == len(vm.codelets) || pc < vm.codelets[i].Begin {
		return Codelet{}, false
	}
	return vm.codelets[i], true
}

// ListCodelets reads the list of codelets, once.
func (vm *VM) ListCodelets() {
	if vm.codelets == nil {
		vm.codelets = vm.readCodelets()
	}
}

// readCodelets reads the whole interpreter, and steps from codelet to codelet by their sizes (code/stubs.hpp,
// StubQueue; interpreter/interpreter.hpp, InterpreterCodelet). The JVM generates the interpreter once, at its start.
func (vm *VM) readCodelets() []Codelet {
	l := &vm.l.stubs
	if !l.codeletSize.ok() || !l.description.ok() || l.codeletBytes == 0 {
		return nil
	}
	code := make([]byte, vm.interp.end-vm.interp.begin)
	if vm.mem.Bytes(vm.interp.begin, code) != nil {
		return nil
	}
	need := max(span(l.codeletSize, l.description), int(l.codeletBytes))
	// The code begins after the header, at an aligned address.
	align := uint64(1)
	vm.withFlags(func() {
		f, _ := vm.Flag("CodeEntryAlignment") // an intx, a uint since 27
		if n := max(uint64(max(f.Int, 0)), f.Uint); n > 0 && n <= 128 && n&(n-1) == 0 {
			align = n
		}
	})
	out := []Codelet{}
	for at := 0; at+need <= len(code) && len(out) < maxCodelets; {
		size := int(l.codeletSize.i32(code[at:]))
		if size < int(l.codeletBytes) || size > len(code)-at {
			break // the end of the used part
		}
		begin := vm.interp.begin + uint64(at)
		c := Codelet{description: l.description.u64(code[at:]), End: begin + uint64(size),
			Begin: min(alignUp(begin+l.codeletBytes, align), begin+uint64(size))}
		c.Role = roleOf(vm.Describe(c))
		out = append(out, c)
		at += size
	}
	return slices.Clone(out) // drops unused capacity
}

func (vm *VM) Describe(c Codelet) string {
	if c.description == 0 {
		return ""
	}
	text, _ := vm.mem.CString(c.description, maxBlobName)
	return cleanText(text)
}

// CodeletCode reads the code of a codelet, which never changes. It returns nil if that fails.
func (vm *VM) CodeletCode(c Codelet) []byte {
	if c.Begin < vm.interp.begin || c.End > vm.interp.end || c.Begin > c.End {
		return nil
	}
	code := make([]byte, c.End-c.Begin)
	if vm.mem.Bytes(c.Begin, code) != nil {
		return nil
	}
	return code
}
