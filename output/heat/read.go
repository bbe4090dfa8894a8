package heat

import (
	"math"
	"time"

	"goprof/output/recording"
	"goprof/profile"
)

// heat is a recording in the form in which it is drawn.
type heat struct {
	entries
	stacks  *stackTree
	lanes   *lanes
	unit    unit
	samples int64 // looks
	marks   marks
}

// unit is what is counted.
type unit struct {
	weight   profile.Weight
	interval time.Duration // the time that a look stands for
}

// maxWeight bounds the weight of one sample, so that sums of millions do not overflow.
const maxWeight = 1 << 40

// of returns the weight of a sample: looks, bytes, or microseconds.
func (u unit) of(s *profile.Sample) int64 {
	n := s.Looks()
	switch u.weight {
	case profile.Bytes:
		n = s.Bytes
	case profile.CPUTime:
		n = micros(s.CPU)
	case profile.WallTime:
		if n = micros(s.Span); n <= 0 {
			n = micros(time.Duration(min(float64(u.interval)*float64(s.Looks()), math.MaxInt64/2)))
		}
		n = max(n, 1)
	}
	return min(max(n, 0), maxWeight)
}

func micros(d time.Duration) int64 { return int64(d.Round(time.Microsecond) / time.Microsecond) }

// read reads a recording two or three times: to find the time that it covers, to count guessed leaves, and to read its
// samples.
func read(src recording.Source, info *recording.Info, threads bool) (*heat, error) {
	var x extent
	h := &heat{stacks: newStacks(), lanes: newLanes(threads)}
	h.unit = unit{info.Meta.Weight, info.Meta.Interval}
	spans, weighs := false, false
	err := recording.Visit(src, recording.NoStacks, func(s *profile.Sample) error {
		x.sample(s)
		spans = spans || s.Wall && (s.Span > 0 || info.Meta.Interval > 0)
		weighs = weighs || h.unit.of(s) > 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !x.any {
		return nil, ErrEmpty
	}
	switch {
	case info.Asked && !weighs:
		return nil, &recording.Lacks{Problem: "its samples have no " + h.unit.weight.String(), Remedy: "--weight samples"}
	case info.Asked:
	case spans && (h.unit.weight == profile.Samples || !weighs):
		h.unit.weight = profile.WallTime // idle threads are looked at less often
	case !weighs:
		h.unit.weight = profile.Samples
	}
	x.recorded(&info.Meta)
	h.entries = entries{grid: newGrid(x), most: maxHeld}
	if src, err = recording.Settled(src); err != nil {
		return nil, err
	}
	if err = recording.Visit(src, recording.LaterStacks, h.add); err == nil {
		h.bound(maxEntries, &h.stacks.tree)
		err = h.marks.read(src, &h.grid)
	}
	return h, err
}

func (h *heat) add(s *profile.Sample) error {
	at, err := h.stacks.add(s)
	if err != nil {
		return err
	}
	one := entry{lane: h.lanes.of(&s.Thread), node: at, weight: h.unit.of(s)}
	one.cell, one.cells = h.grid.span(s.At.Wall, s.Span)
	h.lanes.weight[one.lane] = addTime(h.lanes.weight[one.lane], one.weight)
	node := &h.stacks.tree.Nodes[one.at()]
	node.Self = addTime(node.Self, one.weight)
	h.stacks.tree.Total = addTime(h.stacks.tree.Total, one.weight)
	h.samples = addTime(h.samples, s.Looks())
	h.entries.add(one, &h.stacks.tree)
	return nil
}
