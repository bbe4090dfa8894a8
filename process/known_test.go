package process

import "testing"

func TestKnownCode(t *testing.T) {
	const begin, end = 0x7f0000000000, 0x7f0000000000 + 1<<20
	var k KnownCode
	k.Span(begin, end, begin+0x1000, begin+0x2000)
	for pc, want := range map[uint64]bool{
		0: false, begin - 1: false, begin: true, begin + 0xfff: true, begin + 0x1000: false, begin + 0x1fff: false,
		begin + 0x2000: true, end - 1: true, end: false, ^uint64(0): false,
	} {
		if k.IsNew(pc) != want {
			t.Errorf("%#x: new is %v", pc, !want)
		}
	}
	k.Add(begin + 0x2010)
	if k.IsNew(begin+0x203f) || !k.IsNew(begin+0x2040) || !k.IsNew(begin+0xfff) {
		t.Error("a place is 64 bytes")
	}
	k.Forget(begin + 0x2000)
	if !k.IsNew(begin + 0x203f) {
		t.Error("it was forgotten")
	}
	k.AddAll(begin+0x2040, begin+0x2101)
	for pc, want := range map[uint64]bool{
		begin + 0x203f: true, begin + 0x2040: false, begin + 0x213f: false, begin + 0x2140: true,
	} {
		if k.IsNew(pc) != want {
			t.Errorf("after AddAll, %#x: new is %v", pc, !want)
		}
	}
	k.Span(begin, end, 0, 0)
	if !k.IsNew(begin + 0x2100) {
		t.Error("Span begins anew")
	}
}

// TestKnownCodeIsBounded: no address and no span leads to an access outside of the table.
func TestKnownCodeIsBounded(t *testing.T) {
	var k KnownCode
	k.Span(0, ^uint64(0), 0, 0)
	for _, pc := range []uint64{0, knownPlaces<<knownShift - 1, knownPlaces << knownShift, 1 << 47, ^uint64(0)} {
		k.Add(pc)
		beyond := pc >= knownPlaces<<knownShift
		if k.IsNew(pc) != (beyond && pc != ^uint64(0)) {
			t.Errorf("%#x: new is %v", pc, k.IsNew(pc))
		}
		k.Forget(pc)
	}
	k.Span(0, 0, 0, 0)
	if k.IsNew(0) {
		t.Error("there is no code")
	}
}
