package jfr

import (
	"maps"
	"slices"

	"goprof/profile"
)

// constants are the constants of a chunk. Stacks stay encoded until an event refers to them.
type constants struct {
	texts   map[string]map[uint64]string // of types that consist of one string, by the type's name
	symbols table[string]                // the texts of jdk.types.Symbol
	classes table[classRef]
	sources table[sourceRef] // by class, in goprof's files
	methods table[methodRef]
	threads map[uint64]*profile.Thread
	// pieces are the stacks. In goprof's files their keys are consecutive: the first inRow pieces have the keys from
	// firstKey on. stacks holds the indexes of the other pieces.
	pieces   []piece
	stacks   map[uint64]int32
	firstKey uint64
	inRow    uint64

	recentThreads [1 << 8]recentThread
	recentTexts   [1 << 4]recentText
	// wantStacks: some event with a stack is wanted. Otherwise stacks are skipped.
	wantStacks bool
	met        tally
	record     record
}

// A constant of two bytes takes some 100 bytes of memory. So a chunk may have only freeConstants constants, and one
// more for each bytesOfConstant bytes of its checkpoints. In files of profilers a constant has some 20 bytes.
const (
	freeConstants   = 1 << 17
	bytesOfConstant = 8
)

// tally bounds the constants of a chunk.
type tally struct{ constants, bytes int }

func (t *tally) add(constants int, c *cursor) {
	if t.constants += constants; t.constants > freeConstants+t.bytes/bytesOfConstant {
		c.fail("more constants than a chunk of its size may have")
		c.bad.TooMuch = true
	}
}

// piece is the constant of a stack: where its bytes are, its number (0: not known yet), and the stack if it was made.
type piece struct {
	of       *checkpoint
	from, to uint32
	number   uint64
	made     *profile.Stack
	turn     uint32 // of the space that the stack was made in
}

func (p *piece) bytes() []byte { return p.of.b[p.from:p.to] }

type checkpoint struct {
	b    []byte
	base int64
}

type classRef struct{ name uint64 }
type sourceRef struct{ file, build uint64 }
type methodRef struct{ class, name uint64 }

const stackTraceName = "jdk.types.StackTrace"

const symbolName = "jdk.types.Symbol"

const frameTypeName = "jdk.types.FrameType"

// begin empties the constants for the next chunk.
func (k *constants) begin() {
	*k = constants{
		texts:   make(map[string]map[uint64]string),
		symbols: k.symbols, classes: k.classes, sources: k.sources, methods: k.methods,
		threads: make(map[uint64]*profile.Thread),
		stacks:  make(map[uint64]int32),
		pieces:  k.pieces[:0],
	}
	k.symbols.begin()
	k.classes.begin()
	k.sources.begin()
	k.methods.begin()
}

// takeChanged reports whether, since its last call, a key of a method, or of a constant that methods refer to, may have
// got a new meaning.
func (k *constants) takeChanged() bool {
	changed := k.symbols.takeChanged()
	changed = k.classes.takeChanged() || changed
	changed = k.sources.takeChanged() || changed
	return k.methods.takeChanged() || changed
}

// eachConstant calls one for each constant of a checkpoint, with the cursor before the constant's key. c is after the
// checkpoint's size and type. Checkpoints are read from the last to the first: back is the distance to the previous
// one, or 0 at the first. If stacks are not wanted and come last, they are not even skipped.
func eachConstant(c *cursor, s *schema, stacks bool, met *tally,
	one func(c *cursor, class *class, of *checkpoint)) (back int64) {
	of := &checkpoint{c.b, c.base}
	met.bytes += len(c.b)
	c.int() // start
	c.int() // duration
	back = int64(c.int())
	c.byte() // kind
	for left := c.count(2); left > 0; left-- {
		id := int64(c.int())
		class := s.byID[id]
		if class == nil {
			c.fail("constants of type %d, which there is not", id)
			return back
		}
		if left == 1 && !stacks && class.name == stackTraceName {
			return back
		}
		n := c.count(1)
		met.add(n, c)
		for range n {
			if !c.step() {
				return back
			}
			one(c, class, of)
		}
		if c.bad != nil {
			return back
		}
	}
	return back
}

// one adds a constant. If a key has several values, the first one counts.
func (k *constants) one(c *cursor, class *class, of *checkpoint) {
	key := c.int()
	switch {
	case class.simple, class.name == "java.lang.String":
		k.text(c, class, key)
	case class.name == stackTraceName:
		from := c.at
		c.value(class, 0, nil)
		if k.wantStacks && c.bad == nil && k.piece(key) == nil {
			k.enter(key, piece{of: of, from: uint32(from), to: uint32(c.at)})
		}
	case constantSlots[class.name] != nil:
		k.record = record{frames: k.record.frames[:0]}
		c.value(class, 0, &k.record)
		if c.bad == nil {
			k.keep(class.name, key, &k.record)
		}
	default:
		c.value(class, 0, nil)
	}
}

// text adds a constant that is a text: a symbol, or a constant of another type with a text.
func (k *constants) text(c *cursor, class *class, key uint64) {
	if class.name == symbolName {
		if t := c.textLike(k.symbols.last(key), k.symbols.has(key)); c.bad == nil {
			k.symbols.keepFirst(key, t.s)
		}
		return
	}
	pool := k.texts[class.name]
	if pool == nil {
		pool = make(map[uint64]string)
		k.texts[class.name] = pool
	}
	_, known := pool[key]
	if t := c.text(known); !known && c.bad == nil {
		pool[key] = t.s
	}
}

func (k *constants) keep(class string, key uint64, r *record) {
	switch class {
	case "java.lang.Class":
		k.classes.keepFirst(key, classRef{r.numbers[slotName]})
	case "jdk.types.Method":
		k.methods.keepFirst(key, methodRef{r.numbers[slotType], r.numbers[slotName]})
	case "java.lang.Thread":
		keepFirst(k.threads, key, &profile.Thread{TID: int(int32(r.numbers[slotTID])), Name: r.texts[slotName].s,
			JavaID: int64(r.numbers[slotJavaID]), JavaName: r.texts[slotJavaName].s, Virtual: r.numbers[slotVirtual] != 0})
	}
}

// piece returns the stack of a key. It is nil if there is none.
func (k *constants) piece(key uint64) *piece {
	if n := key - k.firstKey; n < k.inRow {
		return &k.pieces[n]
	}
	if n, ok := k.stacks[key]; ok {
		return &k.pieces[n]
	}
	return nil
}

// enter adds a stack with a new key.
func (k *constants) enter(key uint64, p piece) {
	n := uint64(len(k.pieces))
	if n == 0 {
		k.firstKey = key
	}
	if n == k.inRow && key == k.firstKey+n {
		k.inRow++
	} else {
		k.stacks[key] = int32(n)
	}
	k.pieces = append(k.pieces, p)
}

// recentThread is an entry of the cache in front of the map of threads: each event has a thread.
type recentThread struct {
	key uint64
	t   *profile.Thread // nil in an empty entry
}

// thread returns the thread of a key. It is nil if there is none.
func (k *constants) thread(key uint64) *profile.Thread {
	at := &k.recentThreads[key%uint64(len(k.recentThreads))]
	if at.t == nil || at.key != key {
		*at = recentThread{key, k.threads[key]}
	}
	return at.t
}

// allThreads returns the threads of the chunk, sorted by key.
func (k *constants) allThreads() []profile.Thread {
	all := make([]profile.Thread, 0, len(k.threads))
	for _, key := range slices.Sorted(maps.Keys(k.threads)) {
		all = append(all, *k.threads[key])
	}
	return all
}

// recentText is an entry of the cache in front of the maps of texts.
type recentText struct {
	of   *class // nil in an empty entry
	key  uint64
	text string
}

func (k *constants) constant(of *class, key uint64) string {
	if of.name == symbolName {
		return k.symbols.get(key)
	}
	at := &k.recentTexts[key%uint64(len(k.recentTexts))]
	if at.of != of || at.key != key {
		*at = recentText{of, key, k.texts[of.name][key]}
	}
	return at.text
}

func keepFirst[V any](m map[uint64]V, key uint64, v V) {
	if _, known := m[key]; !known {
		m[key] = v
	}
}

func (k *constants) hasMethod(key uint64) bool {
	method := k.methods.get(key)
	return k.methods.has(key) && k.symbols.has(method.name) && k.classes.has(method.class) &&
		k.symbols.has(k.classes.get(method.class).name)
}

func (k *constants) resolve(t text) string {
	if t.pooled {
		return k.texts["java.lang.String"][t.key]
	}
	return t.s
}
