package vmstructs

import (
	"sort"
	"strings"
)

// Codelet is the interpreter's code for one bytecode, one kind of method entry, and so on.
type Codelet struct {
	Begin, End  uint64
	Description string
	Role        Role
}

// Role is what a codelet does, as far as a walk has to know.
type Role uint8

const (
	OtherRole   Role = iota
	MethodEntry      // builds the frame of a method
	Throwing         // the code in which exceptions leave methods
	Branching        // a bytecode that may lead back in a loop
	ReturnEntry      // where calls of Java return to
)

// maxCodelets bounds the codelets, some 300 in fact.
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

// Codelet returns the piece of the interpreter that holds pc.
func (vm *VM) Codelet(pc uint64) (Codelet, bool) {
	if !vm.interp.has(pc) {
		return Codelet{}, false
	}
	if vm.codelets == nil {
		vm.codelets = vm.readCodelets()
	}
	i := sort.Search(len(vm.codelets), func(i int) bool { return vm.codelets[i].End > pc })
	if i == len(vm.codelets) || pc < vm.codelets[i].Begin {
		return Codelet{}, false
	}
	return vm.codelets[i], true
}

// readCodelets reads the whole interpreter, and goes from codelet to codelet by their sizes (code/stubs.hpp, StubQueue;
// interpreter/interpreter.hpp, InterpreterCodelet). The JVM generates the interpreter once, at its start.
func (vm *VM) readCodelets() []Codelet {
	l := &vm.l.stubs
	if !l.codeletSize.ok() || !l.description.ok() || l.codeletBytes == 0 {
		return nil
	}
	code := make([]byte, vm.interp.end-vm.interp.begin)
	if vm.mem.Bytes(vm.interp.begin, code) != nil {
		return nil
	}
	vm.interpCode = code
	need := max(span(l.codeletSize, l.description), int(l.codeletBytes))
	// The code begins behind the header, at an aligned address.
	align := uint64(1)
	if f, ok := vm.Flag("CodeEntryAlignment"); ok { // an intx, since 27 a uint
		if n := max(uint64(max(f.Int, 0)), f.Uint); n > 0 && n <= 128 && n&(n-1) == 0 {
			align = n
		}
	}
	out := make([]Codelet, 0, 512)
	for at := 0; at+need <= len(code) && len(out) < maxCodelets; {
		size := int(l.codeletSize.i32(code[at:]))
		if size < int(l.codeletBytes) || size > len(code)-at {
			break // the end of what is used
		}
		begin := vm.interp.begin + uint64(at)
		text := ""
		if p := l.description.u64(code[at:]); p != 0 {
			text, _ = vm.blobName(p)
		}
		out = append(out, Codelet{
			Begin: min(alignUp(begin+l.codeletBytes, align), begin+uint64(size)), End: begin + uint64(size),
			Description: text,
			Role:        roleOf(text),
		})
		at += size
	}
	return out
}

// CodeletCode returns the code of a codelet, which never changes. It reads nothing: the interpreter was copied whole.
func (vm *VM) CodeletCode(c Codelet) []byte {
	begin, end := c.Begin-vm.interp.begin, c.End-vm.interp.begin
	if begin > end || end > uint64(len(vm.interpCode)) {
		return nil
	}
	return vm.interpCode[begin:end]
}
