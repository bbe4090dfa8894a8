package profile

// ByStack caches a value for each stack, by Sample.StackNumber and by a context that the value also depends on. It is
// bounded, and drops old values.
type ByStack[V any] struct {
	slots []ofStack[V]
	put   int // entries since the last growth, including those kept then
}

type ofStack[V any] struct {
	number, context uint64 // number is 0 in an empty slot
	value           V
}

const (
	leastByStack = 1 << 10
	mostByStack  = 1 << 18
)

func (s *ofStack[V]) is(number, context uint64) bool {
	return s.number == number && s.context == context
}

// places returns the two slots in which a stack may be. In most recordings, the low parts of numbers are consecutive.
// So stacks without a context have neighbouring first slots.
func (b *ByStack[V]) places(number, context uint64) (first, second *ofStack[V]) {
	most := uint64(len(b.slots) - 1)
	more := (context ^ number>>32) * 0x9e3779b97f4a7c15
	mixed := (number ^ more) * 0xd6e8feb86659fd93
	return &b.slots[(number+more>>32)&most], &b.slots[mixed>>32&most]
}

// Get returns the value of a stack. known is always false for a stack without a number.
func (b *ByStack[V]) Get(number, context uint64) (v V, known bool) {
	if number == 0 || len(b.slots) == 0 {
		return v, false
	}
	first, second := b.places(number, context)
	if first.is(number, context) {
		return first.value, true
	}
	if second.is(number, context) {
		return second.value, true
	}
	return v, false
}

// Put stores the value of a stack that Get did not find.
func (b *ByStack[V]) Put(number, context uint64, v V) {
	if number == 0 {
		return
	}
	if 2*b.put >= len(b.slots) && len(b.slots) < mostByStack {
		b.grow()
	}
	b.enter(&ofStack[V]{number, context, v})
}

func (b *ByStack[V]) enter(s *ofStack[V]) {
	at, second := b.places(s.number, s.context)
	if at.number != 0 {
		at = second
	}
	b.put++
	*at = *s
}

func (b *ByStack[V]) grow() {
	old := b.slots
	b.slots, b.put = make([]ofStack[V], max(2*len(old), leastByStack)), 0
	for i := range old {
		if old[i].number != 0 {
			b.enter(&old[i])
		}
	}
}
