package jfr

import "slices"

// table holds a chunk's constants of one type by key. Small keys need no map. A table remembers the keys of earlier
// chunks: in most files a key has the same meaning in all chunks.
type table[V comparable] struct {
	low   []constantOf[V] // by key
	rest  map[uint64]constantOf[V]
	chunk uint32
	// changed: a key may mean something else than in an earlier chunk.
	changed bool
}

type constantOf[V any] struct {
	v     V
	chunk uint32 // the last chunk with the key; 0 if there was none
}

const (
	lowKeys = 1 << 17 // bounds the keys that need no map
	maxRest = 1 << 17 // bounds the other keys that are remembered from chunk to chunk
)

// begin empties the table for the next chunk.
func (t *table[V]) begin() {
	t.chunk++
	if len(t.rest) > maxRest {
		t.rest, t.changed = nil, true
	}
}

// find returns the newest constant of a key. Its chunk is 0 if no chunk had the key.
func (t *table[V]) find(key uint64) (c constantOf[V]) {
	switch {
	case key >= lowKeys:
		c = t.rest[key]
	case key < uint64(len(t.low)):
		c = t.low[key]
	}
	return c
}

// get returns the constant of a key in this chunk. It is the zero value if there is none.
func (t *table[V]) get(key uint64) (v V) {
	if c := t.find(key); c.chunk == t.chunk {
		v = c.v
	}
	return v
}

// last returns the newest constant of a key, possibly from an earlier chunk.
func (t *table[V]) last(key uint64) V { return t.find(key).v }

func (t *table[V]) has(key uint64) bool { return t.find(key).chunk == t.chunk }

// keepFirst sets the constant of a key, if it has none.
func (t *table[V]) keepFirst(key uint64, v V) {
	last := t.find(key)
	if last.chunk == t.chunk {
		return
	}
	t.changed = t.changed || last.chunk != 0 && last.v != v
	if key >= lowKeys {
		if t.rest == nil {
			t.rest = make(map[uint64]constantOf[V])
		}
		t.rest[key] = constantOf[V]{v, t.chunk}
		return
	}
	if n := int(key) + 1; n > len(t.low) {
		t.low = slices.Grow(t.low, n-len(t.low))[:n]
	}
	t.low[key] = constantOf[V]{v, t.chunk}
}

// takeChanged reports whether a key may have got another meaning since the last call of takeChanged.
func (t *table[V]) takeChanged() bool {
	changed := t.changed
	t.changed = false
	return changed
}
