package vmstructs

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
)

const (
	maxInterpreter = 16 << 20 // it has 150 to 300 KB
	maxStubs       = 8192
)

// stubTable names the stubs, sorted by address. It is made at its first use.
type stubTable struct {
	read  bool
	list  uint64 // address of the list's head, 0 if there is no symbol for it
	head  uint64 // the newest stub at the reading: C2's stubs may be added late
	stubs []stub
}

type stub struct {
	begin, end uint64 // end is 0 if not known
	name       string
}

// openStubs finds the interpreter, and the pc to which calls into Java return.
func (vm *VM) openStubs() error {
	l := &vm.l.stubs
	if l.callReturn != 0 {
		ret, err := vm.mem.Ptr(l.callReturn)
		if err != nil || ret == 0 {
			return cmp.Or(err, ErrStarting)
		}
		vm.callRet = ret
	}
	if l.code == 0 || !l.buffer.ok() || !l.limit.ok() {
		return nil
	}
	queue, err := vm.mem.Ptr(l.code)
	if err != nil || queue == 0 {
		return cmp.Or(err, ErrStarting)
	}
	begin, err1 := vm.mem.Ptr(queue + uint64(l.buffer))
	limit, err2 := vm.mem.I32(queue + uint64(l.limit))
	if err := cmp.Or(err1, err2); err != nil || begin == 0 || limit <= 0 {
		return cmp.Or(err, ErrStarting)
	}
	if limit > maxInterpreter {
		return fmt.Errorf("%w: interpreter of %d bytes", ErrBadTables, limit)
	}
	vm.interp = span64{begin, begin + uint64(limit)}
	return nil
}

// CallStubReturn is the pc that identifies the frame of the call stub, through which C++ calls Java.
func (vm *VM) CallStubReturn() uint64 { return vm.callRet }

// InInterpreter reports whether pc lies in the interpreter. It reads nothing.
func (vm *VM) InInterpreter(pc uint64) bool { return vm.interp.has(pc) }

// StubName returns the name of the stub routine that holds pc: "jbyte_disjoint_arraycopy". It is empty if not known.
func (vm *VM) StubName(pc uint64) string {
	t := &vm.stubs
	if !t.read {
		t.read = true
		t.stubs = vm.readStubs()
	}
	name := vm.stubName(pc)
	if name == "" && t.list != 0 {
		if head, err := vm.mem.Ptr(t.list); err == nil && head != t.head {
			t.stubs = vm.readStubs()
			name = vm.stubName(pc)
		}
	}
	return name
}

// stubName looks up pc in the present list.
func (vm *VM) stubName(pc uint64) string {
	t := &vm.stubs
	i := sort.Search(len(t.stubs), func(i int) bool { return t.stubs[i].begin > pc }) - 1
	if i < 0 {
		return ""
	}
	s := &t.stubs[i]
	if s.end != 0 {
		if pc <= s.end {
			return s.name
		}
		return ""
	}
	// Only the entry is known, so the stub must be in the same blob.
	b, err := vm.Blob(pc)
	if err != nil || s.begin < b.Begin {
		return ""
	}
	return s.name
}

// UnwindsException reports whether the code at pc unwinds an exception: it removes its own return address from the
// stack, and continues at a handler in its caller (stubGenerator_*.cpp, generate_forward_exception; also blobs of kind
// Exception).
func (vm *VM) UnwindsException(b *Blob, pc uint64) bool {
	if b.Kind != StubRoutines {
		return b.Kind == Exception
	}
	name := vm.StubName(pc)
	return strings.HasPrefix(name, "forward") && strings.Contains(name, "exception")
}

// readStubs reads the VM's list of all stubs, if a symbol leads to the list. Otherwise it reads the exported entry
// points. Since about 23 there are hardly any.
func (vm *VM) readStubs() []stub {
	stubs := vm.stubDescriptors()
	if stubs == nil {
		stubs = vm.stubEntries()
	}
	sort.Slice(stubs, func(i, j int) bool {
		a, b := &stubs[i], &stubs[j]
		return a.begin < b.begin || a.begin == b.begin && a.name < b.name
	})
	return stubs
}

// stubEntries reads the StubRoutines fields (runtime/stubRoutines.hpp).
func (vm *VM) stubEntries() []stub {
	var out []stub
	for name, addr := range vm.l.stubs.entries {
		entry, err := vm.mem.Ptr(addr)
		if err == nil && vm.InCode(entry) && !strings.HasSuffix(name, "return_address") {
			out = append(out, stub{begin: entry, name: name})
		}
	}
	if first, ok := vm.firstStub(); ok {
		out = append(out, first)
	}
	return out
}

// maxFirstStub bounds the code of the first stub, about 60 bytes.
const maxFirstStub = 512

// firstStub finds the stub that forwards exceptions in a JVM without symbols (such as Debian's 8). HotSpot makes this
// stub first and the call stub second (stubGenerator_*.cpp, generate_initial). The call stub's beginning is recognised
// by its standard frame.
func (vm *VM) firstStub() (stub, bool) {
	b, err := vm.Blob(vm.CallStubReturn())
	if err != nil || b.Kind != StubRoutines {
		return stub{}, false
	}
	code := make([]byte, min(maxFirstStub, vm.CallStubReturn()-b.Begin))
	if vm.mem.Bytes(b.Begin, code) != nil {
		return stub{}, false
	}
	for n := range code {
		if n > 0 && vm.t.CPU().Enters(code[n:]) > 0 {
			return stub{begin: b.Begin, end: b.Begin + uint64(n) - 1, name: "forward exception"}, true
		}
	}
	return stub{}, false
}

// stubDescriptors walks the list of StubCodeDesc (runtime/stubCodeGenerator.hpp), to which only .symtab leads. A
// descriptor has _next, _group, _name, (an index, up to 12 or so,) _begin, _end.
func (vm *VM) stubDescriptors() []stub {
	list, err := vm.t.Global(libjvm, "_ZN12StubCodeDesc5_listE")
	if err != nil {
		return nil
	}
	next, err := vm.mem.Ptr(list)
	if err != nil {
		return nil
	}
	vm.stubs.list, vm.stubs.head = list, next
	var out []stub
	var raw [6]uint64
	buf := make([]byte, 8*len(raw))
	for ; next != 0; next = raw[0] {
		if len(out) >= maxStubs || next%8 != 0 || vm.mem.Bytes(next, buf) != nil {
			return nil // not a descriptor
		}
		for i := range raw {
			raw[i] = word(buf[8*i:])
		}
		begin, end := raw[3], raw[4]
		if !vm.InCode(begin) {
			begin, end = raw[4], raw[5]
		}
		if end < begin || end-begin > maxInterpreter {
			return nil
		}
		if !vm.InCode(begin) {
			continue // code outside the cache: CPU feature probes
		}
		name, err := vm.mem.CString(raw[2], maxBlobName)
		if err != nil {
			return nil
		}
		out = append(out, stub{begin, end, plainStub(cleanText(name))})
	}
	return out
}

// plainStub returns a stub's name in the form before 26. 26 has "Stub Generator call_stub_stub" for call_stub, and 27
// has "call_stub_stub (stub gen)" (runtime/stubInfo.cpp).
func plainStub(name string) string {
	plain := strings.TrimSuffix(strings.TrimPrefix(name, "Stub Generator "), " (stub gen)")
	if plain == name {
		return name
	}
	return strings.TrimSuffix(plain, "_stub")
}

// alignUp rounds n up to a multiple of align, a power of two.
func alignUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }
