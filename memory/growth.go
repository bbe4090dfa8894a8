package memory

import (
	"slices"
	"sort"
	"time"

	"goprof/profile"
)

const (
	// A part's growth is shown from leastGrowth (a share of the resident memory) and leastBytes on.
	leastGrowth, leastBytes = 0.002, 1 << 20
	// maxFull is the longest time until memory is full that is predicted.
	maxFull = 30 * 24 * time.Hour
)

// Growth compares readings of one process, the oldest first. It returns nil for fewer than three readings, because two
// do not show the error of a slope.
func Growth(readings []*profile.Memory) *profile.MemoryGrowth {
	n := len(readings)
	if n < profile.LeastReadings {
		return nil
	}
	first, last := readings[0], readings[n-1]
	g := &profile.MemoryGrowth{Over: last.At.Sub(first.At), Readings: n, Parts: []profile.MemoryGrower{}}
	at := make([]float64, n)
	for i, m := range readings {
		at[i] = m.At.Sub(first.At).Seconds()
	}
	series := func(of func(*profile.Memory) uint64) []float64 {
		y := make([]float64, n)
		for i, m := range readings {
			y[i] = float64(of(m))
		}
		return y
	}
	least := max(leastBytes, leastGrowth*float64(last.Resident))
	g.Resident, _ = grows(at, series(func(m *profile.Memory) uint64 { return m.Resident }), least)
	for i := range last.Parts {
		name := last.Parts[i].Name
		y := series(func(m *profile.Memory) uint64 {
			if p := m.Part(name); p != nil {
				return p.Resident + p.Swapped
			}
			return 0
		})
		if rate, sure := grows(at, y, least); sure {
			g.Parts = append(g.Parts, profile.MemoryGrower{Name: name, Bytes: rate, From: uint64(y[0]), To: uint64(y[n-1])})
		}
	}
	sort.SliceStable(g.Parts, func(i, j int) bool { return g.Parts[i].Bytes.Rate > g.Parts[j].Bytes.Rate })
	if !slices.ContainsFunc(readings, func(m *profile.Memory) bool { return m.Direct == nil }) {
		y := series(func(m *profile.Memory) uint64 { return m.Direct.Reserved })
		if rate, sure := grows(at, y, leastBytes); sure {
			g.Direct = &profile.MemoryGrower{Name: "direct", Bytes: rate, From: uint64(y[0]), To: uint64(y[n-1])}
		}
	}
	if slices.ContainsFunc(readings, func(m *profile.Memory) bool {
		return m.Group == nil || m.Group.Max == 0 || m.Group.Cache == nil
	}) {
		return g
	}
	used, sure := grows(at, series(func(m *profile.Memory) uint64 {
		return m.Group.Used - min(m.Group.Used, *m.Group.Cache)
	}), least)
	if full := float64(last.Group.Left) / used.Rate; sure && full < maxFull.Seconds() {
		g.Full = max(time.Duration(full*float64(time.Second)), time.Second)
	}
	return g
}

// grows fits a line. sure is true if the line certainly rises, by least bytes or more.
func grows(at, y []float64, least float64) (s profile.HeapSlope, sure bool) {
	n := float64(len(at))
	var meanAt, meanY, xx, xy, yy float64
	for i := range at {
		meanAt, meanY = meanAt+at[i]/n, meanY+y[i]/n
	}
	ups := 0
	for i := range at {
		x, y0 := at[i]-meanAt, y[i]-meanY
		xx, xy, yy = xx+x*x, xy+x*y0, yy+y0*y0
		if i > 0 && y[i] > y[i-1] {
			ups++
		}
	}
	s, ok := profile.Slope(len(at), xx, xy, yy)
	return s, ok && s.Sure() && profile.Upward(ups, len(at)) && y[len(y)-1]-y[0] >= least
}
