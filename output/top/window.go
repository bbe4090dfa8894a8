package top

import (
	"cmp"
	"sort"
	"strings"
	"time"

	"goprof/profile"
	"goprof/profile/naming"
)

// Window sums up the stacks of the last seconds. It is a ring of slices of time: the oldest one is dropped as a whole.
// It is not safe for concurrent use.
type Window struct {
	length time.Duration
	slices [windowSlices]windowSlice
	seen   map[*profile.Func]int64 // the number of the last sample that a function was counted for
	round  int64
}

const (
	// windowSlices is the number of slices in a window.
	windowSlices = 20
	// maxMethods bounds the methods of a slice: samples of further methods only count as samples.
	maxMethods = 4096
)

// windowSlice is the sum of the stacks of a slice of time.
type windowSlice struct {
	number  int64 // of this slice since time 0
	samples int64
	methods map[*profile.Func]counts
}

type counts struct{ self, total int64 }

func NewWindow(length time.Duration) *Window {
	return &Window{length: max(length, windowSlices), seen: map[*profile.Func]int64{}}
}

func (w *Window) Length() time.Duration { return w.length }

func (w *Window) number(at time.Duration) int64 { return int64(at / (w.length / windowSlices)) }

// Add counts a stack n times. at is the time since any fixed time.
func (w *Window) Add(at time.Duration, stack *profile.Stack, n int64) {
	number := w.number(at)
	s := &w.slices[number%windowSlices]
	if s.number != number || s.methods == nil {
		if s.number > number {
			return // this sample comes after the end of its slice
		}
		*s = windowSlice{number: number, methods: map[*profile.Func]counts{}}
		clear(w.seen)
	}
	s.samples += n
	w.round++
	leaf := true
	for i := range stack.Frames {
		fn := stack.Frames[i].Func
		if fn == nil || stack.Frames[i].Kind == profile.StateFrame || naming.IsFold(fn.Name) || w.seen[fn] == w.round {
			continue
		}
		w.seen[fn] = w.round
		c, known := s.methods[fn]
		if !known && len(s.methods) >= maxMethods {
			leaf = false
			continue
		}
		if c.total += n; leaf {
			c.self += n
		}
		leaf = false
		s.methods[fn] = c
	}
}

// Methods returns the shares of all methods in the window that ends at time at, the largest first.
func (w *Window) Methods(at time.Duration) (methods []Method, samples int64) {
	oldest := w.number(at) - windowSlices
	sums := map[string]counts{}
	for i := range w.slices {
		s := &w.slices[i]
		if s.number <= oldest || s.methods == nil {
			continue
		}
		samples += s.samples
		for fn, c := range s.methods {
			sum := sums[fn.Name] // the JVM may have made the method again
			sums[fn.Name] = counts{sum.self + c.self, sum.total + c.total}
		}
	}
	for name, c := range sums {
		methods = append(methods, Method{name, share(c.self, samples), share(c.total, samples)})
	}
	sort.Slice(methods, func(i, j int) bool {
		a, b := &methods[i], &methods[j]
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), strings.Compare(a.Name, b.Name)) < 0
	})
	return methods, samples
}

// share returns at most 1: a stack may have two methods with the same name.
func share(part, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return min(float64(part)/float64(of), 1)
}
