//go:build linux

package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// gaps are the moments, in ns, at which a target did not run, seen by itself in one window, sorted.
type gaps []int64

// above is how many were at least that long.
func (g gaps) above(ns int64) int {
	return len(g) - sort.Search(len(g), func(i int) bool { return g[i] >= ns })
}

func (g gaps) sum() (ns float64) {
	for _, v := range g {
		ns += float64(v)
	}
	return ns
}

// pauses is what a profiler has added to a target's gaps: those while it ran, less those of the same
// time without it.
type pauses struct {
	with, without gaps
	scale         float64 // time of with, by that of without
	stops         float64 // in the time of with
}

// quantile returns the length that a share q of the stops did not exceed. It counts from the longest gap downward, and
// leaves out as many gaps as there were without the profiler. It says nothing of gaps that are shorter than most of the
// baseline's, because stops cannot be recognised among those.
func (p *pauses) quantile(q float64) float64 {
	want := (1 - q) * p.stops
	for i := len(p.with) - 1; i >= 0; i-- {
		more := float64(len(p.with)-i) - p.scale*float64(p.without.above(p.with[i]))
		if more >= want {
			return float64(p.with[i])
		}
	}
	return 0
}

// lost is the time that a stop has cost the target, all gaps counted.
func (p *pauses) lost() float64 {
	if p.stops == 0 {
		return 0
	}
	return (p.with.sum() - p.scale*p.without.sum()) / p.stops
}

// edges of the histogram's columns, in us.
var edges = []int64{0, 5, 10, 15, 20, 30, 40, 60, 100, 200, 500, 1000}

func histogramHead() string {
	var b strings.Builder
	for i, e := range edges {
		if i+1 < len(edges) {
			fmt.Fprintf(&b, "%8s", fmt.Sprintf("%d-%d", e, edges[i+1]))
		} else {
			fmt.Fprintf(&b, "%8s", fmt.Sprintf(">%d", e))
		}
	}
	return b.String()
}

// histogram is how many of 1,000 stops lie in each column, the baseline's subtracted. Less than 0: there
// were more without the profiler.
func (p *pauses) histogram() string {
	var b strings.Builder
	for i, e := range edges {
		n := float64(p.with.above(e*1000)) - p.scale*float64(p.without.above(e*1000))
		if i+1 < len(edges) {
			next := edges[i+1] * 1000
			n -= float64(p.with.above(next)) - p.scale*float64(p.without.above(next))
		}
		fmt.Fprintf(&b, "%8.0f", 1000*n/max(p.stops, 1))
	}
	return b.String()
}

// pool puts the windows of all rounds together.
func pool(rounds []*pauses) *pauses {
	all := &pauses{}
	var with, without float64
	for _, p := range rounds {
		all.with = append(all.with, p.with...)
		all.without = append(all.without, p.without...)
		all.stops += p.stops
		with += p.scale
		without++
	}
	slices.Sort(all.with)
	slices.Sort(all.without)
	all.scale = with / max(without, 1)
	return all
}
