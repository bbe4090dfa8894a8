package jfr

import (
	"hash/maphash"
	"strings"
	"unsafe"

	"goprof/profile"
)

// pool is a constant pool of one chunk, in encoded form. Keys increase through all chunks of a file, and a constant
// that occurs again in a later chunk keeps its key. The JDK's reader needs that: it assumes that a key from the last
// chunk means the same constant (ChunkParser.fillConstantPools), and its views count two classes with two keys
// separately (Histogram.MethodEquality).
type pool struct {
	data  []byte
	count int
	last  uint64 // last used key
}

// open begins a new constant and returns its key. Append the constant's fields to data.
func (p *pool) open() uint64 {
	p.last++
	p.add(p.last)
	return p.last
}

func (p *pool) add(key uint64) {
	p.data = appendInt(p.data, key)
	p.count++
}

func (p *pool) reset() {
	p.data, p.count = p.data[:0], 0
}

// constant is a constant that keeps its key from chunk to chunk.
type constant struct {
	key   uint64
	chunk uint64 // the last chunk that contains it
}

type classKey struct {
	name   string // as in a Func, with dots
	source string
	build  string
}

type methodKey struct {
	fn   *profile.Func
	sort codeSort
}

// recentMethod is an entry of the cache in front of methodOf. The cache pays because a recording has tens of millions
// of frames.
type recentMethod struct {
	methodKey
	key   uint64
	chunk uint64 // 0 in an empty entry
}

const recentBits = 14

// place returns the index of a method in the cache.
func (k *methodKey) place() uint64 {
	return (uint64(uintptr(unsafe.Pointer(k.fn)))>>4 ^ uint64(k.sort)) * 0x9e3779b97f4a7c15 >> (64 - recentBits)
}

type methodText struct {
	fn   profile.Func
	sort codeSort
}

// codeSort is how a Func becomes a method of JFR: its name has a class, or it is a kind of code without classes.
type codeSort uint8

const (
	javaCode codeSort = iota
	nativeCode
	stubCode
	gapCode
	stateCode
	kernelCode
	truncation // not code: stands for the missing root of a stack
)

// sortClasses stand for the class of code without class and image.
var sortClasses = [...]string{stubCode: "stub", gapCode: "gap", stateCode: "state", kernelCode: "kernel",
	truncation: "truncated"}

func sortOf(k profile.Kind) codeSort {
	switch k {
	case profile.Stub:
		return stubCode
	case profile.Gap:
		return gapCode
	case profile.StateFrame:
		return stateCode
	case profile.Kernel:
		return kernelCode
	}
	if k.Java() {
		return javaCode
	}
	return nativeCode
}

// pools are the constants that the events of a chunk refer to.
type pools struct {
	symbols, classes, methods, stacks pool
	threads                           threads

	sources []byte // events with the sources of classes
	source  []byte // the current one
	now     int64  // ticks of the last event

	chunk    uint64 // number of the open chunk
	symbolOf map[string]*constant
	classOf  map[classKey]*constant
	methodOf map[methodKey]*constant  // by identity: a cache in front of methodBy
	methodBy map[methodText]*constant // different Funcs with the same contents are one method
	recent   [1 << recentBits]recentMethod

	stackOf    numberTable // keys of stacks by 128-bit hashes of their bytes
	seenOf     numberTable // keys of stacks by their frames: a cache in front of stackOf
	met        metStacks
	prints     profile.Fingerprinter // methodOf holds the Funcs
	stackSeeds [2]maphash.Seed
	scratch    []byte

	descriptor *constant // of all methods
}

// maxKept bounds the symbols and methods that are kept from chunk to chunk, of some 200 bytes each.
const maxKept = 1 << 16

// minIdentities is how many Funcs are always kept, beside twice as many as there are methods.
const minIdentities = 1 << 10

func newPools() *pools {
	p := &pools{
		threads:    newThreads(),
		prints:     profile.NewFingerprinter(),
		stackSeeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
	p.forget()
	return p
}

// forget drops everything that was kept from chunk to chunk. If a constant occurs again, it gets a new key.
func (p *pools) forget() {
	p.symbolOf = make(map[string]*constant)
	p.classOf = make(map[classKey]*constant)
	p.methodOf = make(map[methodKey]*constant)
	p.methodBy = make(map[methodText]*constant)
	clear(p.recent[:])
	p.descriptor = nil
	p.met.forget(p.methods.last + 1)
}

// reset empties the pools for the next chunk, but keeps their memory.
func (p *pools) reset() {
	for _, pool := range []*pool{&p.symbols, &p.classes, &p.methods, &p.stacks} {
		pool.reset()
	}
	p.chunk++
	p.sources = p.sources[:0]
	if max(len(p.symbolOf), len(p.methodOf)) > maxKept {
		p.forget()
	}
	if len(p.methodOf) > 2*len(p.methodBy)+minIdentities {
		clear(p.methodOf) // Funcs that were made again: the map still holds the old ones
		clear(p.recent[:])
	}
	p.threads.reset()
	p.stackOf.reset()
	p.seenOf.reset()
}

// size returns about how much memory a chunk's constants take. A map's entry counts as much as its key and value.
func (p *pools) size() int {
	data := len(p.sources) + len(p.symbols.data) + len(p.classes.data) + len(p.methods.data) + len(p.stacks.data)
	entries := p.symbols.count + p.classes.count + 2*p.methods.count + 2*len(p.threads.list)
	return data + 24*len(p.stackOf.slots) + 32*p.stacks.count + 64*entries
}

// markWritten notes that the chunk has the constant. It reports whether the chunk already had it.
func (p *pools) markWritten(c *constant) bool {
	if c.chunk == p.chunk {
		return true
	}
	c.chunk = p.chunk
	return false
}

// newConstant returns a constant with a new key, which is not in the chunk yet.
func (p *pool) newConstant() *constant {
	p.last++
	return &constant{key: p.last}
}

func (p *pools) symbol(text string) uint64 {
	var c *constant
	return p.symbolAgain(&c, text)
}

// symbolAgain is symbol for callers that keep the constant, so that it is looked up once.
func (p *pools) symbolAgain(at **constant, text string) uint64 {
	c := *at
	if c == nil {
		if c = p.symbolOf[text]; c == nil {
			c = p.symbols.newConstant()
			p.symbolOf[text] = c
		}
		*at = c
	}
	if !p.markWritten(c) {
		p.symbols.add(c.key)
		p.symbols.data = appendText(p.symbols.data, text)
	}
	return c.key
}

// classAgain is class for callers that keep the constant.
func (p *pools) classAgain(at **constant, of classKey) uint64 {
	if c := *at; c != nil && c.chunk == p.chunk {
		return c.key
	}
	key := p.class(of)
	*at = p.classOf[of]
	return key
}

// class returns the key of a class. If the chunk does not have the class yet, it writes the class.
func (p *pools) class(of classKey) uint64 {
	c, ok := p.classOf[of]
	if !ok {
		c = p.classes.newConstant()
		p.classOf[of] = c
	}
	if p.markWritten(c) {
		return c.key
	}
	symbol := p.symbol(strings.ReplaceAll(of.name, ".", "/"))
	if of.source != "" {
		file, build := p.symbol(of.source), uint64(0) // none
		if of.build != "" {
			build = p.symbol(of.build)
		}
		b := appendInt(p.source[:0], uint64(typeSource))
		b = appendInt(b, uint64(p.now))
		b = appendInt(appendInt(appendInt(b, c.key), file), build)
		p.source, p.sources = b, appendEvent(p.sources, b)
	}
	p.classes.add(c.key)
	b := appendInt(p.classes.data, 0) // class loader
	b = appendInt(b, symbol)
	p.classes.data = append(b, 0, 0, 0) // package, modifiers, hidden
	return c.key
}

// anyDescriptor stands for a signature: goprof's names have none. The JDK's printer expects parentheses.
const anyDescriptor = "()V"

func (p *pools) method(fn *profile.Func, sort codeSort) uint64 {
	k := methodKey{fn, sort}
	recent := &p.recent[k.place()]
	if recent.chunk == p.chunk && recent.methodKey == k {
		return recent.key
	}
	c := p.lookUp(k)
	*recent = recentMethod{k, c.key, p.chunk}
	if c.chunk != p.chunk {
		p.writeMethod(&p.met.methods[c.key-p.met.first])
	}
	return c.key
}

// writeMethod adds a method to a chunk that lacks it.
func (p *pools) writeMethod(m *metMethod) {
	m.at.chunk = p.chunk
	class, name, source := split(m.fn, m.sort)
	in := p.classAgain(&m.class, classKey{class, source, m.fn.Build})
	nameKey, descriptor := p.symbolAgain(&m.name, name), p.symbolAgain(&p.descriptor, anyDescriptor)
	p.methods.add(m.at.key)
	b := appendInt(p.methods.data, in)
	b = appendInt(b, nameKey)
	b = appendInt(b, descriptor)
	p.methods.data = append(b, 0, 0) // modifiers, hidden
}

func (p *pools) lookUp(k methodKey) *constant {
	c, ok := p.methodOf[k]
	if !ok {
		text := methodText{*k.fn, k.sort}
		if c, ok = p.methodBy[text]; !ok {
			c = p.methods.newConstant()
			p.methodBy[text] = c
			p.met.addMethod(k, c)
		}
		p.methodOf[k] = c
	}
	return c
}

// split returns the class and the method name of a function in JFR. The class of native code is its image's name up to
// ".so", because viewers only show the part of a class after the last dot.
func split(fn *profile.Func, sort codeSort) (class, name, source string) {
	switch {
	case sort == nativeCode && fn.Module != "":
		class, _, _ = cutImage(fn.Module)
		return class, fn.Name, fn.Module
	case sort != javaCode:
		return sortClasses[sort], fn.Name, fn.Module
	}
	if dot := strings.LastIndexByte(fn.Name, '.'); dot > 0 {
		return fn.Name[:dot], fn.Name[dot+1:], fn.File
	}
	return "", fn.Name, fn.File
}

func (p *pools) thread(t *profile.Thread) uint64 { return p.threads.key(t) }

// noStack is the key for no stack. JDK 21's views fail at an event with a stack without frames
// (jdk.jfr.internal.query.FieldBuilder, configureTopFrameField: List.getFirst).
const noStack = 0

// trace returns the constant of a sample's stack, and makes it if needed. A stack with a number from the recording that
// it was read from is found faster, without its frames.
func (p *pools) trace(s *profile.Sample) (trace, error) {
	if s.StackNumber == 0 {
		return trace{p.stack(s.Stack), leafOf(s.Stack)}, nil
	}
	t, met := p.again(s.StackNumber)
	if !met {
		if err := s.Read(); err != nil {
			return trace{}, err
		}
		t = trace{p.encode(s.Stack), leafOf(s.Stack)}
		p.met.keep(s.StackNumber, p.scratch, t, p.chunk)
	}
	return t, nil
}

func (p *pools) stack(s *profile.Stack) uint64 {
	if s == nil || len(s.Frames) == 0 && s.Truncated == profile.Whole {
		return noStack
	}
	seen := p.seenOf.find(p.prints.OfLines(s))
	if *seen == 0 {
		*seen = p.encode(s)
	}
	return *seen
}

// encode is stack without the cache seenOf. Two stacks are the same if their encoded frames have the same hash.
func (p *pools) encode(s *profile.Stack) uint64 {
	b := appendBool(p.scratch[:0], s.Truncated != profile.Whole)
	n := len(s.Frames)
	if s.Truncated != profile.Whole {
		n++
	}
	b = appendInt(b, uint64(n))
	for i := range s.Frames {
		b = p.frame(b, &s.Frames[i])
	}
	if s.Truncated != profile.Whole {
		b = appendInt(b, p.method(&truncations[min(s.Truncated, profile.Other)], truncation))
		b = append(b, 0, 0, byte(frameCPP)) // line, bytecode index
	}
	p.scratch = b
	return p.encoded(b)
}

// truncations are the frames that show why a stack's root is missing, as in collapsed files.
var truncations = func() (all [profile.NumReasons]profile.Func) {
	for r := range profile.NumReasons {
		all[r].Name = truncatedBy + r.String() + "]"
	}
	return all
}()

const truncatedBy = "[truncated: "

func (p *pools) frame(b []byte, f *profile.Frame) []byte {
	b = appendInt(b, p.method(f.Func, sortOf(f.Kind)))
	b = appendInt32(b, max(f.Line, 0))
	if f.Kind.Java() {
		b = appendInt32(b, f.BCI)
	} else {
		b = append(b, 0)
	}
	return append(b, byte(frameTypeOf(f.Kind)))
}

const firstSlots = 1 << 10

// encoded returns the key of the stack with the encoded form b.
func (p *pools) encoded(b []byte) uint64 {
	key := p.stackOf.find([2]uint64{maphash.Bytes(p.stackSeeds[0], b), maphash.Bytes(p.stackSeeds[1], b)})
	if *key == 0 {
		*key = p.stacks.open()
		p.stacks.data = append(p.stacks.data, b...)
	}
	return *key
}
