//go:build linux

package session

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
)

// TestLateListing: a thread that was sampled all the time until it was listed has one name, however late the listing
// came. A thread that gets the same number much later has its own name.
func TestLateListing(t *testing.T) {
	for _, c := range []struct {
		name           string
		first, last    time.Duration // before the listing
		began          time.Duration // before the listing; 0: not known
		want, wantLate int64
	}{
		{"sampled until it was listed", 5 * lateFor, lateFor / 2, 0, 3, 0},
		{"another with its number", 5 * lateFor, 3 * lateFor, 0, 1, 2},
		{"listed late", 5 * lateFor, 3 * lateFor, 6 * lateFor, 3, 0},
		{"another, soon", lateFor / 2, lateFor / 3, lateFor / 4, 1, 2},
	} {
		dir := &directory{threads: map[int]*listedThread{}}
		r := &recording{Session: &Session{dir: dir}, profile: profile.New()}
		add := func(label string) {
			r.profile.Add(label, &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "run"}}}}, 1)
		}
		for _, ago := range []time.Duration{c.first, c.last} {
			label := r.threadLabel(7, dir.label(7))
			add(label)
			late := r.late[7]
			if late.when.IsZero() || time.Since(late.when) > lateFor {
				t.Fatalf("%s: %+v was noted of a use now", c.name, late)
			}
			late.when = late.when.Add(-ago)
			r.late[7] = late
		}
		th := &listedThread{kernel: process.Thread{TID: 7}, name: "worker", javaNamed: true, named: time.Now()}
		if c.began > 0 {
			var boot unix.Timespec
			unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
			th.kernel.Start = uint64((time.Duration(boot.Nano()) - c.began) / procfs.Tick)
		}
		dir.threads[7] = th
		add(r.threadLabel(7, dir.label(7)))
		got := map[string]int64{}
		r.profile.Each(func(frames []profile.Frame, n int64) { got[frames[0].Func.Name] += n })
		if got["[worker tid=7]"] != c.want || got["[? tid=7]"] != c.wantLate {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestLabelOfEnded: a thread leaves the list before one of its samples is walked. For a while such a sample still gets
// the thread's name.
func TestLabelOfEnded(t *testing.T) {
	d := &directory{threads: map[int]*listedThread{}}
	th := &listedThread{kernel: process.Thread{TID: 7}, name: "worker", named: time.Now()}
	d.threads[7] = th
	before := d.label(7)
	delete(d.threads, 7)
	d.remember(7, th)
	if after := d.label(7); after != before {
		t.Errorf("%s was %s", after, before)
	}
	e := d.ended[7]
	e.when = e.when.Add(-lateFor)
	d.ended[7] = e
	if after := d.label(7); after != "[? tid=7]" {
		t.Errorf("%s long after it has ended", after)
	}
	for tid := range 2 * maxPools {
		d.remember(tid, th)
	}
	if len(d.ended) > maxPools {
		t.Errorf("%d ended threads are kept", len(d.ended))
	}
}
