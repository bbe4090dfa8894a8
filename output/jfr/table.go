package jfr

import "slices"

// table holds a chunk's constants of one type by their keys. Small keys need no map. What the chunks before had is
// remembered: in most files a key means the same in all chunks.
type table[V any] struct {
	low   []constantOf[V] // by key
	rest  map[uint64]V
	chunk uint32
}

type constantOf[V any] struct {
	v     V
	chunk uint32 // the last one that had the key
}

// lowKeys bounds the keys that need no map.
const lowKeys = 1 << 17

// begin empties the table for the next chunk.
func (t *table[V]) begin() {
	t.chunk++
	clear(t.rest)
}

// get is the constant of a key; the zero value if there is none.
func (t *table[V]) get(key uint64) (v V) {
	if key < lowKeys {
		if key < uint64(len(t.low)) && t.low[key].chunk == t.chunk {
			v = t.low[key].v
		}
		return v
	}
	return t.rest[key]
}

// last is what the last chunk that had the key had.
func (t *table[V]) last(key uint64) (v V) {
	if key < uint64(len(t.low)) {
		v = t.low[key].v
	}
	return v
}

// has reports whether the chunk has the key.
func (t *table[V]) has(key uint64) bool {
	if key < lowKeys {
		return key < uint64(len(t.low)) && t.low[key].chunk == t.chunk
	}
	_, ok := t.rest[key]
	return ok
}

// keepFirst gives a key its constant, if it has none.
func (t *table[V]) keepFirst(key uint64, v V) {
	if t.has(key) {
		return
	}
	if key >= lowKeys {
		if t.rest == nil {
			t.rest = make(map[uint64]V)
		}
		t.rest[key] = v
		return
	}
	if n := int(key) + 1; n > len(t.low) {
		t.low = slices.Grow(t.low, n-len(t.low))[:n]
	}
	t.low[key] = constantOf[V]{v, t.chunk}
}
