// Package leaf infers which methods run at an instruction of compiled code.
//
// Compilers record the inlined methods and their lines only at calls and at safepoints. A stopped thread is hardly ever
// at one of these. The code before and behind the pc is evidence of the methods at the pc. From that evidence the
// package infers which methods run at the pc, and how certain they are (docs/decisions/0007-the-leaf.md).
//
// The contract: a Finder returns the methods at a pc, innermost first and at least one, and how certain the innermost
// one is. It returns profile.Certain only if code and records permit no other method. Without evidence it returns only
// the method that owns the code, which is on the stack in any case. The Finder reads code and metadata after the thread
// was stopped, so they may have changed: the walk proves its Blob (vmstructs.Proof). Instructions, bytecodes, searches
// and caches are all bounded. A Finder serves one goroutine.
package leaf

import (
	"goprof/arch"
	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// Finder infers methods in the compiled code of one process, and keeps what it has read of code and methods.
type Finder struct {
	target process.Target
	vm     *vmstructs.VM
	cpu    *arch.CPU

	codeMaps     map[*vmstructs.Blob]*codeMap
	mapped       int                   // bytes of code in codeMaps
	targets      map[uint64]calledCode // targets of calls: see recordedCallee
	bytecode     map[*vmstructs.Method][]vmstructs.Bytecode
	bytecodeSize int // how many bytecodes the map bytecode has
	callees      map[invokeSite]knownInvoke
	fields       map[invokeSite]int32 // the offsets of the fields that getfields read

	asked  question         // the present question; its memory is used again
	costs  []int            // scratch memory of shortest
	before []int32          // scratch memory of shortest
	ways   [mostNested]ways // scratch memory of searches
	call   []byte           // scratch memory of isPoll
}

// New makes a Finder. vm may be nil if no method of the Finder is called.
func New(t process.Target, vm *vmstructs.VM) *Finder {
	f := &Finder{target: t, vm: vm, cpu: t.CPU()}
	f.call = make([]byte, f.cpu.MaxCall)
	f.Forget()
	return f
}

// Forget empties all caches. Entries about compiled code belong to its Blob. If code is replaced, the VM returns
// another Blob, and the old entry is not used any more.
func (f *Finder) Forget() {
	f.codeMaps, f.mapped = make(map[*vmstructs.Blob]*codeMap), 0
	f.targets = make(map[uint64]calledCode)
	f.bytecode, f.bytecodeSize = make(map[*vmstructs.Method][]vmstructs.Bytecode), 0
	f.callees = make(map[invokeSite]knownInvoke)
	f.fields = make(map[invokeSite]int32)
	f.asked = question{}
}

// At returns the likeliest methods at a pc where a thread was stopped, in code with records only at safepoints.
func (f *Finder) At(b *vmstructs.Blob, pc uint64) ([]vmstructs.Scope, profile.Certainty) {
	f.asked.decided = ""
	if s, sure := withoutCode(b, pc); s != nil {
		return s, sure
	}
	p := f.ask(b, pc)
	defer p.answered()
	p.n = p.code.spentAt(p.n, b.Level)
	if b.Level < levelC2 && p.markAt(p.n) == 0 {
		p.n = p.notedWith(p.n)
	}
	v := p.decide()
	return v.scopes, v.sure
}

// DecidedBy returns the name of the rule that decided At's last result, "" if no rule was needed.
func (f *Finder) DecidedBy() string { return f.asked.decided }

// Called infers, at a return address, the methods that have called code of that name by a call without a record. If the
// calling code cannot be read, Called returns the methods of the next record.
func (f *Finder) Called(b *vmstructs.Blob, pc uint64, name string) ([]vmstructs.Scope, profile.Certainty, error) {
	p := f.ask(b, pc)
	defer p.answered()
	if p.n != notInCode {
		p.n = p.code.before(p.n)
	}
	if p.n == notInCode {
		s, err := f.vm.Scopes(b, pc, true)
		return s, profile.Guessed, err
	}
	if s, sure := withoutCode(b, b.Begin+uint64(p.code.list[p.n].at)); s != nil {
		return s, sure, nil
	}
	s, sure := p.between(p.n, p.n, bytecodesOf(name))
	return s, sure, nil
}

// Recorded returns the methods at a pc where a thread was stopped, in code whose records cover every instruction.
func (f *Finder) Recorded(b *vmstructs.Blob, pc uint64) ([]vmstructs.Scope, profile.Certainty, error) {
	p := f.ask(b, pc)
	defer p.answered()
	if n := p.code.spentAt(p.n, b.Level); n != notInCode {
		pc = b.Begin + uint64(p.code.list[n].at)
	}
	s, err := f.vm.Scopes(b, pc, f.isPoll(b, pc))
	return s, profile.Certain, err
}

// withoutCode returns the methods at a pc for which no code must be read, nil for others.
func withoutCode(b *vmstructs.Blob, pc uint64) ([]vmstructs.Scope, profile.Certainty) {
	switch {
	case pc < b.Begin+uint64(max(b.FrameComplete, 0)):
		return b.OwnScope(), profile.Certain // the owner's frame is being built
	case !b.TellsScopes():
		return b.OwnScope(), profile.Guessed
	}
	return nil, profile.Guessed
}
