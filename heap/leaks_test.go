package heap

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"goprof/profile"
	"goprof/vmstructs"
)

// heldBy makes the holders of a class: a root with a share of its objects, and a share without a known holder.
func heldBy(class, root string, share, none float64) *profile.HeapHolders {
	field := profile.HeapLink{Kind: profile.LinkField, Class: "shop.Order", Field: "load"}
	h := &profile.HeapHolders{Class: class, Rows: []*profile.HeapHolder{{Share: share, Roots: 1,
		Path: []profile.HeapLink{field, {Kind: profile.LinkStatic, Class: "shop.Cache", Field: root}}}}}
	if none > 0 {
		h.Rows = append(h.Rows, &profile.HeapHolder{Share: none, Missing: profile.NoHolder})
	}
	return h
}

// TestFindLeaks: a class that grows and is held is a leak. A class that grows without a holder is garbage, unless a
// part of the heap was not searched and a collection has shown that it stays.
func TestFindLeaks(t *testing.T) {
	grower := func(class string, rate float64) *profile.HeapGrower {
		return &profile.HeapGrower{Name: class, To: 20 * rate, Bytes: profile.HeapSlope{Rate: rate, Error: rate / 10}}
	}
	some := func(class, root string, share, drawn float64) *profile.HeapHolders {
		h := heldBy(class, root, share, 1-share)
		h.Drawn = drawn
		return h
	}
	for _, row := range []struct {
		name           string
		holders        []*profile.HeapHolders
		searched       float64
		collected      bool
		root           string
		rate           float64
		classes, leaks int
	}{
		{"one root, two classes", []*profile.HeapHolders{heldBy("byte[]", "entries", 0.9, 0.1),
			heldBy("shop.Order", "entries", 1, 0)}, 1, true, "entries", 1000, 2, 1},
		{"the larger root comes first", []*profile.HeapHolders{heldBy("byte[]", "orders", 0.5, 0.5),
			heldBy("shop.Order", "entries", 1, 0)}, 1, true, "orders", 500, 1, 2},
		{"garbage", []*profile.HeapHolders{heldBy("byte[]", "entries", 0.001, 0.999),
			heldBy("shop.Order", "entries", 0, 1)}, 1, true, "", 0, 0, 0},
		{"a part was looked through", []*profile.HeapHolders{heldBy("byte[]", "entries", 0.1, 0.9)},
			0.1, true, "entries", 100, 1, 1},
		{"a part, and it was not collected", []*profile.HeapHolders{heldBy("byte[]", "entries", 0.01, 0.99)},
			0.1, false, "", 0, 0, 0},
		{"others of the class do not grow", []*profile.HeapHolders{some("byte[]", "entries", 0.8, 1)}, 1, true,
			"entries", 600, 1, 1},
		{"none of it need be what grows", []*profile.HeapHolders{some("byte[]", "entries", 0.4, 1)}, 1, true, "", 0, 0, 0},
		{"newer ones grow", []*profile.HeapHolders{some("byte[]", "entries", 0.4, 0.5)}, 1, true, "entries", 400, 1, 1},
	} {
		g := &profile.HeapGrowth{Collected: row.collected, Over: 10 * time.Second,
			Classes: []*profile.HeapGrower{grower("byte[]", 1000), grower("shop.Order", 100)}}
		h := &profile.HeapHeld{Holders: row.holders, Searched: row.searched}
		FindLeaks(h, g)
		if len(h.Leaks) != row.leaks {
			t.Errorf("%s: %d leaks", row.name, len(h.Leaks))
			continue
		}
		if row.leaks > 0 {
			l := h.Leaks[0]
			if root := l.Path[len(l.Path)-1].Field; root != row.root || len(l.Classes) != row.classes ||
				math.Abs(l.Bytes.Rate-row.rate) > 1 || l.AtLeast != (row.searched < 1 || row.rate == 600) {
				t.Errorf("%s: %+v", row.name, l)
			}
		}
	}
}

// TestCutRows: if there are many ways, the largest have rows. Objects that are not held, or whose holders are not
// known, always have a row. No share is lost.
func TestCutRows(t *testing.T) {
	const ways = shownWays + 50
	s := &sample{whole: true}
	link := profile.HeapLink{Kind: profile.LinkStatic, Class: "shop.Cache"}
	for i := range ways {
		link.Field = strconv.Itoa(i)
		links := []profile.HeapLink{link}
		s.list = append(s.list, drawn{bytes: float64(1000 + i), way: way{links: links}},
			drawn{bytes: 100, way: way{links: links, lacks: profile.HolderFar}})
	}
	s.list = append(s.list, drawn{bytes: 3, way: way{lacks: profile.NoHolder}},
		drawn{bytes: 2, way: way{lacks: profile.HolderUncertain}})
	h, _ := (&climb{}).result(s)
	rows, sum := map[string]int{}, h.Rest
	for _, row := range h.Rows {
		rows[row.Missing]++
		sum += row.Share
	}
	want := map[string]int{"": shownWays, profile.HolderFar: shownWays, profile.NoHolder: 1, profile.HolderUncertain: 1}
	if !maps.Equal(rows, want) || math.Abs(sum-1) > 1e-9 || h.Rows[0].Path[0].Field != strconv.Itoa(ways-1) {
		t.Errorf("%v, %v, rest %v", rows, sum, h.Rest)
	}
}

// TestDrawing: the chance of an object is in proportion to its bytes, however often the walk finds it. The sum that the
// drawn objects stand for is right.
func TestDrawing(t *testing.T) {
	const rounds = 40
	large, all := 0.0, 0.0
	for round := range uint64(rounds) {
		d := &drawing{want: []string{"byte[]"}, seed: round, of: make([][drawnGroups]lottery, 1)}
		class := &vmstructs.ObjectClass{Klass: 8, Name: "byte[]", Sum: 1}
		for i := range uint64(30_000) { // a fifth of the bytes is in 60 large objects
			o := &vmstructs.Object{Addr: 16 * (i + 1), Class: class, Bytes: 100}
			if i%500 == 0 {
				o.Bytes = 12_500
			}
			d.met(o, vmstructs.OldPart, 0)
			if i%3 == 0 {
				d.met(o, vmstructs.OldPart, 0)
			}
		}
		s := d.sample(0)
		if len(s.list) != drawnObjects || s.newer {
			t.Fatalf("%d objects are drawn", len(s.list))
		}
		for _, o := range s.list {
			weight := max(o.bytes, s.least)
			if all += weight; o.bytes > 100 {
				large += weight
			}
		}
	}
	if large, all = large/rounds, all/rounds; math.Abs(large-750_000) > 1 || math.Abs(all/3_744_000-1) > 0.02 {
		t.Errorf("they stand for %.0f and %.0f bytes", large, all)
	}
}

// TestNewer: if there are enough objects outside of the known spans, only those are drawn.
func TestNewer(t *testing.T) {
	d := &drawing{want: []string{"a"}, known: []Span{{1000, 2000}, {4000, 5000}}, seed: 1,
		of: make([][drawnGroups]lottery, 1)}
	class := &vmstructs.ObjectClass{Klass: 8, Name: "a", Sum: 1}
	for addr := uint64(800); addr < 6000; addr += 8 {
		d.met(&vmstructs.Object{Addr: addr, Class: class, Bytes: 8}, vmstructs.OldPart, 0)
	}
	s := d.sample(0)
	for _, o := range s.list {
		if o.addr >= 1000 && o.addr < 2000 || o.addr >= 4000 && o.addr < 5000 {
			t.Errorf("%d was known", o.addr)
		}
	}
	if !s.newer || len(s.list) != 400 || d.leftOut(0) != 0 {
		t.Errorf("%d objects, newer: %v, %f left out", len(s.list), s.newer, d.leftOut(0))
	}
	for addr := uint64(8000); addr < 8000+8*650/4; addr += 8 {
		d.met(&vmstructs.Object{Addr: addr, Class: class, Bytes: 8}, vmstructs.YoungPart, 0)
	}
	if s := d.sample(0); len(s.list) != 400 || math.Abs(d.leftOut(0)-0.2) > 0.001 { // 163 newer ones beside 650 older ones
		t.Errorf("%d objects, %f left out", len(s.list), d.leftOut(0))
	}
}

// TestAddAllocs: a leak's classes get their stacks, the most frequent first, without the frame of the class.
func TestAddAllocs(t *testing.T) {
	p := profile.New()
	p.Meta.Weight = profile.Bytes
	add := func(bytes int64, leaf string, methods ...string) {
		s := &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: leaf}, Kind: profile.Gap}}}
		for _, m := range methods {
			s.Frames = append(s.Frames, profile.Frame{Func: &profile.Func{Name: m}, Kind: profile.Interpreted})
		}
		p.AddAt("", s, 1, time.Duration(bytes))
	}
	add(300, "byte[]", "shop.Order.<init>", "shop.Cache.put")
	add(600, "byte[]", "shop.Page.write", "shop.Main.main")
	add(900, "long[]", "shop.Other.go")
	h := &profile.HeapHeld{Leaks: []*profile.HeapLeak{{Classes: []string{"byte[]"}}}}
	AddAllocs(h, p)
	got := h.Leaks[0].Allocs
	if len(got) != 2 || got[0].Bytes != 600 || math.Abs(got[0].Share-2.0/3) > 1e-9 ||
		!slices.Equal(got[1].Stack, []string{"shop.Order.<init>", "shop.Cache.put"}) {
		t.Errorf("%+v", got)
	}
}
