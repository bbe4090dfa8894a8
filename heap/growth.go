package heap

import (
	"cmp"
	"math"
	"slices"
	"time"

	"goprof/profile"
)

const (
	// A class's growth is shown from leastGrowth (a share of the used heap) and leastBytes on.
	leastGrowth, leastBytes = 0.0005, 16 << 10
)

// Trend finds classes that grow, from several readings of one heap. It compares objects of the old generation, or of a
// heap without generations. It keeps sums for each class, not the readings.
type Trend struct {
	first, last *profile.Heap
	times       sums2 // over all readings
	used        line
	classes     map[classKey]*line
	text        int     // bytes of their names
	unseen      float64 // the most objects of a class that a reading may have missed
}

// classKey distinguishes classes. Two classes with one name and one loader count as one.
type classKey struct{ name, loader string }

// tenured are the parts for objects that are not young. A heap has either "old" or "heap".
var tenured = [...]string{"old", "heap", "humongous"}

// Add adds a reading, which must be newer than the previous one. A reading that had no time for the old generation does
// not count.
func (t *Trend) Add(h *profile.Heap) {
	if unreadOld(h) {
		return
	}
	if t.first == nil {
		t.first, t.classes = h, map[classKey]*line{}
	}
	t.last = h
	at, used := h.At.Sub(t.first.At).Seconds(), 0.0
	t.times.add(at, 1)
	n := int(t.times.n)
	for _, name := range tenured {
		if p := h.Part(name); p != nil {
			used += float64(p.Used)
			t.unseen = max(t.unseen, p.Unseen)
		}
	}
	t.used.add(n, at, profile.HeapAmount{Bytes: used})
	for key, a := range inTenured(h) {
		l := t.classes[key]
		if l == nil {
			if len(t.classes) >= maxClasses || t.text+len(key.name) > maxText {
				continue
			}
			l = &line{}
			t.classes[key] = l
			t.text += len(key.name)
		}
		l.add(n, at, a)
	}
}

// inTenured returns what each class has in the tenured parts.
func inTenured(h *profile.Heap) map[classKey]profile.HeapAmount {
	all := make(map[classKey]profile.HeapAmount, len(h.Classes))
	for _, c := range h.Classes {
		var sum profile.HeapAmount
		for _, part := range tenured {
			sum = sum.Plus(c.Parts[part])
		}
		if key := (classKey{c.Name, c.Loader}); sum.Objects > 0 && !c.Filler {
			all[key] = all[key].Plus(sum)
		}
	}
	return all
}

// unreadOld reports whether nothing of the old generation, or of a heap without generations, was read.
func unreadOld(h *profile.Heap) bool {
	for _, name := range tenured[:2] {
		if p := h.Part(name); p != nil && p.Used > 0 && p.Seen == 0 {
			return true
		}
	}
	return false
}

// Growth returns the classes that grew. It is nil for fewer than three readings.
func (t *Trend) Growth() *profile.HeapGrowth {
	n := int(t.times.n)
	if n < profile.LeastReadings {
		return nil
	}
	g := &profile.HeapGrowth{Over: t.last.At.Sub(t.first.At), Readings: n, Part: "heap", Classes: []*profile.HeapGrower{}}
	if t.last.Part("old") != nil {
		g.Part = "old"
	}
	if a, b := t.first.OldCollections, t.last.OldCollections; a != nil && b != nil {
		g.Collected = *b > *a
	} else {
		g.Uncounted = true
	}
	g.Used, _ = t.used.slope(&t.times, 0)
	used := t.used.last.Bytes
	for key, l := range t.classes {
		if c, ok := t.grower(l, used); ok {
			c.Name, c.Loader = key.name, key.loader
			g.Classes = append(g.Classes, c)
		}
	}
	slices.SortFunc(g.Classes, func(a, b *profile.HeapGrower) int {
		return cmp.Or(cmp.Compare(b.Bytes.Rate, a.Bytes.Rate), cmp.Compare(a.Name, b.Name))
	})
	if room := t.room(g.Part) - used; room > 0 && g.Used.Sure() && g.Collected { // otherwise the growth may be garbage
		if s := room / g.Used.Rate; s < math.MaxInt64/float64(time.Second)/2 {
			g.Full = time.Duration(s * float64(time.Second))
		}
	}
	return g
}

// room is the number of bytes that fit into a part.
func (t *Trend) room(part string) float64 {
	if p := t.last.Part(part); p != nil && p.Max > 0 {
		return float64(p.Max)
	}
	return float64(t.last.Capacity)
}

// grower reports whether a class grew.
func (t *Trend) grower(l *line, used float64) (c *profile.HeapGrower, ok bool) {
	n := int(t.times.n)
	first, last := l.at(1), l.at(n)
	c = &profile.HeapGrower{From: first.Bytes, To: last.Bytes,
		Objects: (last.Objects - first.Objects) / t.last.At.Sub(t.first.At).Seconds()}
	if c.To-c.From < max(leastBytes, leastGrowth*used) || !profile.Upward(l.ups, n) {
		return c, false
	}
	c.Bytes, ok = l.slope(&t.times, t.unseen)
	return c, ok && c.Bytes.Sure()
}

// sums2 are weighted sums of times: their number, their sum, and the sum of their squares.
type sums2 struct{ n, x, xx float64 }

func (s *sums2) add(x, weight float64) {
	s.n, s.x, s.xx = s.n+weight, s.x+weight*x, s.xx+weight*x*x
}

// around is the weighted sum of the squared distances of all times from x.
func (s *sums2) around(x float64) float64 { return s.xx - 2*x*s.x + x*x*s.n }

// line sums up one class, over the readings that have it. In the other readings the class had nothing.
type line struct {
	firstIn, lastIn int // the numbers of readings
	first, last     profile.HeapAmount
	ups             int // steps with a rise
	times, errors   sums2
	y, yy, xy       float64
	err, size       float64 // the largest error, and the largest mean size of an object
}

func (l *line) add(n int, at float64, a profile.HeapAmount) {
	if a.Bytes > l.at(n-1).Bytes && n > 1 {
		l.ups++
	}
	if l.firstIn == 0 {
		l.firstIn, l.first = n, a
	}
	l.lastIn, l.last = n, a
	l.times.add(at, 1)
	l.errors.add(at, a.BytesError*a.BytesError)
	l.y, l.yy, l.xy = l.y+a.Bytes, l.yy+a.Bytes*a.Bytes, l.xy+at*a.Bytes
	if l.err = max(l.err, a.BytesError); a.Objects > 0 {
		l.size = max(l.size, a.Bytes/a.Objects)
	}
}

// at returns the class's amount in reading n: the first or the last that has the class, or 0 for none.
func (l *line) at(n int) profile.HeapAmount {
	switch n {
	case 0:
		return profile.HeapAmount{}
	case l.lastIn:
		return l.last
	case l.firstIn:
		return l.first
	}
	return profile.HeapAmount{}
}

// slope fits a line through all readings. Its error has two sources: the distances of the readings from the line, and
// the errors of the readings themselves. If a sample has no object of the class, the class may have unseen bytes.
func (l *line) slope(all *sums2, unseen float64) (s profile.HeapSlope, ok bool) {
	n, at := all.n, all.x/all.n
	xx := all.around(at)
	if s, ok = profile.Slope(int(n), xx, l.xy-at*l.y, l.yy-l.y*l.y/n); !ok {
		return s, false
	}
	drawn := l.errors.around(at)
	if unseen > 0 {
		missed := max(l.err, unseen*l.size)
		drawn += (xx - l.times.around(at)) * missed * missed
	}
	s.Error = math.Hypot(s.Error, math.Sqrt(max(drawn, 0))/xx)
	return s, true
}
