package vmstructs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Method is a Java method. All callers that ask for a method share one Method, and must not change it.
type Method struct {
	Addr         uint64
	Class        string // with dots: java.lang.String
	Name         string
	Signature    string // as in class files: (I)V
	File         string // source file, may be empty
	Native       bool
	Synchronized bool
	Intrinsic    bool   // compilers may have special code for it; true if not known
	CodeBegin    uint64 // the address of its bytecodes
	CodeSize     int    // the number of their bytes

	since      int64 // the time since which the method is known to exist, see age.go
	unloadable bool  // its class may be unloaded

	full  string
	lines []lineEntry
	pool  *pool
	// facts identify the method: the pointer to its ConstMethod; the ConstMethod's pointer to the constants, its indexes
	// and its number; the entries of the constant pool; the symbol of the name; and the lines, because two versions of a
	// redefined class may differ only in their lines. No frame shows the signature, so the pointer to its symbol is
	// sufficient.
	facts [numMethodFacts]fact
}

const (
	factConstMethod = iota
	factConst
	factNameEntry
	factSigEntry
	factName
	factLines
	factIntrinsic
	numMethodFacts
)

// pool has the facts that the methods of a class share.
type pool struct {
	addr   uint64 // of the ConstantPool
	length uint32
	class  string
	file   string
	symbol symbol // of the class
	facts  [2]fact
}

const (
	poolHolder = iota
	poolKlassName
)

// accNative is JVM_ACC_NATIVE. accSynchronized is JVM_ACC_SYNCHRONIZED (classfile_constants.h).
const accNative, accSynchronized = 0x100, 0x20

// Limits of the method cache. The cache is emptied when it reaches one of them.
const (
	maxMethods     = 64 << 10
	maxPools       = 32 << 10
	maxMethodBytes = 32 << 20
)

type methodCache struct {
	granted bool // readPool has used a cached pool without a proof
	byAddr  map[uint64]*Method
	pools   map[uint64]*pool
	strings map[string]string
	bytes   int

	symbol []byte // scratch memory of readSymbol
	proof  *Proof
}

func (c *methodCache) init() {
	c.byAddr = map[uint64]*Method{}
	c.pools = map[uint64]*pool{}
	c.strings = map[string]string{}
	c.bytes = 0
}

// intern returns the text of a symbol. Equal texts share one copy.
func (c *methodCache) intern(b []byte) string {
	if s, ok := c.strings[string(b)]; ok {
		return s
	}
	s := modifiedUTF8(b)
	c.strings[string(b)] = s
	c.bytes += 2*len(b) + 32
	return s
}

// trim empties the cache if it is full.
func (c *methodCache) trim() {
	if len(c.byAddr) >= maxMethods || len(c.pools) >= maxPools || c.bytes > maxMethodBytes {
		c.init()
	}
}

func (c *methodCache) evict(m *Method) {
	if c.byAddr[m.Addr] == m {
		delete(c.byAddr, m.Addr)
	}
	if c.pools[m.pool.addr] == m.pool {
		delete(c.pools, m.pool.addr)
	}
}

// Full returns the class and name: java.lang.String.length.
func (m *Method) Full() string { return m.full }

// Parameters returns an upper bound of the words of its arguments, including the receiver.
func (m *Method) Parameters() (words int) {
	words = 1
	for s := m.Signature[1:]; s != "" && s[0] != ')'; words++ {
		if s[0] == 'J' || s[0] == 'D' {
			words++
		}
		if s = strings.TrimLeft(s, "["); strings.HasPrefix(s, "L") {
			_, s, _ = strings.Cut(s, ";")
		} else if s != "" {
			s = s[1:]
		}
	}
	return words
}

// BCI returns the bytecode index of the bytecode at an address.
func (m *Method) BCI(bcp uint64) (int32, bool) {
	if bcp-m.CodeBegin >= uint64(m.CodeSize) {
		return 0, false
	}
	return int32(bcp - m.CodeBegin), true
}

// SavedBCI returns the bytecode index for the bcp slot of an interpreter frame. While JDK 8 collects, the slot has the
// index itself (runtime/frame.cpp, frame::gc_prologue), because in older releases methods could move then.
func (vm *VM) SavedBCI(m *Method, slot uint64) (int32, bool) {
	if vm.l.jdk8 && slot < uint64(m.CodeSize) {
		return int32(slot), true
	}
	return m.BCI(slot)
}

// Method returns the method at addr. For a cached method it reads nothing. A Proof shows whether it is still the same.
func (vm *VM) Method(addr uint64) (*Method, error) {
	if m := vm.methods.byAddr[addr]; m != nil {
		return m, nil
	}
	return vm.loadMethod(addr)
}

// MethodNow is Method with an immediate proof. Cached entries are made with MethodNow, so that all data of an entry
// belongs to one moment.
func (vm *VM) MethodNow(addr uint64) (*Method, error) {
	if m := vm.methods.byAddr[addr]; m != nil {
		ok, err := vm.proveMethod(m)
		if err != nil || ok {
			return m, err
		}
	}
	return vm.loadMethod(addr)
}

func (vm *VM) loadMethod(addr uint64) (*Method, error) {
	found := [1]*Method{}
	err := vm.loadMethods([]uint64{addr}, found[:])
	return found[0], err
}

// loadMethods reads the methods in addrs that are still missing in found, and proves all of them by one read. First it
// relies on the cached data of their classes. If these data are no longer true, the proof fails, and it reads
// everything again.
func (vm *VM) loadMethods(addrs []uint64, found []*Method) error {
	vm.nearby.begin()
	defer vm.nearby.end()
	before := slices.Clone(found)
	older := vm.nearby.n > 0 // there are older pieces of memory, without the methods that were loaded since
	vm.methods.granted = false
	ok, err := vm.readMethods(addrs, found, true)
	if !ok && (err == nil || older || vm.methods.granted) { // without an error, a fact has changed
		vm.nearby.forget()
		copy(found, before)
		ok, err = vm.readMethods(addrs, found, false)
	}
	if !ok {
		vm.nearby.forget()
		clear(found)
		return cmp.Or(err, ErrChanged)
	}
	for i, m := range found {
		if before[i] == nil {
			vm.keepMethod(m)
		}
	}
	return nil
}

// readMethods reads the missing methods, and proves them. known: cached data of their classes may be used.
func (vm *VM) readMethods(addrs []uint64, found []*Method, known bool) (ok bool, err error) {
	vm.fetchMethods(addrs, found)
	var read []*Method
	for i, addr := range addrs {
		if found[i] == nil {
			if found[i], err = vm.readMethod(addr, known); err != nil {
				return false, fmt.Errorf("method at %#x: %w", addr, err)
			}
			read = append(read, found[i])
		}
	}
	return vm.proveMethods(read)
}

// proveMethods proves several methods at once. In a recording, the memory between their facts may be missing. Then each
// method is proven alone.
func (vm *VM) proveMethods(list []*Method) (bool, error) {
	p := vm.methodProof()
	for _, m := range list {
		p.Method(m)
	}
	if ok, err := p.Check(); ok || err != nil {
		return ok, err
	}
	for _, m := range list {
		if ok, err := vm.proveMethod(m); err != nil || !ok {
			return false, err
		}
	}
	return len(list) > 0, nil
}

// keepMethod puts a method that was just proven into the cache.
func (vm *VM) keepMethod(m *Method) {
	m.since = vm.now()
	c := &vm.methods
	cost := 1024 + 8*len(m.lines) + 2*len(m.full)
	c.bytes += cost
	vm.loaded += uint64(cost)
	c.trim()
	c.byAddr[m.Addr] = m
	c.pools[m.pool.addr] = m.pool
}

// proveMethod reads everything again from which m was made.
func (vm *VM) proveMethod(m *Method) (bool, error) {
	p := vm.methodProof()
	p.Method(m)
	return p.Check()
}

// methodProof returns an empty Proof, which is valid until the next call.
func (vm *VM) methodProof() *Proof {
	if vm.methods.proof == nil {
		vm.methods.proof = vm.NewProof()
	}
	vm.methods.proof.Reset()
	return vm.methods.proof
}

func (m *Method) noteAll(p *Proof) {
	for i := range m.facts {
		p.note(&m.facts[i])
	}
	p.note(&m.pool.facts[poolHolder])
	p.note(&m.pool.facts[poolKlassName])
	p.note(&m.pool.symbol.fact)
}

// broken reports whether a Check has just found that one of m's facts is false.
func (m *Method) broken() bool {
	for i := range m.facts {
		if f := &m.facts[i]; f.proof == 0 && f.want != nil {
			return true
		}
	}
	return m.pool.facts[poolHolder].proof == 0 || m.pool.facts[poolKlassName].proof == 0 || m.pool.symbol.fact.proof == 0
}

// readFact reads n bytes, and makes a fact of them.
func (vm *VM) readFact(addr uint64, n int) (fact, error) {
	f := fact{addr: addr, want: make([]byte, n)}
	return f, vm.near.Bytes(addr, f.want)
}

// readMethod follows Method -> ConstMethod -> ConstantPool -> class and symbols (oops/method.hpp, constMethod.hpp,
// constantPool.hpp).
func (vm *VM) readMethod(addr uint64, known bool) (*Method, error) {
	l := &vm.l.method
	if addr == 0 || addr%8 != 0 {
		return nil, ErrBadMethod
	}
	head, err := vm.readFact(addr, l.span)
	if err != nil {
		return nil, err
	}
	constAddr := l.constMethod.u64(head.want)
	if constAddr == 0 || constAddr%8 != 0 {
		return nil, ErrBadMethod
	}
	body, err := vm.readFact(constAddr, l.constSpan)
	if err != nil {
		return nil, err
	}
	p, err := vm.readPool(l.constants.u64(body.want), known)
	if err != nil {
		return nil, err
	}
	m := &Method{
		Addr: addr, Class: p.class, File: p.file, pool: p,
		Native:       l.accessFlags.u16(head.want)&accNative != 0,
		Synchronized: l.accessFlags.u16(head.want)&accSynchronized != 0,
		CodeBegin:    constAddr + l.constSize,
		CodeSize:     int(l.codeSize.u16(body.want)),
	}
	head.parts = []part{{int(l.constMethod), int(l.constMethod) + 8}}
	body.parts = []part{{int(l.constants), int(l.constants) + 8}, {int(l.idBegin), int(l.idEnd)}}
	m.facts[factConstMethod], m.facts[factConst] = head, body
	nameIndex, sigIndex := l.nameIndex.u16(body.want), l.sigIndex.u16(body.want)
	if m.Name, err = vm.poolSymbol(p, nameIndex, &m.facts[factNameEntry], &m.facts[factName]); err != nil {
		return nil, err
	}
	var signature fact
	if m.Signature, err = vm.poolSymbol(p, sigIndex, &m.facts[factSigEntry], &signature); err != nil {
		return nil, err
	}
	if m.Name == "" || !strings.HasPrefix(m.Signature, "(") {
		return nil, ErrBadMethod
	}
	m.full, m.unloadable = m.Class+"."+m.Name, isUnloadable(m.Class)
	m.Intrinsic, m.facts[factIntrinsic] = vm.readIntrinsic(addr)
	m.lines, m.facts[factLines] = vm.readLines(constAddr, m.CodeSize, body.want)
	return m, nil
}

// readIntrinsic reports whether compilers may have special code for a method, in place of a call.
func (vm *VM) readIntrinsic(method uint64) (bool, fact) {
	l := &vm.l.invoke
	if !l.intrinsic.ok() {
		return true, fact{}
	}
	id, err := vm.readFact(method+uint64(l.intrinsic.offset), int(l.intrinsic.width))
	if err != nil {
		return true, fact{}
	}
	return sized{0, l.intrinsic.width}.unsigned(id.want) != 0, id
}

// poolSymbol reads the name to which entry i of a constant pool points. It stores the facts that prove the name in
// entry and sym.
func (vm *VM) poolSymbol(p *pool, i uint16, entry, sym *fact) (string, error) {
	if i == 0 || uint32(i) >= p.length {
		return "", fmt.Errorf("%w: constant %d of %d", ErrBadMethod, i, p.length)
	}
	var err error
	if *entry, err = vm.readFact(p.addr+vm.l.method.poolSize+8*uint64(i), 8); err != nil {
		return "", err
	}
	// The lowest bit marks entries that are not resolved (oops/constantPool.hpp, CPSlot).
	s, err := vm.readSymbol(word(entry.want) &^ 1)
	if err != nil {
		return "", err
	}
	*sym = s.fact
	return s.text, nil
}

// maxPool is the largest number of constants of a class file.
const maxPool = 1 << 16

// readPool reads the data that the methods of a class share. It uses a cached pool whose data has not changed. With
// known it does not check that, because the caller checks it afterwards.
func (vm *VM) readPool(addr uint64, known bool) (*pool, error) {
	if p := vm.methods.pools[addr]; p != nil {
		if known {
			vm.methods.granted = true
			return p, nil
		}
		if vm.seemsTrue(&p.facts[poolHolder]) && vm.seemsTrue(&p.facts[poolKlassName]) &&
			vm.seemsTrue(&p.symbol.fact) {
			return p, nil
		}
		delete(vm.methods.pools, addr)
	}
	l := &vm.l.method
	if addr == 0 || addr%8 != 0 {
		return nil, fmt.Errorf("%w: constants at %#x", ErrBadMethod, addr)
	}
	head, err := vm.readFact(addr, l.poolSpan)
	if err != nil {
		return nil, err
	}
	p := &pool{addr: addr, length: l.poolLength.u32(head.want)}
	holder := l.poolHolder.u64(head.want)
	if holder == 0 || holder%8 != 0 || p.length == 0 || p.length > maxPool {
		return nil, fmt.Errorf("%w: %d constants of class %#x", ErrBadMethod, p.length, holder)
	}
	p.facts[poolHolder] = fact{addr: addr, want: head.want, parts: []part{
		{int(l.poolHolder), int(l.poolHolder) + 8}, {int(l.poolLength), int(l.poolLength) + 4}}}
	if p.facts[poolKlassName], err = vm.readFact(holder+uint64(l.klassName), 8); err != nil {
		return nil, err
	}
	if p.symbol, err = vm.readSymbol(word(p.facts[poolKlassName].want)); err != nil {
		return nil, err
	}
	if p.symbol.text == "" {
		return nil, ErrBadMethod
	}
	p.class = strings.ReplaceAll(p.symbol.text, "/", ".")
	p.file = vm.sourceFile(p, head.want, holder)
	return p, nil
}

// sourceFile finds the name of the source file. It is empty if the class has none.
func (vm *VM) sourceFile(p *pool, head []byte, holder uint64) string {
	l := &vm.l.method
	var index uint16
	switch {
	case l.poolFile.ok():
		index = l.poolFile.u16(head)
	case l.klassFile.ok():
		index, _ = vm.near.U16(holder + uint64(l.klassFile))
	}
	if index == 0 {
		return ""
	}
	var entry, sym fact
	name, err := vm.poolSymbol(p, index, &entry, &sym)
	if err != nil {
		return ""
	}
	return name
}
