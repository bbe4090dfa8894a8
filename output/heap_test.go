package output

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"goprof/profile"
)

// someHeap has a class in the young part, one in the old part, and arrays in both.
func someHeap() *profile.Heap {
	amount := func(objects, bytes float64) profile.HeapAmount {
		return profile.HeapAmount{Objects: objects, Bytes: bytes}
	}
	arrays := &profile.HeapClass{Name: "byte[]", HeapAmount: amount(30, 3e6),
		Parts: map[string]profile.HeapAmount{"young": amount(20, 1e6), "old": amount(10, 2e6)},
		Lengths: []profile.HeapLengths{
			{From: 8, To: 15, HeapAmount: amount(20, 1e6), Parts: map[string]profile.HeapAmount{"young": amount(20, 1e6)}},
			{From: 128, To: 255, HeapAmount: amount(5, 5e5), Parts: map[string]profile.HeapAmount{"old": amount(5, 5e5)}},
			{From: 512, To: 1023, HeapAmount: amount(5, 15e5), Parts: map[string]profile.HeapAmount{"old": amount(5, 15e5)}},
		}}
	one := func(name, part string, a profile.HeapAmount) *profile.HeapClass {
		return &profile.HeapClass{Name: name, HeapAmount: a, Parts: map[string]profile.HeapAmount{part: a}}
	}
	return &profile.Heap{Collector: "Serial",
		Parts: []profile.HeapPart{{Name: "young", Used: 2e6, Seen: 2e6}, {Name: "old", Used: 3e6, Seen: 3e6}},
		Classes: []*profile.HeapClass{arrays, one("shop.Old", "old", amount(10, 9e5)),
			one("shop.Young", "young", amount(10, 8e5))},
		Largest: []*profile.HeapArray{{Class: "byte[]", Length: 70000, Bytes: 70016, Part: "young"}}}
}

// TestHeapOfOnePart: with one part, classes, arrays by length, the largest arrays and the JSON are of that part.
func TestHeapOfOnePart(t *testing.T) {
	var text, all, js strings.Builder
	if err := HeapText(&text, someHeap(), HeapShape{Area: "old", Top: 10}); err != nil {
		t.Fatal(err)
	}
	if err := HeapText(&all, someHeap(), HeapShape{Top: 10}); err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{"shop.Young", "length 8 to 15", "Largest arrays"} {
		if strings.Contains(text.String(), foreign) || !strings.Contains(all.String(), foreign) {
			t.Errorf("%q is of another part:\n%s", foreign, text.String())
		}
	}
	for _, own := range []string{"shop.Old", "length 128 to 255", "66.7 %", "young"} {
		if !strings.Contains(text.String(), own) {
			t.Errorf("%q is missing:\n%s", own, text.String())
		}
	}
	if err := HeapJSON(&js, someHeap(), nil, HeapShape{Area: "old", Top: 1}); err != nil {
		t.Fatal(err)
	}
	var h profile.Heap
	if err := json.Unmarshal([]byte(js.String()), &h); err != nil {
		t.Fatal(err)
	}
	if len(h.Classes) != 1 || h.Classes[0].Bytes != 2e6 || len(h.Parts) != 1 || len(h.Classes[0].Lengths) != 2 {
		t.Errorf("%s", js.String())
	}
}

// TestHeapOfASample: the text says what a sample does not show. A part that was collected during the reading is not
// "100 %" of anything. A class that is not named may still have objects.
func TestHeapOfASample(t *testing.T) {
	h := someHeap()
	h.Parts[0].Units, h.Parts[0].Moved = 12, true
	h.Parts[1].Units, h.Parts[1].Seen, h.Parts[1].Unseen = 3, 3e5, 29
	var text strings.Builder
	if err := HeapText(&text, h, HeapShape{Top: 10}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in 12 pieces; it was collected meanwhile", "10.0 % looked at, in 3 pieces drawn by lot",
		"may have up to 29 objects"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "100 %") {
		t.Errorf("all of it was looked at:\n%s", text.String())
	}
}

// TestHeapTree: the tree has all bytes of all classes, each under its part and its packages, and arrays by length.
func TestHeapTree(t *testing.T) {
	tree := HeapTree(someHeap())
	path := func(at int32) string {
		text := ""
		for ; at != 0; at = tree.Nodes[at].Parent {
			text = tree.Labels[tree.Nodes[at].Name].Text + ";" + text
		}
		return text
	}
	got := map[string]int64{}
	for i, n := range tree.Nodes {
		if n.Self > 0 {
			got[path(int32(i))] = n.Self
		}
	}
	want := map[string]int64{"young;byte[];length 8 to 15;": 1e6, "old;byte[];length 128 to 255;": 5e5,
		"old;byte[];length 512 to 1023;": 15e5, "old;shop;Old;": 9e5, "young;shop;Young;": 8e5}
	if !maps.Equal(got, want) || tree.Total != 4700000 {
		t.Errorf("%v, %d", got, tree.Total)
	}
}
