//go:build linux

package ptrace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

type step struct {
	after time.Duration  // since the last question
	tell  func(*account) // what the kernel reports that it did not report before
	held  time.Duration  // a pause that has ended since the last question
	want  Hindrance
}

const ms = time.Millisecond

func waits(d time.Duration, turns uint64) func(*account) {
	return func(a *account) { a.waited, a.turns = a.waited+uint64(d), a.turns+turns }
}

func runnable(n int) func(*account) { return func(a *account) { a.runnable = n } }

// group reports how much more CPU time a group has used, how many periods have passed, and how often the group had to
// wait for the next one.
func group(used time.Duration, periods, throttled uint64) func(*account) {
	return func(a *account) {
		g := a.groups[0]
		g.used, g.period, g.throttled = g.used+used, g.period+periods, g.throttled+throttled
		a.groups = []groupAccount{g}
	}
}

// TestGate: no stop begins that cannot be expected to end in time, and each refusal has its reason.
func TestGate(t *testing.T) {
	limited := account{turns: 1, groups: []groupAccount{{quota: 10 * ms}}}
	for _, c := range []struct {
		name  string
		begin account
		steps []step
	}{
		{"real-time priority and nobody in the way", account{urgent: true, turns: 1}, []step{
			{ms, waits(ms, 1), 0, NoHindrance}, {ms, waits(9*ms, 1), 9 * ms, NoHindrance}}},
		{"the kernel tells nothing", account{}, []step{{ms, nil, 0, NoHindrance}}},
		{"no real-time priority, a calm machine", account{turns: 1}, []step{
			{ms, waits(3*ms, 1), 3 * ms, NoHindrance}, {ms, runnable(mostTurns), 0, NoHindrance}}},
		{"no real-time priority, 60 busy loops on two CPUs", account{turns: 1}, []step{
			{ms, runnable(30), 0, NoPriority}, {time.Hour, nil, 0, NoPriority}, {ms, runnable(2), 0, NoHindrance}}},
		{"with real-time priority the same loops hinder nobody", account{urgent: true, turns: 1}, []step{
			{ms, runnable(30), 0, NoHindrance}}},
		{"a long wait is waited out, each further one for longer", account{turns: 1}, []step{
			{ms, waits(10*ms, 1), 0, NoPriority}, {999 * ms, waits(0, 1), 0, NoPriority}, {ms, waits(0, 1), 0, NoHindrance},
			{ms, waits(20*ms, 1), 0, NoPriority}, {1999 * ms, waits(0, 1), 0, NoPriority}, {ms, nil, 0, NoHindrance},
			{3 * time.Minute, nil, 0, NoHindrance}, {ms, waits(10*ms, 1), 0, NoPriority}, {time.Second, nil, 0, NoHindrance}}},
		{"many short waits are no long one", account{turns: 1}, []step{{50 * ms, waits(45*ms, 20), 0, NoHindrance}}},
		{"a long hold is as bad as a long wait", account{turns: 1}, []step{
			{ms, nil, 10 * ms, NoPriority}, {time.Second, nil, 0, NoHindrance}}},
		{"others with real-time priority", account{urgent: true, turns: 1}, []step{
			{ms, waits(50*ms, 1), 0, OthersFirst}, {time.Second, nil, 0, NoHindrance}}},
		{"it had a CPU and stood still: that is over", account{urgent: true, turns: 1}, []step{
			{ms, waits(ms, 1), 200 * ms, NoHindrance}}},
		{"a stop begins only in the first quarter of a quota", limited, []step{
			{ms, nil, 0, GroupLimit}, {99 * ms, group(0, 1, 0), 0, NoHindrance},
			{ms, group(2*ms, 0, 0), 0, NoHindrance}, {ms, group(ms, 0, 0), 0, GroupLimit}, {50 * ms, nil, 0, GroupLimit},
			{50 * ms, group(0, 1, 0), 0, NoHindrance}}},
		{"what was used before a period's end may be of the new one", limited, []step{
			{ms, group(2*ms, 1, 0), 0, NoHindrance}, {99 * ms, group(3*ms, 1, 0), 0, GroupLimit}}},
		{"a group that was held back is left alone for a while", limited, []step{
			{ms, group(0, 1, 1), 0, GroupLimit}, {999 * ms, group(0, 9, 0), 0, GroupLimit}, {ms, nil, 0, NoHindrance}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gate{last: c.begin}
			now, told := int64(1e12), c.begin
			for i, s := range c.steps {
				if now += int64(s.after); s.tell != nil {
					s.tell(&told)
				}
				g.longest = int64(s.held)
				if got := g.decide(now, told); got != s.want {
					t.Fatalf("step %d: %v, want %v", i+1, got, s.want)
				}
			}
		})
	}
}

// TestHoldsHaveACause: a pause over the bound is counted by its cause, also if the gate is never asked again.
func TestHoldsHaveACause(t *testing.T) {
	for _, c := range []struct {
		urgent bool
		waited time.Duration
		want   Hindrance
	}{{true, 0, Stalled}, {true, 150 * ms, OthersFirst}, {false, 0, NoPriority}, {false, 150 * ms, NoPriority}} {
		tr := &Tracer{gate: &gate{last: account{urgent: c.urgent, turns: 1}}}
		tr.noteHold(int64(200 * ms))
		tr.noteHold(int64(StandsAtMost))
		now := tr.gate.last
		now.waited, now.turns = uint64(c.waited), 2
		tr.gate.decide(1e12, now)
		tr.settleHolds()
		if got := tr.Holds(); got.Over[c.want] != 1 || tr.over != 0 {
			t.Errorf("urgent %v, waited %v: %+v", c.urgent, c.waited, got)
		}
	}
}

// TestGroupsAreRead: what a group of version 2 has used is in its cpu.stat. For version 1, goprof's own CPU time is
// taken instead.
func TestGroupsAreRead(t *testing.T) {
	stat := filepath.Join(t.TempDir(), "cpu.stat")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(stat, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("usage_usec 5000\nnr_periods 9\nnr_throttled 2\nthrottled_usec 7\n")
	s := sources{schedstat: -1, loadavg: -1, groups: []groupSource{{10 * ms, openFile(stat)}}}
	defer s.close()
	for _, c := range []struct {
		text string
		want groupAccount
	}{
		{"usage_usec 5000\nnr_periods 9\nnr_throttled 2\nthrottled_usec 7\n",
			groupAccount{quota: 10 * ms, used: 5 * ms, period: 9, throttled: 2}},
		{"usage_usec 12000\nnr_periods 10\nnr_throttled 3\nthrottled_usec 9\n",
			groupAccount{quota: 10 * ms, used: 12 * ms, period: 10, throttled: 3}},
	} {
		write(c.text)
		if got := s.read(account{}, false).groups; len(got) != 1 || got[0] != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
	write("nr_periods 11\nnr_throttled 3\nthrottled_time 9\n")
	if got := s.read(account{}, false).groups[0]; got.period != 11 || got.used <= 0 || got.used == 12*ms {
		t.Errorf("%+v", got)
	}
}
