//go:build linux

package offcpu

import (
	"testing"
	"time"

	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// TestWakeups: a wait gets the wake-up that ended it, and no other: when the thread was woken, it had left its CPU for
// this wait.
func TestWakeups(t *testing.T) {
	const ms = int64(time.Millisecond)
	stack := offRecord{when: 10 * ms, tid: 7, kind: offStackOf,
		copy: offCopy{when: 10 * ms, has: true, stack: make([]byte, 64)}}
	rec := func(when int64, kind offKind) offRecord { return offRecord{when: when, tid: 7, kind: kind} }
	woken := func(when, out int64) offRecord {
		return offRecord{when: when, tid: 7, kind: offWoken, woke: &wakeup{pid: 3, tid: 9, when: when, out: out, comm: "by"}}
	}
	for _, c := range []struct {
		name    string
		records []offRecord
		lostAt  int64
		want    look.WaitEnd
	}{
		{"one wait", []offRecord{stack, rec(10*ms+9, offOut), woken(20*ms, 10*ms+5), rec(30*ms, offIn)}, 0, look.Woken},
		{"woken on its way", []offRecord{stack, woken(10*ms+7, 10*ms+5), rec(10*ms+9, offOut), rec(30*ms, offIn)}, 0,
			look.Woken},
		{"its CPU was taken", []offRecord{stack, rec(10*ms+9, offOutReady), woken(20*ms, 10*ms+5), rec(30*ms, offIn)}, 0,
			look.NotAsleep},
		{"not noted", []offRecord{stack, rec(10*ms+9, offOut), rec(30*ms, offIn)}, 0, look.NotNoted},
		{"of the wait before", []offRecord{rec(5*ms, offIn), stack, rec(10*ms+9, offOut), woken(20*ms, 4*ms),
			rec(30*ms, offIn)}, 0, look.NotNoted},
		{"of the wait before, which was not told", []offRecord{woken(8*ms, 4*ms), rec(9*ms, offIn), stack,
			rec(10*ms+9, offOut), rec(30*ms, offIn)}, 0, look.NotNoted},
		{"lost", []offRecord{stack, rec(10*ms+9, offOut), rec(30*ms, offIn)}, 11 * ms, look.WakerLost},
	} {
		r := offFixture(0)
		r.wakes = &wakeups{run: r, lostAt: c.lostAt}
		for i := range c.records {
			r.work(&c.records[i])
		}
		var wait, waker *look.Look
		for len(r.Queue.Looks()) > 0 {
			if snap := <-r.Queue.Looks(); snap.Waker.Of != nil {
				waker = snap
			} else {
				wait = snap
			}
		}
		if wait == nil || wait.Tally.Ended() != c.want || (waker != nil) != (c.want == look.Woken) {
			t.Errorf("%s: %+v, %+v", c.name, wait, waker)
		} else if waker != nil && (waker.Waker != look.Waker{Of: wait.Tally, TID: 7, PID: 3, Comm: "by"} || waker.TID != 9) {
			t.Errorf("%s: %+v", c.name, waker.Waker)
		}
		r.Tracer.Close()
		r.Proc.Close()
	}
}

// TestWakeupsAfterLoss: records are missing. A wake-up from before the loss belongs to no later wait, even if it is
// read later.
func TestWakeupsAfterLoss(t *testing.T) {
	const ms = int64(time.Millisecond)
	rec := func(when int64, kind offKind) offRecord { return offRecord{when: when, tid: 7, kind: kind} }
	stack := func(when int64) offRecord {
		return offRecord{when: when, tid: 7, kind: offStackOf, copy: offCopy{when: when, has: true}}
	}
	old := offRecord{when: 12 * ms, tid: 7, kind: offWoken, woke: &wakeup{pid: 3, tid: 9, out: 10 * ms, comm: "old"}}
	for _, late := range []bool{false, true} {
		r := offFixture(0)
		r.wakes = &wakeups{run: r, lostAt: ptrace.Monotonic()}
		lost := offRecord{when: 15 * ms, until: 16 * ms, kind: offLost}
		records := []offRecord{stack(10 * ms), rec(10*ms, offOut), old, lost, stack(20 * ms), rec(20*ms, offOut),
			rec(30*ms, offIn)}
		if late {
			records[2], records[3] = records[3], records[2]
		}
		for i := range records {
			r.work(&records[i])
		}
		var last *look.Look
		for n := len(r.Queue.Looks()); n > 0; n-- {
			last = <-r.Queue.Looks()
		}
		if last == nil || last.Waker.Of != nil || last.When != 20*ms || last.Tally.Ended() != look.WakerLost {
			t.Errorf("late %v: %+v", late, last)
		}
		r.Tracer.Close()
		r.Proc.Close()
	}
}

// TestWakeupsPassOverShortWaits: waits that are too short to be reported do not take the places of longer ones.
func TestWakeupsPassOverShortWaits(t *testing.T) {
	const ms = int64(time.Millisecond)
	r := offFixture(5 * time.Millisecond)
	defer r.Tracer.Close()
	defer r.Proc.Close()
	r.work(&offRecord{when: 10 * ms, tid: 9, kind: offStackOf, copy: offCopy{when: 10 * ms, has: true}})
	for i := range int64(1 + mostSlept) { // the first wait takes 10 ms, the others take 4 ms
		r.work(&offRecord{when: 10*ms + 10*i*ms + min(i, 1), tid: 9, kind: offOut})
		r.work(&offRecord{when: 20*ms + 10*i*ms - min(i, 1)*6*ms, tid: 9, kind: offIn})
	}
	if by := r.threads[9]; by.sleptWhile(10*ms, 60*ms) == nil || r.counts.Short != mostSlept {
		t.Errorf("the waits of the waker: %+v, %d short", by.slept, r.counts.Short)
	}
}

// TestWakeupsDrawOnce: the kernel draws a lot to decide whether to copy the waker's stack. The same lot decides whether
// a wait shorter than the limit counts.
func TestWakeupsDrawOnce(t *testing.T) {
	const ms = int64(time.Millisecond)
	r := offFixture(0)
	defer r.Tracer.Close()
	defer r.Proc.Close()
	r.wakes, r.thin.limit = &wakeups{run: r}, 100*time.Millisecond
	for i := range int64(100) { // a wait of 50 ms, which counts if its lot is below a half
		at := 1 + i*100*ms
		lot := float64(i) / 100
		for _, x := range []offRecord{
			{when: at, tid: 7, kind: offStackOf, copy: offCopy{when: at, has: true}}, {when: at + 2, tid: 7, kind: offOut},
			{when: at + 3, tid: 7, kind: offWoken, woke: &wakeup{out: at + 1, lot: lot, comm: "x"}},
			{when: at + 2 + 50*ms, tid: 7, kind: offIn},
		} {
			r.work(&x)
		}
		n := len(r.Queue.Looks())
		for range n {
			r.Queue.Done(<-r.Queue.Looks())
		}
		if want := map[bool]int{true: 2}[lot < 0.5]; n != want {
			t.Errorf("lot %v: %d looks", lot, n)
		}
	}
}
