package heap

import (
	"cmp"
	"math"
	"slices"
	"time"

	"goprof/profile"
)

const (
	// sureGrowth is by how many of its errors a slope must lie above zero. Thousands of classes are asked, so 95 of 100
	// is not enough.
	sureGrowth = 2
	// leastGrowth is the part of what is used that a class must have grown by, and leastBytes the same in bytes.
	leastGrowth, leastBytes = 0.0005, 16 << 10
	// upward is the part of the steps from reading to reading that must lead up.
	upward = 0.7
	// emptied is by how much of itself a part must shrink from one reading to the next to have been collected.
	emptied = 0.01
)

// Growth compares readings of one heap, the oldest first: what grew in the old generation. A heap without one is
// compared as a whole. It is nil for fewer than three readings: two do not show how sure a slope is. Readings that had
// no time for the old generation do not count.
func Growth(readings []*profile.Heap) *profile.HeapGrowth {
	readings = slices.DeleteFunc(slices.Clone(readings), unreadOld)
	n := len(readings)
	if n < 3 {
		return nil
	}
	parts, name := tenured(readings[n-1])
	g := &profile.HeapGrowth{Over: readings[n-1].At.Sub(readings[0].At), Readings: n, Part: name}
	var used []point
	for i, h := range readings {
		p := point{at: h.At.Sub(readings[0].At).Seconds()}
		for _, name := range parts {
			if part := h.Part(name); part != nil {
				p.y += float64(part.Used)
			}
		}
		if i > 0 && p.y < used[i-1].y*(1-emptied) {
			g.Collected = true
		}
		used = append(used, p)
	}
	g.Used, _ = slope(used)
	last := used[n-1].y
	for key, points := range series(readings, parts) {
		if c, ok := grower(points, last); ok {
			c.Name, c.Loader = key.name, key.loader
			g.Classes = append(g.Classes, c)
		}
	}
	slices.SortFunc(g.Classes, func(a, b *profile.HeapGrower) int {
		return cmp.Or(cmp.Compare(b.Bytes.Rate, a.Bytes.Rate), cmp.Compare(a.Name, b.Name))
	})
	room, sure := roomOf(readings[n-1], parts, last), g.Used.Rate > max(sureGrowth*g.Used.Error, 0)
	if room > 0 && sure && g.Collected { // else what grows may be garbage
		if s := room / g.Used.Rate; s < math.MaxInt64/float64(time.Second)/2 {
			g.Full = time.Duration(s * float64(time.Second))
		}
	}
	return g
}

// unreadOld reports whether nothing of the old generation, or of the heap that has none, was read.
func unreadOld(h *profile.Heap) bool {
	_, name := tenured(h)
	part := h.Part(name)
	return part != nil && part.Used > 0 && part.Seen == 0
}

// tenured are the parts in which objects stay.
func tenured(h *profile.Heap) (parts []string, name string) {
	if h.Part("old") == nil {
		return []string{"heap", "humongous"}, "heap"
	}
	return []string{"old", "humongous"}, "old"
}

// roomOf is how much more fits into these parts.
func roomOf(h *profile.Heap, parts []string, used float64) float64 {
	limit := h.Capacity
	if p := h.Part(parts[0]); p != nil && p.Max > 0 {
		limit = p.Max
	}
	return float64(limit) - used
}

// classKey tells classes apart.
type classKey struct{ name, loader string }

// point is one reading of one class.
type point struct{ at, y, err, objects float64 }

// series collects what each class had in each reading. Two classes with one name and one loader count as one.
func series(readings []*profile.Heap, parts []string) map[classKey][]point {
	all := map[classKey][]point{}
	for i, h := range readings {
		for k := range h.Classes {
			c := h.Classes[k]
			if c.Filler {
				continue
			}
			key := classKey{c.Name, c.Loader}
			points := all[key]
			if points == nil {
				points = make([]point, len(readings))
				for j, r := range readings {
					points[j].at = r.At.Sub(readings[0].At).Seconds()
				}
				all[key] = points
			}
			for _, part := range parts {
				a := c.Parts[part]
				points[i].y += a.Bytes
				points[i].err = math.Hypot(points[i].err, a.BytesError)
				points[i].objects += a.Objects
			}
		}
	}
	return all
}

// grower reports whether a class grew.
func grower(points []point, used float64) (c *profile.HeapGrower, ok bool) {
	c = &profile.HeapGrower{}
	first, last := points[0], points[len(points)-1]
	if c.From, c.To = first.y, last.y; c.To-c.From < max(leastBytes, leastGrowth*used) {
		return c, false
	}
	ups := 0
	for i := 1; i < len(points); i++ {
		if points[i].y > points[i-1].y {
			ups++
		}
	}
	if float64(ups) < upward*float64(len(points)-1) {
		return c, false
	}
	c.Bytes, ok = slope(points)
	c.Objects = (last.objects - first.objects) / (last.at - first.at)
	return c, ok && c.Bytes.Rate > sureGrowth*c.Bytes.Error
}

// slope fits a line. Its error has two sources: readings that do not lie on the line, and the errors of the readings.
func slope(points []point) (s profile.HeapSlope, ok bool) {
	n := float64(len(points))
	var at, y float64
	for _, p := range points {
		at, y = at+p.at/n, y+p.y/n
	}
	var xx, xy float64
	for _, p := range points {
		xx += (p.at - at) * (p.at - at)
		xy += (p.at - at) * (p.y - y)
	}
	if xx == 0 {
		return s, false
	}
	s.Rate = xy / xx
	var off, drawn float64
	for _, p := range points {
		d := p.y - y - s.Rate*(p.at-at)
		off += d * d
		drawn += (p.at - at) * (p.at - at) * p.err * p.err
	}
	s.Error = math.Sqrt(drawn) / xx
	if n > 2 {
		s.Error = math.Hypot(s.Error, z95(len(points)-1)*math.Sqrt(off/(n-2)/xx))
	}
	return s, true
}
