//go:build linux

package wall

import (
	"os"
	"testing"
	"time"

	"goprof/arch/cpus"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// TestGatherTimes: the looks at the last thread add up to the time that the process reports. The looks at a thread that
// came earlier add up to the time until the tick before it came, and half a tick.
func TestGatherTimes(t *testing.T) {
	const ms = int64(time.Millisecond)
	r := &gatherRun{wallRun: &wallRun{}, ask: &GatherOptions{}, late: map[int]*lateThread{}}
	r.Tracer, r.Proc = ptrace.NewTracer(os.Getpid(), cpus.Here()), procfs.OpenDir(os.Getpid())
	defer r.Tracer.Close()
	defer r.Proc.Close()
	r.Ticks.Interval = time.Millisecond
	r.known, r.readAt, r.now = true, 100*ms, 101*ms
	r.last = Gathering{Counted: true, Count: 5, Took: time.Second}
	g := Gathering{Under: true, Began: 100*ms + ms/2, Counted: true, Count: 6, Took: time.Second}
	r.begin(&g)
	last, first := new(look.Tally), new(look.Tally)
	r.late[1] = &lateThread{th: &watched{tid: 1, tally: last}, since: r.began, seen: 130 * ms}
	r.late[2] = &lateThread{th: &watched{tid: 2, tally: first}, since: r.began, seen: 110 * ms}
	r.last, r.readAt = g, 130*ms
	r.close(131*ms, &Gathering{Counted: true, Count: 6, Took: time.Second + 30*time.Millisecond + 100*time.Microsecond})
	if n, d := last.Count(); n != 1 || d != 30*time.Millisecond+100*time.Microsecond {
		t.Errorf("the last thread: %d looks, %v", n, d)
	}
	if n, d := first.Count(); n != 1 || d != 10*time.Millisecond {
		t.Errorf("the first thread: %d looks, %v", n, d)
	}
	if c := r.counts; c.Seen != 1 || c.SeenFor != 30*time.Millisecond+100*time.Microsecond {
		t.Errorf("%+v", c)
	}
}
