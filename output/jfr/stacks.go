package jfr

import (
	"cmp"
	"strings"

	"goprof/profile"
)

const (
	maxFuncs      = 1 << 18 // kept at the same time
	maxFrames     = 1 << 16 // of one stack
	maxMadeFrames = 1 << 28 // of a chunk's stacks, counted each time a stack is made
	// maxCachedFrames bounds the frames of a stackSpace, of 40 bytes each. A stack counts as one more frame. With stacks
	// of 20 frames they take some 21 MB.
	maxCachedFrames = 1 << 19
)

// stackMaker makes profile.Stacks from a chunk's constants.
type stackMaker struct {
	k      *constants
	schema *schema
	// kernelKnown: the file has the frame types Kernel and Native. So async-profiler wrote it, and Native is C code. In
	// the JDK's files, Native is a native Java method.
	kernelKnown bool
	ours        bool // goprof wrote the chunk

	// Facts of the whole file: stacks and functions keep their numbers from chunk to chunk.
	funcs   map[funcText]*profile.Func
	known   table[knownFunc] // by method: a cache in front of funcs
	numbers stackNumbers

	code   map[codeKey]code        // of the chunk
	recent [recentCodes]recentCode // of the chunk, by a part of their keys that is practically random
	space  stackSpace              // for kept stacks
	turn   uint32                  // how often the space was emptied
	all    int                     // number of frames made in this chunk
	frames *class                  // the class of the frames of stacks, if it is as in all known files
	kept   callers
	record record
	starts []uint32 // of the current stack: see keptStack
}

// stackSpace is room for stacks, which are forgotten all together. A recording has tens of millions of frames:
// allocating each would be most of the cost of reading.
type stackSpace struct {
	stacks slabs[profile.Stack]
	frames slabs[profile.Frame]
	kept   int // number of frames
}

type codeKey struct{ method, kind uint64 }

// recentCode is an entry of the cache in front of the map. Most frames of a stack are also in other stacks.
type recentCode struct {
	key codeKey
	code
}

const recentCodes = 1 << 15

// recentPlace returns the index of a frame's code in the cache. The methods of a frame type have neighbouring indexes:
// the most frequent methods mostly have the smallest keys.
func recentPlace(raw *rawFrame) uint64 { return (raw.method + raw.kind*recentCodes/8*3) % recentCodes }

// code is what all frames with a codeKey have in common.
type code struct {
	fn   *profile.Func
	sort codeSort
	kind profile.Kind
	why  profile.Reason // for a truncation
	// known is false in an empty entry of the cache.
	known bool
}

func (m *stackMaker) begin(k *constants, s *schema) {
	changed := k.takeChanged()
	m.numbers.begin(changed || m.schema != s, k.texts[frameTypeName])
	m.k, m.schema = k, s
	m.code = make(map[codeKey]code)
	m.known.begin()
	clear(m.recent[:])
	m.forget()
	m.kept.clear()
	m.frames = s.plainFrames()
	m.all = 0
	if m.funcs == nil || max(len(m.funcs), m.numbers.byFrames.used) > maxFuncs {
		m.funcs = make(map[funcText]*profile.Func)
		m.numbers.forgetFrames()
	}
	m.ours = s.byName["goprof.Recording"] != nil
	m.kernelKnown = false
	for _, name := range k.texts[frameTypeName] {
		m.kernelKnown = m.kernelKnown || name == "Kernel"
	}
}

func (m *stackMaker) forget() {
	m.turn++
	m.space.reset()
}

// stack returns the stack of a key, if there is one. The stack is valid until the next call. The same key mostly gives
// the same pointer.
func (m *stackMaker) stack(key uint64) (*profile.Stack, *BadRecording) {
	at := m.k.piece(key)
	if at == nil {
		return nil, nil
	}
	if at.turn == m.turn {
		return at.made, nil
	}
	var c cursor
	c.open(at.bytes(), at.of.base+int64(at.from))
	s := m.read(&c)
	if c.bad != nil {
		return nil, c.bad
	}
	at.made, at.turn = s, m.turn
	return s, nil
}

// read reads a stack. It returns nil after an error.
func (m *stackMaker) read(c *cursor) *profile.Stack {
	m.record.frames, m.starts = m.record.frames[:0], m.starts[:0]
	cut, n := m.head(c)
	if m.all += n; m.all > maxMadeFrames {
		c.fail("stacks that are read again too often")
		c.bad.TooMuch = true
	}
	if c.bad != nil {
		return nil
	}
	if m.space.kept+n > maxCachedFrames {
		m.forget()
	}
	s := m.space.stack(n)
	if cut {
		s.Truncated = profile.TooDeep // the JDK's only reason
	}
	if m.frames == nil {
		m.fill(s, m.record.frames)
		return s
	}
	b := c.b[c.at:]
	kept, same := m.kept.find(b, m.turn)
	shared := m.decode(c, n, kept, same)
	if c.bad != nil {
		return nil
	}
	hidden, atRoot := m.fill(s, m.record.frames)
	if shared > 0 {
		s.Frames = append(s.Frames, kept.stack.Frames[len(kept.starts)-shared:]...)
		if kept.hidden > 0 {
			s.Truncated = kept.stack.Truncated
		}
	}
	switch {
	case hidden == 0 && shared > 0:
		m.kept.keep(b, m.starts, s, kept.hidden, m.turn)
	case hidden == 0 || hidden == 1 && atRoot && shared == 0:
		m.kept.keep(b, m.starts, s, hidden, m.turn)
	}
	return s
}

// head reads a stack's beginning: whether it is cut, and how many frames it has. If frames have another form than in
// all known files, head reads them, too.
func (m *stackMaker) head(c *cursor) (cut bool, frames int) {
	if m.frames == nil {
		m.record.numbers[slotTruncated] = 0
		c.value(m.schema.byName[stackTraceName], 0, &m.record)
		return m.record.numbers[slotTruncated] != 0, len(m.record.frames)
	}
	cut = c.byte() != 0
	if frames = c.count(1); frames > maxFrames {
		c.tooManyFrames()
	}
	return cut, frames
}

// plainFrames returns the class of a stack's frames if the stack is written as in all known files: a byte, and frames
// of integers.
func (s *schema) plainFrames() *class {
	of := s.byName[stackTraceName]
	if of == nil || len(of.fields) != 2 {
		return nil
	}
	cut, frames := &of.fields[0], &of.fields[1]
	if cut.slot != slotTruncated || cut.form != formByte || cut.array || frames.slot != slotFrames || !frames.array ||
		frames.form != formStruct || frames.class == nil || !frames.class.flat {
		return nil
	}
	return frames.class
}

// stack returns an empty stack with room for frames.
func (p *stackSpace) stack(frames int) *profile.Stack {
	p.kept += frames + 1
	s := &p.stacks.take(1)[0]
	*s = profile.Stack{Frames: p.frames.take(frames)[:0]}
	return s
}

func (p *stackSpace) reset() {
	p.stacks.reset()
	p.frames.reset()
	p.kept = 0
}

// slabs allocates slices that are all freed together.
type slabs[T any] struct {
	all  [][]T
	at   int // index of the slab that slices are cut from
	used int // used part of that slab
	size int // total size
}

const slabSize = 1 << 12

func (s *slabs[T]) take(n int) []T {
	for s.at < len(s.all) && n > len(s.all[s.at])-s.used {
		s.at, s.used = s.at+1, 0
	}
	if s.at == len(s.all) {
		s.all = append(s.all, make([]T, max(n, slabSize)))
		s.size += len(s.all[s.at])
	}
	from := s.used
	s.used += n
	return s.all[s.at][from:s.used:s.used]
}

// reset takes back all slices. It drops all slabs if too much of them was unused, because their ends were too short for
// the next slice.
func (s *slabs[T]) reset() {
	if s.size > 2*maxCachedFrames {
		s.all, s.size = nil, 0
	}
	s.at, s.used = 0, 0
}

// fill makes the frames of a stack, which has room for them. hidden is how many of raws are left out because they only
// show why the stack is cut. atRoot: the last of raws is such a frame.
func (m *stackMaker) fill(s *profile.Stack, raws []rawFrame) (hidden int, atRoot bool) {
	frames, n := s.Frames[:cap(s.Frames)], 0
	for i := range raws {
		raw := &raws[i]
		of := &m.recent[recentPlace(raw)]
		if of.key != (codeKey{raw.method, raw.kind}) || !of.known {
			m.lookUp(of, raw)
		}
		if of.sort == truncation {
			s.Truncated, atRoot = of.why, i == len(raws)-1
			continue
		}
		f := &frames[n]
		*f = profile.Frame{} // each field is set in place: see cursor.open
		f.Func, f.Kind, f.BCI = of.fn, of.kind, -1
		if of.kind.Java() {
			f.Line, f.BCI = max(raw.line, 0), max(raw.bci, -1)
		}
		n++
	}
	s.Frames = frames[:n]
	return len(raws) - n, atRoot
}

// lookUp finds the code of a frame. All frames with the same method and type have the same code.
func (m *stackMaker) lookUp(into *recentCode, raw *rawFrame) {
	into.key = codeKey{raw.method, raw.kind}
	if c, ok := m.code[into.key]; ok {
		into.code = c
		return
	}
	c := code{known: true}
	c.sort, c.kind = m.sort(raw)
	if c.sort == truncation {
		c.why = m.reason(raw.method)
	} else {
		c.fn = m.function(raw.method, c.sort)
	}
	if len(m.code) >= maxFuncs {
		clear(m.code)
	}
	m.code[into.key], into.code = c, c
}

// sort returns the kind of a frame's code, by its type and, in goprof's files, by its class.
func (m *stackMaker) sort(raw *rawFrame) (codeSort, profile.Kind) {
	switch m.k.texts[frameTypeName][raw.kind] {
	case "Interpreted":
		return javaCode, profile.Interpreted
	case "C1 compiled":
		return javaCode, profile.C1
	case "Inlined":
		return javaCode, profile.Inlined
	case "Native":
		if !m.kernelKnown {
			return javaCode, profile.NativeMethod
		}
	case "Kernel":
		return nativeCode, profile.Kernel
	case "C++":
	default: // "JIT compiled"; a new name is Java's, too
		return javaCode, profile.C2
	}
	if m.ours {
		class := m.k.symbols.get(m.k.classes.get(m.k.methods.get(raw.method).class).name)
		switch class {
		case sortClasses[stubCode]:
			return stubCode, profile.Stub
		case sortClasses[gapCode]:
			return gapCode, profile.Gap
		case sortClasses[stateCode]:
			return stateCode, profile.StateFrame
		case sortClasses[kernelCode]:
			return kernelCode, profile.Kernel
		case sortClasses[truncation]:
			return truncation, profile.Gap
		}
	}
	return nativeCode, profile.Native
}

func (m *stackMaker) reason(method uint64) profile.Reason {
	name := m.k.symbols.get(m.k.methods.get(method).name)
	for r := range profile.NumReasons {
		if truncations[r].Name == name {
			return r
		}
	}
	return profile.Other
}

type funcText struct {
	class, name, source string
	build               string // for native code
	java                bool
}

// function returns a method's Func. A method has one Func in the whole file.
func (m *stackMaker) function(key uint64, sort codeSort) *profile.Func {
	method := m.k.methods.get(key)
	from := m.k.sources.get(method.class)
	text := funcText{name: m.k.symbols.get(method.name), source: m.k.symbols.get(from.file), java: sort == javaCode}
	if text.java {
		text.class = m.k.symbols.get(m.k.classes.get(method.class).name)
	} else {
		text.build = m.k.symbols.get(from.build)
	}
	if last := m.known.last(key); last.text == text && last.fn != nil {
		return last.fn
	}
	fn := m.funcs[text]
	if fn == nil {
		fn = text.function()
		m.funcs[text] = fn
	}
	m.known.keepFirst(key, knownFunc{text, fn})
	return fn
}

type knownFunc struct {
	text funcText
	fn   *profile.Func
}

func (t *funcText) function() *profile.Func {
	name := cmp.Or(t.name, "[unknown]")
	if !t.java {
		return &profile.Func{Name: name, Module: t.source, Build: t.build}
	}
	if of := className(t.class); of != "" {
		name = of + "." + name
	}
	return &profile.Func{Name: name, File: t.source}
}

// className returns a class's name in Java's spelling: java.lang.String, int[][].
func className(symbol string) string {
	if symbol == unknownClass {
		return profile.UnknownClass
	}
	dimensions := 0
	for dimensions < len(symbol) && symbol[dimensions] == '[' {
		dimensions++
	}
	name := symbol[dimensions:]
	if dimensions > 0 {
		if p, ok := primitives[name]; ok {
			name = p
		} else if rest, ok := strings.CutPrefix(name, "L"); ok {
			name = strings.TrimSuffix(rest, ";")
		} else { // "[unknown class]", from older versions of goprof, is not an array
			name, dimensions = symbol, 0
		}
	}
	return strings.ReplaceAll(name, "/", ".") + strings.Repeat("[]", min(dimensions, 255))
}

var primitives = map[string]string{
	"Z": "boolean", "B": "byte", "C": "char", "S": "short", "I": "int", "J": "long", "F": "float", "D": "double",
}
