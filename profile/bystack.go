package profile

// ByStack remembers what a receiver of samples made of each stack, by Sample.StackNumber and by what else it depends on
// (context). It is a cache: it forgets what was met long ago, and its size is bounded.
type ByStack[V any] struct {
	slots []ofStack[V]
	used  int
}

type ofStack[V any] struct {
	number, context uint64 // number is 0 of an empty slot
	value           V
}

const (
	leastByStack = 1 << 10
	mostByStack  = 1 << 18
)

// place is where a stack is, if it is known. The numbers of most recordings follow each other, so they rarely meet in
// one place.
func (b *ByStack[V]) place(number, context uint64) *ofStack[V] {
	return &b.slots[(number+(context*0x9e3779b97f4a7c15)>>32)&uint64(len(b.slots)-1)]
}

// Get is what was remembered last of a stack. A stack without a number is never known.
func (b *ByStack[V]) Get(number, context uint64) (v V, known bool) {
	if number == 0 || len(b.slots) == 0 {
		return v, false
	}
	at := b.place(number, context)
	if at.number != number || at.context != context {
		return v, false
	}
	return at.value, true
}

// Put remembers something of a stack.
func (b *ByStack[V]) Put(number, context uint64, v V) {
	if number == 0 {
		return
	}
	if 2*b.used >= len(b.slots) && len(b.slots) < mostByStack {
		b.grow()
	}
	at := b.place(number, context)
	if at.number == 0 {
		b.used++
	}
	*at = ofStack[V]{number, context, v}
}

func (b *ByStack[V]) grow() {
	old := b.slots
	b.slots, b.used = make([]ofStack[V], max(2*len(old), leastByStack)), 0
	for i := range old {
		if old[i].number != 0 {
			b.used++
			*b.place(old[i].number, old[i].context) = old[i]
		}
	}
}
