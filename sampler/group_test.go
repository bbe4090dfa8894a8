//go:build linux

package sampler

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"goprof/testdata/ctest"
)

// anyGroup is a Group or a PerfGroup.
type anyGroup interface {
	Run(context.Context) error
	Stats() GroupStats
}

// anyMember is a member of such a group.
type anyMember interface {
	Engine
	Met() int64
	SetShare(float64)
	Share() float64
}

// memberOf makes a member.
func memberOf(g anyGroup, pid int) anyMember {
	if g, ok := g.(*PerfGroup); ok {
		return g.Member(pid)
	}
	return g.(*Group).Member(pid, ctest.CPU())
}

// eachGroup runs a test with each kind of group.
func eachGroup(t *testing.T, interval time.Duration, test func(t *testing.T, g anyGroup)) {
	t.Run("visits", func(t *testing.T) { test(t, NewGroup(interval, 0)) })
	t.Run("perf", func(t *testing.T) { test(t, NewPerfGroup(interval, 0)) })
}

// runGroup runs a group for the length of a test. It skips the test if there can be no such group here.
func runGroup(t *testing.T, g anyGroup) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the group ended with %v", err)
		}
	})
	select {
	case err := <-done:
		done <- nil
		if errors.Is(err, ErrNoVisits) {
			t.Skip("CPUs cannot be visited here") // goprof has no CAP_PERFMON, or there is one CPU
		}
		if errors.Is(err, ErrNoWide) {
			t.Skip("perf events of CPUs are not permitted here") // no CAP_PERFMON, no CAP_BPF, or a container
		}
		t.Fatal(err)
	case <-time.After(100 * time.Millisecond):
	}
}

// joined is a member that is being sampled.
type joined struct {
	anyMember
	samples int64
	cpu     int64
	end     func() Stats
}

func join(t *testing.T, g anyGroup, pid int) *joined {
	t.Helper()
	j := &joined{anyMember: memberOf(g, pid)}
	q := NewQueue(8)
	ctx, cancel := context.WithCancel(context.Background())
	walked := make(chan struct{})
	go func() {
		defer close(walked)
		for snap := range q.Looks() {
			j.samples += snap.Samples()
			j.cpu += snap.CPU
			q.Done(snap)
		}
	}()
	result := make(chan Stats, 1)
	go func() {
		st, err := j.Run(ctx, Config{}, q)
		if err != nil {
			t.Error(err)
		}
		result <- st
	}()
	j.end = func() Stats {
		cancel()
		<-walked
		return <-result
	}
	return j
}

// A member has as many samples as its CPU time has intervals, whatever other members there are.
func TestGroupSharesFairly(t *testing.T) {
	const interval = 2 * time.Millisecond
	eachGroup(t, interval, func(t *testing.T, g anyGroup) { checkGroupSharesFairly(t, g, interval) })
}

func checkGroupSharesFairly(t *testing.T, g anyGroup, interval time.Duration) {
	runGroup(t, g)
	var members []*joined
	var before []time.Duration
	spin := ctest.Compile(t, ctest.Spin)
	one, other := ctest.Start(t, spin), ctest.Start(t, spin)
	began, visitsBefore := time.Now(), g.Stats().Visits
	for _, p := range []*ctest.Program{one, other} {
		m := join(t, g, p.PID)
		m.SetShare(1 / float64(len(members)+1))
		// CPU time from before the process became a member has no samples.
		ctest.Eventually(t, "it is met", func() bool { return m.Met() > 0 })
		members, before = append(members, m), append(before, ProcessCPU(p.PID))
	}
	for ProcessCPU(one.PID)-before[0] < 3*time.Second {
		time.Sleep(20 * time.Millisecond)
	}
	// This is needTicks for what a group counts.
	asked := int64(time.Since(began)/interval) * int64(len(onlineCPUs()))
	_, visits := g.(*Group)
	if held := g.Stats().Visits - visitsBefore; visits && held < asked*3/4 {
		t.Skipf("not judged: there was a CPU for %d visits of %d", held, asked)
	}
	for i, m := range members {
		used := ProcessCPU([]int{one.PID, other.PID}[i]) - before[i]
		st := m.end()
		due := float64(used) / float64(interval) * m.Share()
		got := float64(st.Taken + st.LostSum())
		// An emulated CPU is away for many intervals on end. The kernel makes one sample of them.
		mayMiss := os.Getenv("GOPROF_SLOW") != "" && got > 0
		if off := got - due; math.Abs(off) > 0.2*due+6*math.Sqrt(due) && (off > 0 || !mayMiss) {
			t.Errorf("%d: %.0f looks, %.0f are due", i, got, due)
		}
		if m.samples != st.Taken {
			t.Errorf("%d: %d samples were handed over, %d taken", i, m.samples, st.Taken)
		}
		carried := time.Duration(m.cpu)
		if !visits { // what threads have used is read once in this time
			carried += min(time.Duration(houseBusy), used-carried)
		}
		if share := carried.Seconds() / used.Seconds(); share < 0.8 || share > 1.2 {
			t.Errorf("%d: samples carry %v of %v of CPU time", i, time.Duration(m.cpu), used)
		}
	}
	if st := g.Stats(); st.Met == 0 || visits && st.Visits < st.Met+st.Others {
		t.Errorf("%+v", st)
	}
}

// A member whose process ends is sent away. A process that comes in its place becomes a member.
func TestGroupMembersComeAndGo(t *testing.T) {
	eachGroup(t, 2*time.Millisecond, checkGroupMembersComeAndGo)
}

func checkGroupMembersComeAndGo(t *testing.T, g anyGroup) {
	runGroup(t, g)
	for range 3 {
		p := ctest.Run(t, ctest.Spin)
		p.Number(t)
		m := join(t, g, p.PID)
		for m.Met() < 5 {
			time.Sleep(5 * time.Millisecond)
		}
		p.Process.Kill()
		m.end()
	}
	for g.Stats().Members > 0 {
		time.Sleep(5 * time.Millisecond)
	}
}

// A group without members visits no CPU. When a member comes, the group wakes up and visits CPUs again.
func TestGroupRestsWithoutMembers(t *testing.T) {
	g := NewGroup(5*time.Millisecond, 0)
	runGroup(t, g)
	for range 3 {
		for g.Stats().Members > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		var before GroupStats
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
		m := join(t, g, sleeper.Process.Pid)
		for g.Stats().Visits < before.Visits+5 {
			time.Sleep(5 * time.Millisecond)
		}
		m.end()
	}
}

// If one process were two members, only one of them would get samples.
func TestGroupTakesAProcessOnce(t *testing.T) {
	eachGroup(t, 2*time.Millisecond, checkGroupTakesAProcessOnce)
}

func checkGroupTakesAProcessOnce(t *testing.T, g anyGroup) {
	runGroup(t, g)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	m := join(t, g, p.PID)
	for m.Met() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	q := NewQueue(8)
	if _, err := memberOf(g, p.PID).Run(context.Background(), Config{}, q); !errors.Is(err, errTwice) {
		t.Errorf("joined twice: %v", err)
	}
	m.end()
}

// A group that has ended takes no new members.
func TestGroupEnds(t *testing.T) { eachGroup(t, time.Millisecond, checkGroupEnds) }

func checkGroupEnds(t *testing.T, g anyGroup) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g.Run(ctx)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	if _, err := memberOf(g, p.PID).Run(context.Background(), Config{}, NewQueue(8)); err == nil {
		t.Error("a member of a group that is over")
	}
}

// A member leaves soon, however far off the next visit is. Its process may come again at once.
func TestGroupMemberComesBackAtOnce(t *testing.T) {
	eachGroup(t, time.Hour, checkGroupMemberComesBackAtOnce)
}

func checkGroupMemberComesBackAtOnce(t *testing.T, g anyGroup) {
	runGroup(t, g)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	for range 3 {
		m := join(t, g, p.PID)
		for g.Stats().Members == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		m.end()
	}
}

// The samplers of an agent share the descriptors that there are, so two hundred of them keep no more than that.
func TestManySamplersShareDescriptors(t *testing.T) {
	all, one := filesFor(&Config{}), filesFor(&Config{Pace: new(atomic.Int64)})
	if all == 0 || 200*one > all {
		t.Errorf("200 times %d of %d", one, all)
	}
}

// Missed visits are counted. Each member misses as many intervals as these visits make up.
func TestGroupCountsMissedVisits(t *testing.T) {
	const interval, step = 4000, 1000
	v := &visits{plan: newPlan(false)}
	v.round = []int{0, 1, 2, 3}
	v.moments.begin(0, step)
	group := NewGroup(time.Second, 0)
	group.interval.Store(interval)
	r := &groupRun{Group: group, visits: v, members: map[int]*Member{}}
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
		if m.run.stats.Skipped != skipped {
			t.Errorf("a member misses %d of %d intervals", m.run.stats.Skipped, skipped)
		}
	}
}
