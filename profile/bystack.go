package profile

// ByStack remembers a value for each stack, by Sample.StackNumber and by a context on which the value depends, too. It
// is a cache of bounded size, and forgets old values.
type ByStack[V any] struct {
	slots []ofStack[V]
	put   int // since the last growth, with what was kept then
}

type ofStack[V any] struct {
	number, context uint64 // number is 0 of an empty slot
	value           V
}

const (
	leastByStack = 1 << 10
	mostByStack  = 1 << 18
)

func (s *ofStack[V]) is(number, context uint64) bool {
	return s.number == number && s.context == context
}

// places returns the two slots in which a stack may be. The low parts of numbers are consecutive in most recordings. So
// stacks without a context have first slots that lie side by side.
func (b *ByStack[V]) places(number, context uint64) (first, second *ofStack[V]) {
	most := uint64(len(b.slots) - 1)
	more := (context ^ number>>32) * 0x9e3779b97f4a7c15
	mixed := (number ^ more) * 0xd6e8feb86659fd93
	return &b.slots[(number+more>>32)&most], &b.slots[mixed>>32&most]
}

// Get returns the value of a stack. A stack without a number is never known.
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

// Put remembers the value of a stack that Get did not find.
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
