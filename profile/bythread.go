package profile

// ByThread remembers something of each of the threads that were met lately: a cache before a map, whose key would be
// hashed for each sample with two names in it.
type ByThread[V any] struct {
	slots [1 << 7]ofThread[V]
}

type ofThread[V any] struct {
	thread Thread
	value  V
	known  bool
}

func (b *ByThread[V]) place(t *Thread) *ofThread[V] {
	return &b.slots[(uint64(t.TID)+uint64(t.JavaID)<<4)%uint64(len(b.slots))]
}

// Get is what was remembered of a thread.
func (b *ByThread[V]) Get(t *Thread) (v V, known bool) {
	if at := b.place(t); at.known && at.thread == *t {
		return at.value, true
	}
	return v, false
}

// Put remembers something of a thread.
func (b *ByThread[V]) Put(t *Thread, v V) { *b.place(t) = ofThread[V]{*t, v, true} }

// Clear forgets all threads.
func (b *ByThread[V]) Clear() { clear(b.slots[:]) }
