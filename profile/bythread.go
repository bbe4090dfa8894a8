package profile

// ByThread caches a value for each of the most recent threads. It is used in front of a map: a Thread has two names,
// and is expensive to hash.
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

func (b *ByThread[V]) Get(t *Thread) (v V, known bool) {
	if at := b.place(t); at.known && at.thread == *t {
		return at.value, true
	}
	return v, false
}

func (b *ByThread[V]) Put(t *Thread, v V) { *b.place(t) = ofThread[V]{*t, v, true} }

func (b *ByThread[V]) Clear() { clear(b.slots[:]) }
