package heap

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"goprof/profile"
	"goprof/vmstructs"
)

// madeUp returns readings of a heap, ten seconds apart. bytes returns the bytes of each class in the old generation at
// a reading.
func madeUp(n int, bytes func(i int) map[string]float64) (all []*profile.Heap) {
	for i := range n {
		h := &profile.Heap{At: time.Unix(int64(10*i), 0), Capacity: 1 << 30}
		used := 0.0
		for name, b := range bytes(i) {
			used += b
			a := profile.HeapAmount{Objects: b / 100, Bytes: b, BytesError: b / 1000}
			h.Classes = append(h.Classes, &profile.HeapClass{Name: name, HeapAmount: a,
				Parts: map[string]profile.HeapAmount{"old": a}})
		}
		h.Parts = []profile.HeapPart{{Name: "young", Used: 1 << 20}, {Name: "old", Used: uint64(used), Seen: uint64(used)}}
		all = append(all, h)
	}
	return all
}

// growthOf returns the growth over some readings.
func growthOf(readings []*profile.Heap) *profile.HeapGrowth {
	t := &Trend{}
	for _, h := range readings {
		t.Add(h)
	}
	return t.Growth()
}

// TestGrowth: a leak is named, with its rate and the time until the heap is full. A class that goes up and down is not
// named.
func TestGrowth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	noise := func(mean float64) float64 { return mean * (1 + (rnd.Float64()-0.5)/5) }
	all := madeUp(6, func(i int) map[string]float64 {
		return map[string]float64{"shop.Leak": 50e6 + 10e6*float64(i), "[B": noise(100e6), "java.lang.String": noise(30e6),
			"shop.Still": 40e6, "shop.Less": 40e6 - 1e6*float64(i)}
	})
	g := growthOf(all)
	if len(g.Classes) != 1 || g.Classes[0].Name != "shop.Leak" {
		t.Fatalf("%+v", g.Classes)
	}
	c := g.Classes[0]
	if math.Abs(c.Bytes.Rate-1e6) > c.Bytes.Error+1 || c.Bytes.Error > 1e5 || c.From != 50e6 || c.To != 100e6 ||
		math.Abs(c.Objects-1e4) > 1 {
		t.Errorf("%+v", c)
	}
	if g.Part != "old" || g.Readings != 6 || g.Over != 50*time.Second {
		t.Errorf("%+v", g)
	}
	if growthOf(all[:1]) != nil {
		t.Error("one reading says nothing of growth")
	}
	rising := func(i int) map[string]float64 { return map[string]float64{"a": 100e6 + 30e6*float64(i)} }
	if g := growthOf(madeUp(8, rising)); g.Full != 0 || g.Collected || len(g.Classes) != 1 {
		t.Errorf("what grew may be garbage: full in %v", g.Full)
	}
	g = growthOf(collected(madeUp(8, func(i int) map[string]float64 {
		all := rising(i)
		if i == 3 {
			all["garbage"] = 35e6
		}
		return all
	}), 4))
	if want := (float64(1<<30) - 310e6) / 3e6; !g.Collected || math.Abs(g.Full.Seconds()-want) > want/20 {
		t.Errorf("full in %v, not %.0f s", g.Full, want)
	}
	if g := growthOf(madeUp(2, rising)); g != nil {
		t.Errorf("two readings show growth: %+v", g)
	}
	unread := madeUp(4, rising)
	unread[0].Parts[1].Seen = 0
	if g := growthOf(unread); g.Readings != 3 {
		t.Errorf("%d readings, one of them without the old generation", g.Readings)
	}
}

// TestNoGrowth: in a thousand healthy programs, whose classes come and go, goprof reports nearly no growing class.
func TestNoGrowth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	named := 0
	for range 1000 {
		all := madeUp(6, func(i int) map[string]float64 {
			m := map[string]float64{}
			for _, name := range []string{"a", "b", "c", "d"} {
				m[name] = 10e6 * (1 + rnd.Float64())
			}
			return m
		})
		named += len(growthOf(all).Classes)
	}
	if named > 40 { // of 4,000
		t.Errorf("%d of 4000 classes are told to grow, and none does", named)
	}
}

// collected marks that a collection of the old generation happened before a reading.
func collected(readings []*profile.Heap, at int) []*profile.Heap {
	for i, h := range readings {
		n := uint64(7)
		if i >= at {
			n++
		}
		h.OldCollections = &n
	}
	return readings
}

// TestCollected: growth over a collection of the old generation is marked as such. A lower use at a reading is no proof
// of a collection: a humongous object may have been freed, or the sizes of regions differ.
func TestCollected(t *testing.T) {
	saw := []float64{50e6, 70e6, 90e6, 40e6, 60e6, 80e6}
	leak := func() []*profile.Heap {
		return madeUp(6, func(i int) map[string]float64 {
			return map[string]float64{"garbage": saw[i], "leak": 10e6 + 5e6*float64(i)}
		})
	}
	if g := growthOf(collected(leak(), 3)); !g.Collected || g.Uncounted || len(g.Classes) != 1 ||
		g.Classes[0].Name != "leak" {
		t.Errorf("%+v", g)
	}
	if g := growthOf(collected(leak(), 6)); g.Collected || g.Uncounted {
		t.Errorf("nothing was collected: %+v", g)
	}
	if g := growthOf(leak()); g.Collected || !g.Uncounted {
		t.Errorf("the JVM does not count its collections: %+v", g)
	}
}

// TestGrowthOfUnseen: a class that first samples miss, and a later sample finds, has not certainly grown. A reading of
// the whole heap misses nothing.
func TestGrowthOfUnseen(t *testing.T) {
	rare := func(unseen float64) []*profile.Heap {
		all := madeUp(6, func(i int) map[string]float64 {
			m := map[string]float64{"usual": 100e6}
			if i >= 1 {
				m["rare"] = 5e6 * float64(i)
			}
			return m
		})
		for _, h := range all {
			h.Parts[1].Unseen = unseen
			for _, c := range h.Classes {
				a := c.Parts["old"]
				a.Objects = a.Bytes / 1e6
				c.Parts["old"] = a
			}
		}
		return all
	}
	if g := growthOf(rare(0)); len(g.Classes) != 1 {
		t.Errorf("%+v", g.Classes)
	}
	if g := growthOf(rare(60)); len(g.Classes) != 0 {
		t.Errorf("a class that was missed is told as growth: %+v", g.Classes[0])
	}
}

// TestTrendIsSmall: many readings of many classes are not kept.
func TestTrendIsSmall(t *testing.T) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("com.shop.part%d.Class%d", i%100, i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tr := &Trend{}
	for n := range 30 { // a thousand readings need no more memory
		h := &profile.Heap{At: time.Unix(int64(n), 0), Parts: []profile.HeapPart{{Name: "old", Used: 1 << 30, Seen: 1 << 30}}}
		for i, name := range names {
			a := profile.HeapAmount{Objects: 1, Bytes: float64(100 * (i + n))}
			h.Classes = append(h.Classes, &profile.HeapClass{Name: name, HeapAmount: a,
				Parts: map[string]profile.HeapAmount{"old": a}})
		}
		tr.Add(h)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 20<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	if g := tr.Growth(); g.Readings != 30 {
		t.Errorf("%+v", g)
	}
}

// TestEstimate: if a sample has no bias, 95 of 100 estimates are within their errors. This also holds for a class that
// is in few pieces. If a collector has emptied pieces during the reading, the error covers what they may have
// contained.
func TestEstimate(t *testing.T) {
	for name, c := range map[string]struct {
		has         float64 // the share of the pieces that have the class
		least, most float64
	}{"everywhere": {1, 0.92, 0.98}, "rare": {0.05, 0.92, 1}} {
		rnd := rand.New(rand.NewPCG(7, 8))
		const units, drawn, rounds = 1000, 60, 2000
		var y, size [units]float64
		truth, used := 0.0, 0.0
		for i := range units {
			size[i] = 256 << 10
			if i%10 == 0 {
				size[i] = 100 << 10
			}
			if y[i] = size[i] * rnd.Float64() * 0.3; rnd.Float64() > c.has {
				y[i] = 0
			}
			truth, used = truth+y[i], used+size[i]
		}
		held, mean, met := 0.0, 0.0, 0.0
		var p partSums
		for range rounds {
			p = partSums{sampled: true, used: uint64(used)}
			var sum, sum2, cross float64
			for _, i := range rnd.Perm(units)[:drawn] {
				p.units++
				p.size, p.size2 = p.size+size[i], p.size2+size[i]*size[i]
				sum, sum2, cross = sum+y[i], sum2+y[i]*y[i], cross+y[i]*size[i]
			}
			amount, off := p.estimate(sum, sum2, cross)
			if mean += amount / rounds; amount > 0 {
				met++
			}
			if math.Abs(amount-truth) <= off {
				held++
			}
		}
		if held < met*c.least || held > met*c.most || math.Abs(mean-truth) > truth/30 {
			t.Errorf("%s: %.0f of %.0f intervals hold the truth; the mean is %g, the truth %g", name, held, met, mean, truth)
		}
		p.lost = p.units
		if amount, off := p.estimate(p.size, p.size, p.size); off < amount/2 {
			t.Errorf("%s: half of the pieces were lost, and the error is %g of %g", name, off, amount)
		}
	}
}

// TestLots: each piece is drawn once, and each group of neighbours has one draw in each round.
func TestLots(t *testing.T) {
	for pieces := range uint64(300) {
		areas := []*vmstructs.HeapArea{{Start: 0, Top: 96*unitSize - 8}, {Start: 1 << 40, Top: 1<<40 + pieces*unitSize}}
		draw, seen, groups := drawPieces(rand.New(rand.NewPCG(pieces, 0)), areas), map[uint64]bool{}, [96 / stratum]int{}
		for {
			a, from, to, ok := draw()
			if !ok {
				break
			}
			if seen[from] || from < a.Start || to > a.Top || from >= to {
				t.Fatalf("from %d to %d, again: %v", from, to, seen[from])
			}
			if seen[from] = true; a == areas[0] {
				groups[from/(stratum*unitSize)]++
			}
			if slices.Max(groups[:])-slices.Min(groups[:]) > 1 {
				t.Fatalf("of %d that were drawn of %d pieces, neighbours have %d", len(seen), pieces+96, groups)
			}
		}
		if len(seen) != int(pieces)+96 {
			t.Errorf("%d of %d pieces", len(seen), pieces+96)
		}
	}
}
