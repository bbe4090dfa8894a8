package profile

import (
	"fmt"
	"testing"
)

// TestRelabel: samples were added under a thread's first name. Afterwards they are under its second name, once, whether
// that name existed before or not.
func TestRelabel(t *testing.T) {
	a, b, c := &Func{Name: "a"}, &Func{Name: "b"}, &Func{Name: "c"}
	stack := func(fns ...*Func) *Stack {
		s := &Stack{}
		for _, fn := range fns {
			s.Frames = append(s.Frames, Frame{Func: fn, Kind: Native})
		}
		return s
	}
	for _, before := range []bool{false, true} {
		p := New()
		p.Add("[other]", stack(b, a), 1)
		if before {
			p.Add("[long-name]", stack(b, a), 10)
		}
		place := p.AddAt("[long]", stack(b, a), 1, 0)
		p.Add("[long]", stack(c, a), 2)
		p.Add("[long]", stack(a), 4)
		p.Relabel("[long]", "[long-name]")
		p.Relabel("[nobody]", "[long-name]")
		p.Add("[long-name]", stack(b, a), 100)
		p.Add("[long]", stack(a), 1000) // of another thread, which began later
		want := map[string]int64{"[other];a;b": 1, "[long-name];a;b": 101, "[long-name];a;c": 2, "[long-name];a": 4,
			"[long];a": 1000}
		if before {
			want["[long-name];a;b"] += 10
		} else {
			p.Again(place, 10_000, 0)
			want["[long-name];a;b"] += 10_000
		}
		got := map[string]int64{}
		p.Each(func(frames []Frame, n int64) {
			path := ""
			for _, f := range frames {
				path += ";" + f.Func.Name
			}
			got[path[1:]] += n
		})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestRelabelOften: renamed nodes do not fill the index.
func TestRelabelOften(t *testing.T) {
	p := New()
	fn := &Func{Name: "f"}
	for i := range 20_000 {
		p.Add(fmt.Sprint("[old ", i, "]"), &Stack{Frames: []Frame{{Func: fn}}}, 1)
		p.Relabel(fmt.Sprint("[old ", i, "]"), fmt.Sprint("[new ", i, "]"))
	}
	n := 0
	p.Each(func(frames []Frame, count int64) { n += int(count) })
	if n != 20_000 || p.Overflow != 0 {
		t.Errorf("%d samples, %d overflow", n, p.Overflow)
	}
}
