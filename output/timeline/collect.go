package timeline

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"goprof/output/recording"
	"goprof/profile"
)

// Collect reads all samples of a recording. It makes one Timeline, or one for each part (recording.Info.All). Timelines
// of the same recording share Frames and Nodes. The bounds in Options are for all of them together.
func Collect(src recording.Source, o Options) ([]*Timeline, error) {
	info := src.Info()
	parts := 1
	if info.All {
		parts = len(info.Parts)
	}
	shared, all := newStacks(), make([]collector, parts)
	for i := range all {
		all[i] = collector{stacks: shared, tracks: make(map[identity]*Track), groups: make(map[string]*Track),
			most: max(cmp.Or(o.Samples, DefaultSamples)/parts, 1), mostFrames: max(cmp.Or(o.Frames, math.MaxInt)/parts, 1),
			t: Timeline{Info: info.Of(i), earlier: info.Earlier}}
		if parts > 1 {
			all[i].t.Part = info.Parts[i].Name
		}
	}
	err := recording.Visit(src, recording.LaterStacks, func(s *profile.Sample) error { return all[info.Part(s)].add(s) })
	if err != nil {
		return nil, err
	}
	list := make([]*Timeline, parts)
	for i := range all {
		list[i] = all[i].finish(o, max(cmp.Or(o.Tracks, DefaultTracks)/parts, 1))
	}
	return list, nil
}

func (c *collector) finish(o Options, tracks int) *Timeline {
	t := &c.t
	t.Frames, t.Nodes = c.stacks.frames, c.stacks.nodes
	t.Value = c.value()
	if o.Merge {
		c.mergeAll(0)
	}
	for _, tr := range t.Tracks {
		t.weigh(tr)
	}
	t.group(cmp.Or(o.Virtual, DefaultVirtual), tracks)
	for _, tr := range t.Tracks {
		sortByTime(tr.Samples)
	}
	return t
}

type collector struct {
	t      Timeline
	stacks *stacks
	tracks map[identity]*Track
	recent profile.ByThread[*Track] // a cache in front of tracks
	groups map[string]*Track        // groups of threads without tracks of their own
	full   bool                     // merging frees no more room

	// most bounds kept, the number of samples. mostFrames bounds keptFrames, the number of frames of their stacks.
	most, kept             int
	mostFrames, keptFrames int

	cpu, span, bytes, wall bool // whether some sample has such a value
}

// add takes a sample. It keeps only its Funcs and names.
func (c *collector) add(s *profile.Sample) error {
	out := Sample{At: s.At.Wall, CPU: max(int64(s.CPU), 0), Span: max(int64(s.Span), 0), Bytes: max(s.Bytes, 0),
		Looks: s.Looks(), State: s.State, Wall: s.Wall}
	if !c.t.Info.Timed {
		out.At = 0
	}
	c.sees(&out)
	at, err := c.stacks.add(s)
	if err != nil {
		return err
	}
	if at.full {
		c.t.NoStack = plus(c.t.NoStack, out.Looks)
	}
	out.Node, out.Why = at.node, at.why
	c.keep(c.track(&s.Thread), &out)
	return nil
}

// sees notes facts for all samples.
func (c *collector) sees(s *Sample) {
	if c.t.Looks == 0 {
		c.t.First, c.t.Last = s.At, s.At
	}
	c.t.First, c.t.Last = min(c.t.First, s.At), max(c.t.Last, s.At)
	c.t.Looks = plus(c.t.Looks, s.Looks)
	c.cpu, c.span = c.cpu || s.CPU > 0, c.span || s.Span > 0
	c.bytes, c.wall = c.bytes || s.Bytes > 0, c.wall || s.Wall
}

// valueOf returns the value for a weight.
var valueOf = map[profile.Weight]Value{profile.Samples: Looks, profile.CPUTime: CPU, profile.WallTime: Span,
	profile.Bytes: Bytes}

// value returns the value for the weight that the user has chosen, or else the best one that the samples have.
func (c *collector) value() Value {
	switch {
	case c.t.Info.Asked:
		return valueOf[c.t.Info.Meta.Weight]
	case c.bytes:
		return Bytes
	case c.wall && c.span:
		return Span
	case c.cpu && !c.wall:
		return CPU
	case c.t.Info.Timed && c.t.Info.Meta.Interval > 0:
		return Interval
	case c.cpu:
		return CPU
	}
	return Looks
}

// keep adds a sample to its track. If there is no room, it merges samples first.
func (c *collector) keep(tr *Track, s *Sample) {
	depth := int(c.stacks.depths[s.Node])
	if !c.has(1, depth) && !c.full {
		c.makeRoom()
	}
	if c.has(1, depth) || c.kept == 0 {
		if n := len(tr.Samples); n == cap(tr.Samples) { // append would copy a long list many times
			tr.Samples = slices.Grow(tr.Samples, max(n, 1))
		}
		tr.Samples = append(tr.Samples, *s)
		c.kept, c.keptFrames = c.kept+1, c.keptFrames+depth
		return
	}
	if n := len(tr.Samples); n > 0 && tr.Samples[n-1].equals(s) {
		tr.Samples[n-1].take(s)
		c.t.Merged++
		return
	}
	c.t.LeftOut = plus(c.t.LeftOut, s.Looks)
}

// maxSlot is a length that can be multiplied by eight.
const maxSlot = math.MaxInt64 / 16

func (c *collector) has(samples, frames int) bool {
	return c.kept+samples <= c.most && c.keptFrames+frames <= c.mostFrames
}

// makeRoom merges until a quarter of the room is free: first neighbours, then within slots of time. If a slot length
// has freed little, the next lengths would also free little, and are skipped.
func (c *collector) makeRoom() {
	span := time.Duration(min(Since(c.t.First, c.t.Last), maxSlot))
	for {
		before := c.kept
		c.mergeAll(c.t.Slot)
		switch {
		case c.kept <= c.most/4*3 && c.keptFrames <= c.mostFrames/4*3:
			return
		case c.t.Slot > span:
			c.full = true
			return
		}
		longer := time.Duration(2)
		if c.t.Slot > 0 && before-c.kept < before/littleFreed {
			longer = 8
		}
		c.t.Slot = max(longer*c.t.Slot, time.Millisecond)
	}
}

// littleFreed: after a slot length that has freed at least this fraction of all samples, the next one is only twice as
// long.
const littleFreed = 32

func (c *collector) mergeAll(slot time.Duration) {
	c.kept, c.keptFrames = 0, 0
	m := merger{slot: int64(slot), open: make(map[uint64]int32)}
	for _, tr := range c.t.Tracks {
		before := len(tr.Samples)
		tr.Samples = m.merge(tr.Samples)
		c.t.Merged += int64(before - len(tr.Samples))
		c.kept += len(tr.Samples)
		for i := range tr.Samples {
			c.keptFrames += int(c.stacks.depths[tr.Samples[i].Node])
		}
	}
}

// merger merges equal neighbours into one sample. With a slot, it merges all equal samples within that slot.
type merger struct {
	slot int64
	open map[uint64]int32 // the last sample of each kind, by its index
}

// sort returns a number that is the same for equal samples.
func (s *Sample) sort() uint64 {
	sort := uint64(uint32(s.Node))<<32 | uint64(s.State)<<16 | uint64(s.Why)<<8
	if s.Wall {
		sort |= 1
	}
	return sort
}

// merge joins equal samples of a track, and returns the rest.
func (m *merger) merge(all []Sample) []Sample {
	sortByTime(all)
	clear(m.open)
	n := 0
	for i := range all {
		s := &all[i]
		if at := m.equal(all[:n], s); at >= 0 {
			all[at].take(s)
			continue
		}
		all[n] = *s
		if m.slot > 0 {
			m.open[s.sort()] = int32(n)
		}
		n++
	}
	return all[:n]
}

// equal returns the index of the sample that s is merged into. It is negative if there is none.
func (m *merger) equal(all []Sample, s *Sample) int {
	if m.slot == 0 {
		if last := len(all) - 1; last >= 0 && all[last].equals(s) {
			return last
		}
		return -1
	}
	if last, met := m.open[s.sort()]; met && all[last].At/m.slot == s.At/m.slot {
		return int(last)
	}
	return -1
}

// sortByTime keeps the order of the file for samples with equal times, or without times.
func sortByTime(all []Sample) {
	byTime := func(a, b Sample) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(all, byTime) {
		slices.SortStableFunc(all, byTime)
	}
}

func (s *Sample) equals(o *Sample) bool { return s.sort() == o.sort() }

func (s *Sample) take(o *Sample) {
	s.At = min(s.At, o.At)
	s.CPU, s.Span = plus(s.CPU, o.CPU), plus(s.Span, o.Span)
	s.Bytes, s.Looks = plus(s.Bytes, o.Bytes), plus(s.Looks, o.Looks)
}

// plus adds numbers of a file without overflow.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// saturated multiplies without overflow: its result stops at the largest number.
func saturated(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Since returns the time between two times, but at least 0.
func Since(from, to int64) int64 {
	switch {
	case to <= from:
		return 0
	case from < 0 && to > math.MaxInt64+from:
		return math.MaxInt64
	}
	return to - from
}
