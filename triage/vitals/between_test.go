package vitals

import (
	"testing"
	"time"

	"goprof/process/maybe"
	"goprof/process/procfs"
)

// TestBetween: counts that are known at both readings have a rate. Other counts have none.
func TestBetween(t *testing.T) {
	count := maybe.Known[uint64]
	at := time.Unix(100, 0)
	a := &Reading{At: at, Threads: []Thread{
		{TID: 1, Role: Application, CPU: maybe.Known(time.Second), Allocated: count(1000), began: 5},
		{TID: 2, Role: Collection, CPU: maybe.Known(time.Second), began: 5},
		{TID: 3, Role: Application, CPU: maybe.Known(time.Second), began: 5}}}
	b := &Reading{At: at.Add(2 * time.Second), Threads: []Thread{
		{TID: 1, Role: Application, CPU: maybe.Known(2 * time.Second), Allocated: count(5000), began: 5},
		{TID: 2, Role: Collection, CPU: maybe.Known(1500 * time.Millisecond), began: 5},
		{TID: 3, Role: Application, CPU: maybe.Known(9 * time.Second), began: 6}, // another thread
		{TID: 4, Role: Application, CPU: maybe.Known(9 * time.Second), began: 6}}}
	a.JVM.GC.Collections, b.JVM.GC.Collections = count(9), count(8) // this count went back
	a.JVM.GC.Collectors = []Collector{{Number: 0, Name: "x", Kind: FullCollections, Count: 1, Time: time.Second}}
	b.JVM.GC.Collectors = []Collector{{Number: 0, Name: "x", Kind: FullCollections, Count: 3, Time: 2 * time.Second},
		{Number: 1, Name: "y"}}
	a.Cgroup.Periods, b.Cgroup.Periods = count(10), count(30)
	a.Cgroup.Throttled, b.Cgroup.Throttled = count(0), count(5)
	a.Machine.CPUTime = maybe.Known(procfs.CPUTime{User: 100, Idle: 100})
	b.Machine.CPUTime = maybe.Known(procfs.CPUTime{User: 150, Idle: 120, Steal: 30})
	a.Machine.CPUPressure = maybe.Known(procfs.Pressure{Some: procfs.Stall{Total: time.Second}})
	b.Machine.CPUPressure = maybe.Known(procfs.Pressure{Some: procfs.Stall{Total: 1500 * time.Millisecond}})
	r := Between(a, b)
	for what, c := range map[string]struct{ got, want maybe.Value[float64] }{
		"collector": {r.CollectorCPU, maybe.Known(0.25)},
		"allocated": {r.Allocated, maybe.Known(2000.0)},
		"steal":     {r.Steal, maybe.Known(0.3)},
		"busy":      {r.Busy, maybe.Known(0.5)},
		"stall":     {r.CPUStall, maybe.Known(0.25)},
		"memory":    {r.MemStall, maybe.Value[float64]{}},
		"CPU":       {r.CPU, maybe.Value[float64]{}},
		"waited":    {r.WaitedCPU, maybe.Value[float64]{}}, // a kernel without CONFIG_SCHED_INFO
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if r.Throttled.Or(0) != 5 || r.Periods.Or(0) != 20 {
		t.Errorf("%v of %v periods", r.Throttled, r.Periods)
	}
	if r.Collections.IsKnown() || len(r.Collectors) != 1 || r.Collectors[0].Count != 2 || r.Collectors[0].Share != 0.5 {
		t.Errorf("%v %+v", r.Collections, r.Collectors)
	}
	if len(r.Threads) != 2 || r.Threads[0].CPU != maybe.Known(0.5) || r.Threads[1].Allocated.IsKnown() {
		t.Errorf("%+v", r.Threads)
	}
	b.Threads[0].Role = "" // the JVM's memory did not answer
	if r := Between(a, b); r.CollectorCPU.IsKnown() {
		t.Errorf("roles that are not known: %+v", r)
	}
	if backwards := Between(b, a); backwards.Over != 0 || backwards.Busy.IsKnown() {
		t.Errorf("%+v", backwards)
	}
}
