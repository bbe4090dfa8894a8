//go:build linux

package visit

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/perf"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

func memberOf(g sampletest.Group, pid int) sampletest.Member {
	if g, ok := g.(*perf.Group); ok {
		return g.Member(pid)
	}
	return g.(*Group).Member(pid, ctest.CPU())
}

func eachGroup(t *testing.T, interval time.Duration, test func(t *testing.T, g sampletest.Group)) {
	someGroups(t, groups, interval, test)
}

// groups are their kinds.
var groups = []string{"visits", "perf"}

func someGroups(t *testing.T, kinds []string, interval time.Duration, test func(t *testing.T, g sampletest.Group)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			if kind == "perf" {
				test(t, perf.NewGroup(interval, 0))
				return
			}
			test(t, NewGroup(interval, 0))
		})
	}
}

// A member has as many samples as its CPU time has intervals, whatever other members there are.
func TestGroupSharesFairly(t *testing.T) {
	interval := sampletest.Interval(2 * time.Millisecond)
	someGroups(t, jvmtest.Drawn(t, 1, groups), interval, func(t *testing.T, g sampletest.Group) {
		checkGroupSharesFairly(t, g, interval)
	})
}

func checkGroupSharesFairly(t *testing.T, g sampletest.Group, interval time.Duration) {
	sampletest.RunGroup(t, g, ErrNoVisits, perf.ErrNoWide)
	var members []*sampletest.Joined
	var before []time.Duration
	spin := ctest.Compile(t, ctest.Spin)
	one, other := ctest.Start(t, spin), ctest.Start(t, spin)
	began, visitsBefore := time.Now(), g.Stats().Visits
	for _, p := range []*ctest.Program{one, other} {
		m := sampletest.Join(t, memberOf(g, p.PID))
		m.SetShare(1 / float64(len(members)+1))
		// CPU time from before the process became a member has no samples.
		ctest.Eventually(t, "it is met", func() bool { return m.Met() > 0 })
		members, before = append(members, m), append(before, threads.ProcessCPU(p.PID))
	}
	for threads.ProcessCPU(one.PID)-before[0] < 3*time.Second {
		time.Sleep(20 * time.Millisecond)
	}
	// This is NeedTicks for the counts of a group.
	asked := int64(time.Since(began)/interval) * int64(len(cpuset.Online()))
	_, visits := g.(*Group)
	if held := g.Stats().Visits - visitsBefore; visits && held < asked*3/4 {
		t.Skipf("not judged: there was a CPU for %d visits of %d", held, asked)
	}
	for i, m := range members {
		used := threads.ProcessCPU([]int{one.PID, other.PID}[i]) - before[i]
		st := m.End()
		due := float64(used) / float64(interval) * m.Share()
		got := float64(st.Taken + st.LostSum())
		off := got - due
		if math.Abs(off) > 0.2*due+6*math.Sqrt(due) && (off > 0 || got == 0 || !sampletest.MayMiss()) {
			t.Errorf("%d: %.0f looks, %.0f are due", i, got, due)
		}
		if m.Samples != st.Taken {
			t.Errorf("%d: %d samples were handed over, %d taken", i, m.Samples, st.Taken)
		}
		carried := time.Duration(m.CPU)
		if !visits { // what threads have used is read once in this time
			carried += min(time.Duration(sampler.RefreshBusy), used-carried)
		}
		if share := carried.Seconds() / used.Seconds(); share < 0.8 || share > 1.2 {
			t.Errorf("%d: samples carry %v of %v of CPU time", i, time.Duration(m.CPU), used)
		}
	}
	if st := g.Stats(); st.Met == 0 || visits && st.Visits < st.Met+st.Others {
		t.Errorf("%+v", st)
	}
}

// If the process of a member ends, the group ends the member. A process that comes in its place becomes a member.
func TestGroupMembersComeAndGo(t *testing.T) {
	eachGroup(t, 2*time.Millisecond, checkGroupMembersComeAndGo)
}

func checkGroupMembersComeAndGo(t *testing.T, g sampletest.Group) {
	sampletest.RunGroup(t, g, ErrNoVisits, perf.ErrNoWide)
	for range 3 {
		p := ctest.Run(t, ctest.Spin)
		p.Number(t)
		m := sampletest.Join(t, memberOf(g, p.PID))
		for m.Met() < 5 {
			time.Sleep(5 * time.Millisecond)
		}
		p.Process.Kill()
		m.End()
	}
	for g.Stats().Members > 0 {
		time.Sleep(5 * time.Millisecond)
	}
}

// A group without members visits no CPU. When a member comes, the group wakes up and visits CPUs again.
func TestGroupRestsWithoutMembers(t *testing.T) {
	g := NewGroup(5*time.Millisecond, 0)
	sampletest.RunGroup(t, g, ErrNoVisits, perf.ErrNoWide)
	for range 3 {
		for g.Stats().Members > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		var before sampler.GroupStats
		ctest.Eventually(t, "no CPU is visited", func() bool { // one more visit may be under way
			before = g.Stats()
			time.Sleep(100 * time.Millisecond)
			return g.Stats().Visits == before.Visits
		})
		sleeper := exec.Command("sleep", "1000")
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			sleeper.Process.Kill()
			sleeper.Wait()
		})
		m := sampletest.Join(t, memberOf(g, sleeper.Process.Pid))
		for g.Stats().Visits < before.Visits+5 {
			time.Sleep(5 * time.Millisecond)
		}
		m.End()
	}
}

// If one process were two members, only one of them would get samples.
func TestGroupTakesAProcessOnce(t *testing.T) {
	eachGroup(t, 2*time.Millisecond, checkGroupTakesAProcessOnce)
}

func checkGroupTakesAProcessOnce(t *testing.T, g sampletest.Group) {
	sampletest.RunGroup(t, g, ErrNoVisits, perf.ErrNoWide)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	m := sampletest.Join(t, memberOf(g, p.PID))
	for m.Met() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	q := sampler.NewQueue(8)
	if _, err := memberOf(g, p.PID).Run(context.Background(), sampler.Config{}, q); !errors.Is(err, sampler.ErrTwice) {
		t.Errorf("joined twice: %v", err)
	}
	m.End()
}

func TestGroupEnds(t *testing.T) { eachGroup(t, time.Millisecond, checkGroupEnds) }

func checkGroupEnds(t *testing.T, g sampletest.Group) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g.Run(ctx)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	if _, err := memberOf(g, p.PID).Run(context.Background(), sampler.Config{}, sampler.NewQueue(8)); err == nil {
		t.Error("a member of a group that is over")
	}
}

// A member leaves soon, however far off the next visit is. Its process may come again at once.
func TestGroupMemberComesBackAtOnce(t *testing.T) {
	eachGroup(t, time.Hour, checkGroupMemberComesBackAtOnce)
}

func checkGroupMemberComesBackAtOnce(t *testing.T, g sampletest.Group) {
	sampletest.RunGroup(t, g, ErrNoVisits, perf.ErrNoWide)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	for range 3 {
		m := sampletest.Join(t, memberOf(g, p.PID))
		for g.Stats().Members == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		m.End()
	}
}

// Missed visits are counted. Each member misses as many intervals as these visits make up.
func TestGroupCountsMissedVisits(t *testing.T) {
	const interval, step = 400_000, 100_000
	v := &visits{plan: newPlan(false)}
	v.round = []int{0, 1, 2, 3}
	v.moments.begin(0, step)
	r := &groupRun{Group: NewGroup(interval, 0), visits: v, members: map[int]*Member{}}
	for pid := range 2 {
		r.members[pid] = &Member{run: &run{}}
	}
	now := int64(0)
	for range 100 { // these visits are in time
		now = v.moments.at()
		v.miss(v.moments.catchUp(now))
		v.moments.skip()
		r.countVisits()
	}
	if missed := r.Stats().Missed; missed != 0 {
		t.Errorf("%d missed", missed)
	}
	for range 50 { // these visits are late
		now += 1000 * step
		v.miss(v.moments.catchUp(now))
		r.countVisits()
	}
	missed := r.Stats().Missed
	if missed < 49_000 || missed > 51_000 {
		t.Errorf("%d visits were missed", missed)
	}
	skipped := missed / (interval / step)
	for _, m := range r.members {
		if m.run.Stats.Skipped != skipped {
			t.Errorf("a member misses %d of %d intervals", m.run.Stats.Skipped, skipped)
		}
	}
}
