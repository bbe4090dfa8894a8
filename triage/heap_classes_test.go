package triage

import (
	"slices"
	"testing"

	"goprof/profile"
)

// TestClassesText: the classes of the old generation are named, the largest first. Young garbage is not, nor are small
// ones.
func TestClassesText(t *testing.T) {
	class := func(name string, old, young float64) *profile.HeapClass {
		return &profile.HeapClass{Name: name, HeapAmount: profile.HeapAmount{Bytes: old + young},
			Parts: map[string]profile.HeapAmount{"old": {Bytes: old}, "young": {Bytes: young}}}
	}
	x := &exam{Evidence: &Evidence{Heap: &profile.Heap{
		Parts: []profile.HeapPart{{Name: "young", Used: 900 << 20}, {Name: "old", Used: 100 << 20}},
		Classes: []*profile.HeapClass{class("garbage", 0, 800<<20), class("a.Order", 20<<20, 0),
			class("byte[]", 60<<20, 0), class("small", 1<<20, 0)},
	}}}
	want := []string{"60 % of the old generation is byte[] (60 MiB)", "20 % of the old generation is a.Order (20 MiB)"}
	if got := x.classesText(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if x.Heap = nil; x.classesText() != nil {
		t.Error("what was not counted is told")
	}
}
