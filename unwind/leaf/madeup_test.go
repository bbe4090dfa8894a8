package leaf

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"goprof/arch/arm64"
	"goprof/profile"
	"goprof/vmstructs"
)

// madeUp is an nmethod of C2 from a recording, with other code. Its records are real. So a test can try what any code
// shows.
type madeUp struct {
	f       *Finder
	b       *vmstructs.Blob
	m       *codeMap
	records [2]uint32 // offsets. A call of the VM ends at each
}

// The targets of the calls of a madeUp, as offsets from the beginning of its code.
const vmCall, trapCall, leafCallTo = 1 << 20, 2 << 20, 3 << 20

// room is the size of the code before the first record of a madeUp, stubRoom that of the code before the call of a
// record.
const room, stubRoom = 120, 40

// newMadeUp finds an nmethod for a madeUp. Its two records are calls at different bytecodes.
func newMadeUp(t *testing.T) *madeUp {
	rec, f := recorded(t, recordings(t, "walks")[0])
	var made *madeUp
	for i := 0; i < len(rec.Snapshots) && made == nil; i++ {
		rec.Step(i)
		stack := rec.Snapshots[i].Stack
		for at := 0; at+8 <= len(stack) && made == nil; at += 8 {
			pc := binary.LittleEndian.Uint64(stack[at:]) // perhaps a return address
			if !f.vm.InCode(pc) {
				continue
			}
			if b, err := f.vm.Blob(pc); err == nil && b.Kind.IsNmethod() && b.Level == levelC2 {
				made = madeUpOf(f, b)
			}
		}
	}
	if made == nil {
		t.Fatal("no such nmethod")
	}
	f.targets = map[uint64]calledCode{made.b.Begin + vmCall: callsVM, made.b.Begin + trapCall: callsTrap}
	return made
}

func madeUpOf(f *Finder, b *vmstructs.Blob) *madeUp {
	made := &madeUp{f: f, b: b}
	last, found := uint32(room), 0
	for pc := range b.Records() {
		at := uint32(pc - b.Begin)
		s, err := f.vm.Scopes(b, pc, true)
		if at < last+stubRoom || err != nil || s[0].BCI < 0 {
			if last = at; found == 0 && at < room {
				return nil
			}
			continue
		}
		if last = at; found < 2 {
			made.records[found] = at
			found++
		}
	}
	for at := range uint32(room) {
		if _, ok := f.vm.OnNull(b, at); ok {
			return nil
		}
	}
	if found < 2 || fmt.Sprint(made.scopes(0)[0]) == fmt.Sprint(made.scopes(1)[0]) {
		return nil
	}
	return made
}

func (u *madeUp) question() *question { return questionIn(u.f, u.b, u.m) }

// part returns the evidence for an instruction from the first rule that has some.
func (u *madeUp) part(n int32) evidence {
	p := u.question().at(n)
	for _, of := range []func(*place) evidence{(*place).callMark, (*place).class, (*place).check,
		(*place).pollLoad, (*place).allocation} {
		if e := of(p); e.kind != noEvidence {
			return e
		}
	}
	return evidence{}
}

func (u *madeUp) scopes(number int) []vmstructs.Scope {
	s, _ := u.f.vm.Scopes(u.b, u.b.Begin+uint64(u.records[number]), true)
	return s
}

// assemble makes the code. In text, "0f84>1" branches to the stub of the second record. stubs are the instructions
// before the calls, to is what these call. "call" in a stub calls code without a record.
func (u *madeUp) assemble(t *testing.T, text string, to uint64, stubs ...string) {
	t.Helper()
	code := bytes.Repeat([]byte{0x90}, int(u.b.End-u.b.Begin))
	begins := make([]uint32, len(stubs))
	for i, stub := range stubs {
		at := int(u.records[i]) - 5 - len(unhex(t, strings.ReplaceAll(stub, "call", "e800000000")))
		begins[i] = uint32(at)
		for _, in := range strings.Fields(stub) {
			if in == "call" {
				at += u.call(code[at:], at, leafCallTo)
				continue
			}
			at += copy(code[at:], unhex(t, in))
		}
		u.call(code[at:], at, to)
	}
	at := 0
	for _, in := range strings.Fields(text) {
		op, stub, branches := strings.Cut(in, ">")
		at += copy(code[at:], unhex(t, op))
		if branches {
			binary.LittleEndian.PutUint32(code[at:], begins[stub[0]-'0']-uint32(at+4))
			at += 4
		}
	}
	if at > room {
		t.Fatalf("%d bytes of code", at)
	}
	u.m = &codeMap{cpu: u.f.cpu}
	u.m.begin(code, u.b.Begin, u.b.Records())
	u.m.place(0)
}

// call puts a call at an offset of the code.
func (u *madeUp) call(code []byte, at int, to uint64) int {
	code[0] = 0xe8
	binary.LittleEndian.PutUint32(code[1:], uint32(to-uint64(at)-5))
	return 5
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// disp returns a displacement as code contains it.
func disp(n int32) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, uint32(n)))
}

// request returns the code that calls for a trap with a reason: mov esi, number.
func (u *madeUp) request(t *testing.T, reason vmstructs.TrapReason) string {
	t.Helper()
	for n := range int32(32) {
		if request := ^(n << 3); u.f.vm.TrapReason(request) == reason {
			return "be" + disp(request)
		}
	}
	t.Fatalf("no request for %d", reason)
	return ""
}

// TestAllocations: two allocations, one right behind the other. The first includes all code between its load and the
// new object's header. The store of a field behind that belongs to no allocation, and the second one begins with its
// own load.
func TestAllocations(t *testing.T) {
	u := newMadeUp(t)
	for i := range 2 {
		s := u.scopes(i)[0]
		u.f.bytecode[s.Method] = append(u.f.bytecode[s.Method], vmstructs.Bytecode{BCI: s.BCI, Op: vmstructs.OpNew})
	}
	top, end := disp(u.f.vm.AllocationTop()), disp(u.f.vm.AllocationTop()+16)
	// mov r11, [r15+top]; lea r10, [r11+24]; cmp r10, [r15+end]; jae; mov [r15+top], r10; prefetchw [r10+192];
	// mov [r11], 1; mov [r11+16], rcx
	u.assemble(t, "4d8b9f"+top+" 4d8d5318 4d3b97"+end+" 0f83>0 4d8997"+top+
		" 410f0d8ac0000000 49c70301000000 49894b10"+
		// mov r9, [r15+top]; lea r8, [r9+24]; cmp r8, [r15+end]; jae; mov [r15+top], r8; mov [r9], 1; ret
		" 4d8b8f"+top+" 4d8d4118 4d3b87"+end+" 0f83>1 4d8987"+top+" 49c70101000000 c3", vmCall,
		"48be1000000000000000", "48be2000000000000000")
	for n, want := range []int{0, 0, 0, 0, 0, 0, 0, -1, 1, 1, 1, 1, 1, 1, -1} {
		e := u.part(int32(n))
		got := -1
		for i, at := range u.records {
			if e.kind == atCheck && e.scope == u.b.Begin+uint64(at) {
				got = i
			}
		}
		if got != want {
			t.Errorf("instruction %d: of allocation %d, not %d: %+v", n, got, want, e)
		}
	}
}

// TestChecks: a branch belongs to a check if its way to the VM does nothing but prepare the call.
func TestChecks(t *testing.T) {
	u := newMadeUp(t)
	null := u.request(t, vmstructs.TrapNull)
	for _, r := range []struct {
		name, stub string
		to         uint64
		want       evidenceKind
	}{
		{"nothing else", "", vmCall, atCheck},
		{"copies and constants", "4889d8 4c89442418 31ed 48be1000000000000000 ff742418 8f442408 c5f877 90", vmCall, atCheck},
		{"a jump", "eb02 ffc1 4889d8", vmCall, atCheck},
		{"a sum", "4801d8", vmCall, atTrap},
		{"a load", "488b4310", vmCall, atTrap},
		{"a store", "48894310", vmCall, atTrap},
		{"a call without a record", "call", vmCall, atTrap},
		{"a trap", null + " 4889d8", trapCall, atCheck},
		{"a trap behind a sum", "4801d8 " + null, trapCall, atTrap},
		{"a trap behind a call", null + " call", trapCall, atTrap},
		{"a trap without a reason", "", trapCall, atTrap},
		{"a check before a loop", u.request(t, vmstructs.TrapBeforeLoop), trapCall, noEvidence},
	} {
		u.assemble(t, "4d85d2 0f84>0 c3", r.to, r.stub) // test r10, r10; je; ret
		for n := range int32(2) {                       // both, or the branch alone
			want := r.want
			if n == 0 && want == atTrap {
				want = noEvidence
			}
			if e := u.question().evidenceAt(n); e.kind != want {
				t.Errorf("%s: instruction %d is %d, not %d", r.name, n, e.kind, want)
			}
		}
	}
}

// TestClassLoads: a load of a class is part of the check that compares the register into which it loads.
func TestClassLoads(t *testing.T) {
	u := newMadeUp(t)
	class := u.request(t, vmstructs.TrapClass)
	// mov r11d, [rax+8]; mov r10d, [rcx+8]; cmp r11d, 1; jne; cmp r10d, 2; jne; ret
	u.assemble(t, "448b5808 448b5108 4183fb01 0f85>0 4183fa02 0f85>1 c3", trapCall, class, class)
	if e := u.part(1); e.kind != noEvidence {
		t.Errorf("the class for the second check is part of the first: %+v", e)
	}
	// mov r10d, [rcx+8]; mov r11d, [rax+8]; cmp r11d, 1; jne
	u.assemble(t, "448b5108 448b5808 4183fb01 0f85>0 c3", trapCall, class)
	if e := u.part(1); e.kind != atCheck || e.scope != u.b.Begin+uint64(u.records[0]) {
		t.Errorf("the class of the check: %+v", e)
	}
	// mov r11d, [rax+8]; mov r10d, 1; mov r9d, 2; cmp r11d, r10d; jne: as C2 does on arm64
	u.assemble(t, "448b5808 41ba01000000 41b902000000 4539d3 0f85>0 c3", trapCall, class)
	if e := u.part(0); e.kind != atCheck || e.scope != u.b.Begin+uint64(u.records[0]) {
		t.Errorf("the class of the check, with a constant in between: %+v", e)
	}
	// mov r11d, [rax+8]; add ecx, 1; cmp r11d, 1; jne
	u.assemble(t, "448b5808 83c101 4183fb01 0f85>0 c3", trapCall, class)
	if e := u.part(1); e.kind != noEvidence {
		t.Errorf("other work before the check: %+v", e)
	}
}

// TestClassChain: a cast to a class that has others below it. The code makes an address of the object's class, and
// compares a constant with one of the classes above it.
func TestClassChain(t *testing.T) {
	u := newMadeUp(t)
	// mov r10d, [r12+rbp*8+8]; movabs r11, base; add r11, r10; mov r10, [r11+0x38]; movabs r11, class; cmp r10, r11; jne
	const load, base, sum = "458b54ec08 ", "49bb000000e35c7f0000 ", "4d01d3 "
	const above, class, check = "4d8b5338 ", "49bb006400e45c7f0000 ", "4d39da 0f85>0 c3"
	for _, r := range []struct {
		name, code string
		reason     vmstructs.TrapReason
		want       string // for each instruction, whether it belongs to the check
	}{
		{"a cast", load + base + sum + above + class + check, vmstructs.TrapClass, "yyyyyyy"},
		{"a check of null", load + base + sum + above + class + check, vmstructs.TrapNull, "nnnnnyy"},
		{"a cast's check of null", load + base + sum + above + class + check, vmstructs.TrapNull, "nnnnnyy cast"},
		{"the slow path of a cast", load + base + sum + above + class + check, vmstructs.NoTrap, "yyyyyyy cast"},
		// mov [rsp+8], r10 behind the load: the value goes elsewhere first
		{"a copy to the stack", load + "4c89542408 " + base + sum + above + class + check, vmstructs.TrapClass, "nnyyyyyy"},
		// mov rcx, [r10+16] uses the loaded value, and hands it on to nothing
		{"another value", load + "498b4a10 " + base + sum + above + class + check, vmstructs.TrapClass, "nnyyyyyy"},
	} {
		want, cast := strings.CutSuffix(r.want, " cast")
		s := u.scopes(0)[0]
		delete(u.f.bytecode, s.Method)
		if cast {
			u.f.bytecode[s.Method] = []vmstructs.Bytecode{bytecode(s.BCI, vmstructs.OpCheckcast)}
		}
		if r.reason == vmstructs.NoTrap {
			u.assemble(t, r.code, vmCall, "")
		} else {
			u.assemble(t, r.code, trapCall, u.request(t, r.reason))
		}
		for n, want := range want {
			e := u.part(int32(n))
			if got := e.kind == atCheck && e.scope == u.b.Begin+uint64(u.records[0]); got != (want == 'y') {
				t.Errorf("%s, instruction %d: %+v", r.name, n, e)
			}
		}
	}
}

// TestCallsKnowMore: if it is known which bytecodes can have made an instruction, the record of its branch does not
// count.
func TestCallsKnowMore(t *testing.T) {
	u := newMadeUp(t)
	u.assemble(t, "4d85d2 0f84>0 c3", vmCall, "") // test r10, r10; je; ret
	if _, sure := u.question().between(1, 1, nil); sure != profile.Certain {
		t.Errorf("a check is %v", sure)
	}
	none := func(*vmstructs.Method, *vmstructs.Bytecode, *vmstructs.Method) bool { return false }
	if _, sure := u.question().between(1, 1, none); sure != profile.Guessed {
		t.Errorf("what no bytecode on the way can have made is %v", sure)
	}
}

// TestMarkBehindCall: the nop behind a call belongs to the call if it has data.
func TestMarkBehindCall(t *testing.T) {
	for _, r := range []struct {
		name, code string
		call       bool // stands before
		want       evidenceKind
	}{
		{"a mark", "0f1f840034120000", true, atCall},
		{"a nop without data", "0f1f840000000000", true, noEvidence},
		{"a short nop", "90", true, noEvidence},
		{"no call before", "0f1f840034120000", false, noEvidence},
		{"no nop", "8b8034120000", true, noEvidence},
	} {
		u := newMadeUp(t)
		u.assemble(t, "", vmCall, []string{""}[:map[bool]int{true: 1}[r.call]]...)
		code := u.m.code
		copy(code[u.records[0]:], unhex(t, r.code))
		u.m = &codeMap{cpu: u.f.cpu}
		u.m.begin(code, u.b.Begin, u.b.Records())
		n := u.m.place(u.records[0])
		u.m.list[n].filled = true // it is no poll
		if e := u.part(n); e.kind != r.want || e.kind == atCall && e.scope != u.b.Begin+uint64(u.records[0]) {
			t.Errorf("%s: %+v", r.name, e)
		}
	}
}

// TestMarkOfThree: on arm64 the mark behind a call has three instructions, which all belong to the call.
func TestMarkOfThree(t *testing.T) {
	u := newMadeUp(t)
	at, end := u.records[0]-4, u.b.Begin+uint64(u.records[0])
	// bl; nop; movk xzr, 0x1c0; movk xzr, 0x200, lsl 16; nop
	code := append(make([]byte, at), unhex(t, "00000094 1f2003d5 1f3880f2 1f40a0f2 1f2003d5")...)
	u.m = &codeMap{cpu: arm64.CPU}
	u.m.begin(code, u.b.Begin, slices.Values([]uint64{end - 4, end}))
	n := u.m.place(at + 4)
	for k, want := range []uint64{end, end, end, 0} {
		if pc := u.question().markAt(n + int32(k)); pc != want {
			t.Errorf("part %d: %#x, not %#x", k, pc, want)
		}
	}
}

// TestObjectOfClass: the load of an object is not part of the check of its class.
func TestObjectOfClass(t *testing.T) {
	u := newMadeUp(t)
	// mov ecx, [rbx+16]; shl rcx, 3; mov r11d, [rcx+8]; cmp r11d, 1; jne; ret
	u.assemble(t, "8b4b10 48c1e103 448b5908 4183fb01 0f85>0 c3", trapCall, u.request(t, vmstructs.TrapClass))
	for n, want := range []evidenceKind{noEvidence, noEvidence, atCheck} {
		if e := u.question().classAt(int32(n)); e.kind != want {
			t.Errorf("instruction %d: %+v", n, e)
		}
	}
}
