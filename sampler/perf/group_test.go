//go:build linux

package perf

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// TestGroupMemberOpensEvents: a carrier of virtual threads has events of its own in a group, too. Opening these events
// takes a while, and the group's rings are full of records then.
func TestGroupMemberOpensEvents(t *testing.T) {
	needPerf(t)
	filter, err := filterProgram(os.Getpid(), nil).LoadForPerf(nil)
	if err != nil || !ring.KnowsPIDs() {
		t.Skip("perf events of CPUs are not permitted here")
	}
	g := &perfGroupRun{Group: NewGroup(time.Millisecond, 0)}
	if g.rings, err = openPerfRings(cpuset.Online(), groupRing, nil, nil); err != nil {
		t.Fatal(err)
	}
	defer g.rings.close()
	g.wide = &wideEvents{rings: g.rings, cpu: g.cpu, kernel: ring.InKernel, interval: int64(time.Millisecond),
		filter: filter,
		most:   ring.MostStack, copies: stackFit{stack: ring.MostStack}, rng: rand.New(rand.NewPCG(1, 2))}
	if g.wide.open() != nil {
		t.Fatal("no events of CPUs")
	}
	defer unix.Close(filter)
	defer g.wide.closeEvents()
	ctest.Eventually(t, "there are records", func() bool {
		for end := sampler.ThreadCPU() + 5*time.Millisecond; sampler.ThreadCPU() < end; {
		}
		return g.rings.steady.HaveRecords()
	})
	r := newPerfRun(New(os.Getpid(), g.cpu), sampler.Config{Interval: time.Millisecond}, sampler.NewQueue(8))
	defer r.proc.Close()
	r.join(g)
	defer r.leave()
	r.watch(&threads.Thread{TID: unix.Gettid(), Hint: ptrace.Hint{Soon: true}})
	if !r.threads[unix.Gettid()].hasEvents() {
		t.Error("the thread has no events")
	}
}

// TestGroupWakesUpForPeriods: a group changes the periods of its events at a moment of their own.
func TestGroupWakesUpForPeriods(t *testing.T) {
	const now = int64(time.Hour)
	r := &perfGroupRun{now: now, wide: &wideEvents{interval: int64(time.Second / 19), until: now + 1,
		rng: rand.New(rand.NewPCG(1, 2))}}
	if due := r.nextTurn(); due != now+1 {
		t.Errorf("the next turn is in %v", time.Duration(due-now))
	}
	r.wide.redraw(now)
	if r.wide.until != now+1 {
		t.Error("the periods were changed too early")
	}
	r.wide.redraw(now + 1)
	if r.wide.until <= now+1 {
		t.Error("the periods were not changed")
	}
}

// TestGroupWasAway: a group that has nothing to do sleeps for long. goprof does not write off CPU time for that.
func TestGroupWasAway(t *testing.T) {
	const now = int64(time.Hour)
	for _, c := range []struct {
		before, due int64
		want        bool
	}{
		{0, 0, false}, // the first turn
		{now - sampler.RefreshBusy - 1e6, now - 1e6, false},      // the group has slept until there was something to do
		{now - sampler.RefreshBusy - 1e6, now - 2e6, false},      // a little longer
		{now - 5*threads.LongGap, now - 4*threads.LongGap, true}, // far too long
		{now - 2*threads.LongGap, now - 3*threads.LongGap/2, true},
		{now - threads.LongGap/2, now - 2*threads.LongGap, false}, // the last turn was not long ago
	} {
		r := &perfGroupRun{now: c.before, due: c.due}
		if got := r.wasAway(now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestMemberAnswersAtOnce: while a member's process and the group sleep, Stats of the member returns at once.
func TestMemberAnswersAtOnce(t *testing.T) {
	g := NewGroup(50*time.Millisecond, 0)
	sampletest.RunGroup(t, g, ErrNoWide)
	p := ctest.Run(t, `int main(void) { ready(); for (;;) pause(); }`)
	ctest.AwaitAsleep(t, p, 0)
	m := sampletest.Join(t, g.Member(p.PID))
	ctest.Eventually(t, "it is a member", func() bool { return g.Stats().Members == 1 })
	time.Sleep(100 * time.Millisecond)
	before := time.Duration(0)
	for range 3 {
		before = max(before, m.Stats().Wall)
	}
	if again := m.Stats().Wall; again <= before {
		t.Errorf("the answers are old: %v after %v", again, before)
	}
	m.End()
}
