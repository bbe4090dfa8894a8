package profile

import "testing"

// TestByStack: the cached value is the last one for this stack in this context. Consecutive numbers are all known, up
// to the bound.
func TestByStack(t *testing.T) {
	var b ByStack[uint64]
	if _, known := b.Get(1, 0); known {
		t.Error("an empty one knows a stack")
	}
	b.Put(0, 0, 7)
	if _, known := b.Get(0, 0); known {
		t.Error("a stack without a number is known")
	}
	const stacks = 3 * mostByStack
	value := func(n, context uint64) uint64 { return n*31 + context }
	for n := uint64(1); n <= stacks; n++ {
		for context := range n % 3 {
			b.Put(n, context, value(n, context))
		}
		if v, known := b.Get(n, 0); n%3 > 0 && (!known || v != value(n, 0)) {
			t.Fatalf("%d: %d, %v", n, v, known)
		}
	}
	if len(b.slots) != mostByStack {
		t.Errorf("%d slots", len(b.slots))
	}
	known := 0
	for n := uint64(1); n <= stacks; n++ {
		for context := range uint64(3) {
			v, ok := b.Get(n, context)
			if ok && (context >= n%3 || v != value(n, context)) {
				t.Fatalf("%d in %d: %d", n, context, v)
			}
			if ok {
				known++
			}
		}
	}
	if known < mostByStack/2 {
		t.Errorf("%d stacks are known", known)
	}
	var dense ByStack[uint64]
	for n := uint64(1); n < mostByStack; n++ {
		dense.Put(n, 0, n)
	}
	for n := uint64(1); n < mostByStack; n++ {
		if v, ok := dense.Get(n, 0); !ok || v != n {
			t.Fatalf("%d of stacks that follow each other: %d, %v", n, v, ok)
		}
	}
}
