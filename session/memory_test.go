//go:build linux

package session

import (
	"fmt"
	"runtime"
	"testing"

	"goprof/profile"
)

// TestStacksAreHandedOver: if a Sink gets the samples, the profile is handed over before it is large. The account
// continues.
func TestStacksAreHandedOver(t *testing.T) {
	handed := int64(0)
	r := &recording{profile: profile.New(), opt: RecordOptions{Full: func(p *profile.Profile) {
		if p.Nodes() > fullNodes+1 {
			t.Errorf("%d nodes", p.Nodes())
		}
		p.Each(func(_ []profile.Frame, n int64) { handed += n })
	}}}
	r.manner = newWall(r)
	fns := make([]*profile.Func, 400)
	for i := range fns {
		fns[i] = &profile.Func{Name: fmt.Sprint(i)}
	}
	const stacks = 3 * fullNodes / 2
	for i := range stacks {
		st := profile.Stack{Frames: []profile.Frame{{Func: fns[i%400]}, {Func: fns[i/400%400]}}}
		r.profile.AddTimed("", &st, 1, 0)
		r.handOverStacks()
	}
	left := int64(0)
	r.profile.Each(func(_ []profile.Frame, n int64) { left += n })
	if handed == 0 || handed+left != stacks || r.profile.Counts.Whole != stacks {
		t.Errorf("%d stacks were handed over, %d are left; the account has %d of %d", handed, left,
			r.profile.Counts.Whole, stacks)
	}
	r.opt.Threads = true // names of threads may become known late
	for i := range stacks {
		st := profile.Stack{Frames: []profile.Frame{{Func: fns[i%400]}, {Func: fns[i/400%400]}}}
		r.profile.AddTimed("", &st, 1, 0)
	}
	before := handed
	if r.handOverStacks(); handed != before || r.profile.Nodes() <= fullNodes {
		t.Error("stacks under threads were handed over")
	}
}

// TestLooksThatGoOnAreMoved: a look at a thread that does not move continues in the next profile, with the same stack.
// So does the number of its looks at a ready thread.
func TestLooksThatGoOnAreMoved(t *testing.T) {
	sums := map[string]int64{}
	add := func(p *profile.Profile) {
		p.Each(func(frames []profile.Frame, n int64) {
			if frames[len(frames)-1].Kind == profile.StateFrame {
				sums[fmt.Sprint(frames[0].Func.Name, " ", frames[len(frames)-1].Func.Name)] += n
			}
		})
	}
	fns := make([]*profile.Func, 256)
	for i := range fns {
		fns[i] = &profile.Func{Name: fmt.Sprint(i)}
	}
	handed := 0
	r := wallRecording(&told{looks: map[profile.State]int64{}}, RecordOptions{Full: func(p *profile.Profile) {
		handed++
		add(p)
	}})
	st := r.newStanding(1, 1)
	st.at = r.profile.AddAt("", &r.leafed, 0, 0)
	st.tally.Add(3, 3, 3)
	st.tally.Ready(2, 2)
	r.keepLook(st)
	for round := range 3 {
		for i := range fullNodes {
			r.profile.AddTimed("", &profile.Stack{Frames: []profile.Frame{{Func: fns[i%256]}, {Func: fns[i/256]}}}, 1, 0)
		}
		if r.handOverStacks(); handed != round+1 {
			t.Fatalf("%d of %d times handed over", handed, round+1)
		}
		if r.handOverStacks(); handed != round+1 || r.profile.Nodes() > 10 {
			t.Fatalf("%d nodes are left", r.profile.Nodes())
		}
		st.tally.Add(10, 10, 10)
		st.tally.Ready(1, 1)
		r.settle(st)
	}
	add(r.profile)
	if sums["run [parked]"] != 28 || sums["run [runnable]"] != 5 || len(sums) != 2 {
		t.Errorf("%v", sums)
	}
}

// TestAliveIsKnown: caches are emptied by what the garbage collector found alive.
func TestAliveIsKnown(t *testing.T) {
	var c cacheBound
	runtime.GC()
	before := c.alive()
	held := make([]byte, 32<<20)
	runtime.GC()
	if grown := int64(c.alive()) - int64(before); grown < 16<<20 || before == 0 {
		t.Errorf("%d bytes, then %d more of %d", before, grown, len(held))
	}
	runtime.KeepAlive(held)
}
