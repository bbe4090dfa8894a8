package jfr

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// rawConstants are a chunk's constants, not decoded.
type rawConstants struct {
	pools   map[int64]*rawPool
	symbols map[uint64]string
	strings map[uint64]string
	classes map[uint64]classRef
	met     tally
}

// rawPool is a pool, with its constants in the order of the file.
type rawPool struct {
	at   map[uint64]piece
	keys []uint64
}

func (r *redactor) readAll() *BadRecording {
	k := &rawConstants{pools: make(map[int64]*rawPool), symbols: make(map[uint64]string),
		strings: make(map[uint64]string), classes: make(map[uint64]classRef)}
	r.k = k
	return r.in.eachCheckpoint(func(c *cursor) int64 { return eachConstant(c, r.in.schema, true, &k.met, k.one) })
}

// one adds a constant. If a key occurs several times, its first constant counts.
func (k *rawConstants) one(c *cursor, class *class, of *checkpoint) {
	key := c.int()
	pool := k.pools[class.id]
	if pool == nil {
		pool = &rawPool{at: make(map[uint64]piece)}
		k.pools[class.id] = pool
	}
	from := c.at
	switch class.name {
	case "jdk.types.Symbol":
		keepFirst(k.symbols, key, c.text(false).s)
		return
	case "java.lang.String":
		keepFirst(k.strings, key, c.text(false).s)
		return
	case "java.lang.Class":
		rec := record{}
		c.value(class, 0, &rec)
		keepFirst(k.classes, key, classRef{rec.numbers[slotName]})
	default:
		c.value(class, 0, nil)
	}
	if _, known := pool.at[key]; !known && c.bad == nil {
		pool.at[key] = piece{of: of, from: uint32(from), to: uint32(c.at)}
		pool.keys = append(pool.keys, key)
	}
}

// constants writes the chunk's constants again as one checkpoint. The symbols come last, because the other constants
// decide which symbols are used.
func (r *redactor) constants() ([]byte, *BadRecording) {
	var lists [][]byte
	symbol := r.in.schema.byName["jdk.types.Symbol"]
	for _, id := range slices.Sorted(maps.Keys(r.k.pools)) {
		class, pool := r.in.schema.byID[id], r.k.pools[id]
		if len(pool.keys) == 0 || !r.kept.classes[id] || class.name == "java.lang.String" || class == symbol {
			continue
		}
		list := appendInt(appendInt(nil, uint64(id)), uint64(len(pool.keys)))
		for _, key := range pool.keys {
			var bad *BadRecording
			if list, bad = r.constant(list, class, key, pool.at[key]); bad != nil {
				return nil, bad
			}
		}
		lists = append(lists, list)
	}
	if symbol != nil && len(r.symbols.list) > 0 {
		lists = append(lists, r.symbols.pool(symbol.id))
	}
	b := appendInt(nil, uint64(typeCheckpoint))
	b = appendInt(b, uint64(r.in.head.startTicks))
	b = append(b, 0, 0, 0) // duration; no checkpoint before; kind
	b = appendInt(b, uint64(len(lists)))
	for _, list := range lists {
		b = append(b, list...)
	}
	return appendEvent(nil, b), nil
}

// constant appends a constant without names to b.
func (r *redactor) constant(b []byte, class *class, key uint64, at piece) ([]byte, *BadRecording) {
	b = appendInt(b, key)
	c := newCursor(at.of.b[at.from:at.to], at.of.base+int64(at.from))
	if _, primitive := forms[class.name]; primitive || r.plan(class).asItIs {
		return append(b, c.b...), nil
	}
	var in *around
	switch class.name {
	case "java.lang.Class":
		in = &around{source: r.sources[key]}
	case "jdk.types.Method":
		rec, peek := record{}, c
		peek.value(class, 0, &rec)
		of := rec.numbers[slotType]
		in = &around{class: r.nameOf(of), source: r.sources[of]}
	}
	b = r.value(&c, class, b, 0, in)
	return b, c.bad
}

func (r *redactor) nameOf(class uint64) string { return r.k.symbols[r.k.classes[class].name] }

// noteSource stores the file that a class comes from, and returns the facts about the file's name. In goprof's chunks,
// source events come before all others.
func (r *redactor) noteSource(of *class, c cursor) *around {
	rec := record{}
	c.value(of, 0, &rec)
	keepFirst(r.sources, rec.numbers[slotType], r.k.symbols[rec.numbers[slotSource]])
	return &around{class: r.nameOf(rec.numbers[slotType])}
}

// isImage reports whether a file is an image with native code, not a source file.
func isImage(name string) bool {
	return strings.HasPrefix(name, "/") || strings.HasPrefix(name, "[") || strings.Contains(name, ".so") ||
		name != "" && !strings.Contains(name, ".")
}

// cutImage returns an image's name as the classes in goprof's files have it. "[vdso]" loses its brackets: JMC reads
// them as an array's.
func cutImage(file string) (class, rest string, found bool) {
	return strings.Cut(strings.Trim(path.Base(file), "[]"), ".so")
}

func isSortClass(name string) bool { return name != "" && slices.Contains(sortClasses[:], name) }

// symbolTable gives keys to the new texts of symbols. A text keeps its key in all chunks, because readers assume that a
// key from the last chunk has the same text.
type symbolTable struct {
	keys map[string]uint64
	last uint64
	// Symbols of the open chunk.
	seen map[uint64]bool
	list []usedSymbol
}

type usedSymbol struct {
	key  uint64
	text string
}

func (t *symbolTable) beginChunk() {
	t.seen, t.list = make(map[uint64]bool), nil
	if len(t.keys) > maxSymbols {
		clear(t.keys) // a text that occurs again gets a new key
	}
}

// maxSymbols bounds the symbols that are kept from chunk to chunk.
const maxSymbols = 1 << 20

func (t *symbolTable) key(text string) uint64 {
	key, ok := t.keys[text]
	if !ok {
		t.last++
		key = t.last
		t.keys[text] = key
	}
	if !t.seen[key] {
		t.seen[key] = true
		t.list = append(t.list, usedSymbol{key, text})
	}
	return key
}

func (t *symbolTable) pool(id int64) []byte {
	b := appendInt(appendInt(nil, uint64(id)), uint64(len(t.list)))
	for _, s := range t.list {
		b = appendText(appendInt(b, s.key), s.text)
	}
	return b
}
