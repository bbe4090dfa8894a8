package leaf

import (
	"slices"
	"strings"
	"testing"

	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/profile"
	"goprof/vmstructs"
)

// countedBranch and countedEntry are C1's code (JDK 17): a branch with its comparison, and the entry of a method.
const (
	// cmp edx, esi; movabs rax, data; mov ecx, 0x138; jge; mov ecx, 0x128; mov rbx, [rax+rcx]; lea rbx, [rbx+1];
	// mov [rax+rcx], rbx; jge
	countedBranch = "3bd6 48b8785634120000007f b938010000 7d05 b928010000 488b1c08 488d5b01 48891c08 7d10"
	// movabs rax, data; mov ecx, [rax+0xcc]; add ecx, 8; mov [rax+0xcc], ecx; and ecx, 0x1ff8; je
	countedEntry = "48b8785634120000007f 8b88cc000000 83c108 8988cc000000 81e1f81f0000 7410"
	// movabs rdi, data; mov ebx, [rdi+0x90]; add ebx, 2; mov [rdi+0x90], ebx; and ebx, 0x1ffffe; test ebx, ebx; je
	comparedEntry = "48bf785634120000007f 8b9f90000000 83c302 899f90000000 81e3feff0100 85db 7410"
	// The same of JDK 25 on arm64: cmp w0, w5; mov x6, data: three instructions; mov x8, 0xe8; mov x9, 0xd8;
	// csel x7, x8, x9, lt; ldr x10, [x6, x7]; add x10, x10, 1; str x10, [x6, x7]; b.lt
	armBranch = "1f00056b 06cf8ad2 8646a2f2 06e0eff2 081d80d2 091b80d2 07b1899a ca6867f8 4a050091 ca6827f8 0b020054"
	// mov x2, data: three instructions; ldr w4, [x2, 148]; add w4, w4, 2; str w4, [x2, 148]; and w4, w4, 0x3ffe;
	// cmp w4, 0; b.eq
	armEntry = "02cf8ad2 8246a2f2 02e0eff2 449440b9 84080011 449400b9 84301f12 9f000071 00020054"
	// ldr x4, [x2, 248]; add x4, x4, 1; str x4, [x2, 248]; mov x4, x6; mov x2, x7: of a call
	armCall = "02cf8ad2 8246a2f2 02e0eff2 447c40f9 84040091 447c00f9 e40306aa e20307aa"
)

// TestCounterAt: which instructions count, and for what.
func TestCounterAt(t *testing.T) {
	const none, forBranch, forEntry = noCounter, countsBranch, countsEntry
	pad, armPad := strings.Repeat(" 90", 20), strings.Repeat(" 1f2003d5", 20)
	branches, entries := slices.Repeat([]counterKind{forBranch}, 11), slices.Repeat([]counterKind{forEntry}, 9)
	for _, r := range []struct {
		name, code string
		want       []counterKind
	}{
		{"a branch on arm64", armBranch + armPad, append(branches, none)},
		{"an entry on arm64", armEntry + armPad, append(entries, none)},
		{"a call on arm64", armCall + armPad, []counterKind{none, none, none, none, none, none, none}},
		{"a branch", countedBranch + pad, []counterKind{forBranch, forBranch, forBranch, forBranch, forBranch, forBranch,
			forBranch, forBranch, forBranch, none}},
		{"an entry", countedEntry + pad, []counterKind{forEntry, forEntry, forEntry, forEntry, forEntry, forEntry, none}},
		{"an entry, with a comparison", comparedEntry + pad, append(entries[:7:7], none)},
		{"another constant behind", "48b8785634120000007f b938010000 b928010000 7d05" + pad,
			[]counterKind{none, none, none, none}},
		{"the counter of another place", "48b8785634120000007f 8b88cc000000 83c108 8988c8000000" + pad,
			[]counterKind{none, none, none, none}},
		{"a comparison for something else", "3bd6 48b8785634120000007f 8b88cc000000 83c108 8988cc000000" + pad,
			[]counterKind{none, forEntry, forEntry, forEntry, forEntry}},
		{"a call in between", "48b8785634120000007f b938010000 7d05 b928010000 e800000000 90" + pad,
			[]counterKind{forBranch, forBranch, forBranch, none, none, none}},
		{"the code ends", "48b8785634120000007f b938010000 7d05", []counterKind{none, none, none}},
	} {
		m := &codeMap{cpu: amd64.CPU}
		if strings.HasSuffix(r.name, "arm64") {
			m.cpu = arm64.CPU
		}
		m.begin(unhex(t, r.code), 0, func(func(uint64) bool) {})
		m.place(0)
		for n, want := range r.want {
			kind, data := m.counterAt(int32(n))
			if kind != want || (data == 0x7f00000012345678) != (want != none) {
				t.Errorf("%s, instruction %d: %d of %#x", r.name, n, kind, data)
			}
		}
	}
}

// profiled returns the methods of a record from the first one on that has a profile, and the profile's address. From
// then on the VM finds that method where a profile says whose it is: the recording has no memory of the profile.
func (u *madeUp) profiled(t *testing.T) (s []vmstructs.Scope, data uint64) {
	t.Helper()
	s = u.scopes(0)
	for i := range s {
		if data = u.f.vm.DataOf(s[i].Method); data != 0 {
			u.f.vm = vmOfHeap(t, 0, s[i].Method.Addr)
			return s[i:], data
		}
	}
	t.Fatal("no method with a profile")
	return nil, 0
}

// TestAtCounter: a counter belongs to the method on the route that has the MethodData.
func TestAtCounter(t *testing.T) {
	u := newMadeUp(t)
	s, data := u.profiled(t)
	other := []vmstructs.Scope{{Method: &vmstructs.Method{Name: "other"}}}
	elsewhere := append(s[:1:1], other[0])
	b := &vmstructs.Blob{Level: levelProfiled}
	for _, r := range []struct {
		name   string
		code   string
		scopes []vmstructs.Scope
		legs   []leg
		want   bool
		sure   profile.Certainty
	}{
		{"what the route tells", countedBranch, s, nil, true, profile.Certain},
		{"a caller of it", countedBranch, append(other, s...), nil, true, profile.Certain},
		{"another leg", countedBranch, other, []leg{{scopes: other}, {scopes: s}}, true, profile.Certain},
		{"none on the route", countedBranch, other, []leg{{scopes: other}}, false, profile.Guessed},
		{"an entry", countedEntry, s, nil, true, profile.Certain},
		{"a constant that is no data", "48b8785634120000007f 488b4010", other, nil, false, profile.Guessed},
		{"a call", "48b8785634120000007f 4883805801000001", s, nil, true, profile.Certain},
		{"inlined at two places", countedBranch, s, []leg{{scopes: append(other, s...)}, {scopes: elsewhere}}, true,
			profile.Likely},
		{"no counter", "90 90 90 90", s, nil, false, profile.Guessed},
	} {
		code := append(unhex(t, r.code), unhex(t, "9090909090909090")...)
		for i := 0; i+10 <= len(code); i++ { // the address in the code becomes that of the data
			if code[i] == 0x48 && code[i+1] == 0xb8 {
				for k := range 8 {
					code[i+2+k] = byte(data >> (8 * k))
				}
			}
		}
		m := &codeMap{cpu: u.f.cpu}
		m.begin(code, 0, func(func(uint64) bool) {})
		m.place(0)
		by := inferred{scopes: r.scopes, legs: r.legs}
		p := questionIn(u.f, b, m).at(1)
		p.routed = by
		v := p.counter()
		got, sure := v.scopes, v.sure
		if (got != nil) != r.want || got != nil && sure != r.sure || got != nil && got[0].Method != s[0].Method {
			t.Errorf("%s: %+v, %v", r.name, got, sure)
		}
	}
}

// TestDataAt: what may be the address of a MethodData is in a register to which an offset is added.
func TestDataAt(t *testing.T) {
	const data = 0x7f00001234
	for _, r := range []struct {
		name, code string
		want       []uint64 // of each instruction
	}{
		// movabs rbx, data; mov edi, [rdi+8]; cmp rdi, [rbx+0x100]; jne; add [rbx+0x108], 1; jmp
		{"the class of a receiver", "48bb341200007f000000 8b7f08 483bbb00010000 7510 4883830801000001 eb10",
			[]uint64{data, 0, data, data, data, 0}},
		// movabs rbx, data; movabs rcx, 1; mov rax, [rbx+rcx]; mov [rbx+0x10], rcx
		{"the nearest constant that is the base", "48bb341200007f000000 48b90100000000000000 488b040b 48894b10",
			[]uint64{data, 1, 1, 1}},
		// movabs rbx, data; mov rbx, [rsi]; mov rax, [rbx+16]
		{"another value since", "48bb341200007f000000 488b1e 488b4310", []uint64{data, 0, 0}},
		// movabs rbx, data; call; mov rax, [rbx+16]
		{"a call in between", "48bb341200007f000000 e800000000 488b4310", []uint64{data, 0, 0}},
		// mov rax, [rsp+16]; ret
		{"the stack", "488b442410 c3", []uint64{0, 0}},
	} {
		m := &codeMap{cpu: amd64.CPU}
		m.begin(append(unhex(t, r.code), slices.Repeat([]byte{0x90}, 8)...), 0, func(func(uint64) bool) {})
		m.place(0)
		for n, want := range r.want {
			if got := m.dataAt(int32(n), func(uint64) bool { return true }); got != want {
				t.Errorf("%s, instruction %d: %#x", r.name, n, got)
			}
		}
	}
}

// TestDataOfReceivers: C1 makes code that counts the classes of receivers (17, arm64). Instructions without a caret use
// the address of the profile.
func TestDataOfReceivers(t *testing.T) {
	const text = "020080d2 " + // mov x2, 0
		// mov x3, data: three instructions; ldr w0, [x1, 8]; eor x0, x0, 0x2000000000
		"03cf8ad2 8346a2f2 03e0eff2 ^200840b9 ^00005bd2 " +
		// add x9, x3, 0x150; ldr x8, [x9]; cmp x0, x8; b.ne .+20; ldr x8, [x3, 0x158]; add x8, x8, 1;
		// str x8, [x3, 0x158];
		"69400591 280140f9 1f0008eb a1000054 68ac40f9 08050091 68ac00f9 " +
		// b .+28; add x9, x3, 0x160; ldr x8, [x9]; cbnz x8, .+12; str x0, [x9]
		"^07000014 69800591 280140f9 680000b5 200100f9 " +
		// mov x8, x0; add x8, x8, 1; ldr x9, [x2]
		"^e80300aa ^08050091 ^490040f9"
	m := &codeMap{cpu: arm64.CPU}
	m.begin(unhex(t, strings.ReplaceAll(text, "^", "")), 0, func(func(uint64) bool) {})
	m.place(0)
	for n, in := range strings.Fields(text)[1:] {
		const profile = 0x7f00000012345678
		want := uint64(profile)
		if in[0] == '^' {
			want = 0
		}
		if data := m.dataAt(int32(n+1), func(data uint64) bool { return data == profile }); data != want {
			t.Errorf("instruction %d, %s: %#x", n+1, in, data)
		}
	}
}
