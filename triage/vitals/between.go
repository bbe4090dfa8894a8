package vitals

import (
	"time"

	"goprof/process/maybe"
	"goprof/process/procfs"
)

// Between returns what happened between two readings of the same process. Rates are not known if the readings are of
// the same moment or in the wrong order.
func Between(a, b *Reading) Rates {
	r := Rates{Over: b.At.Sub(a.At)}
	if r.Over <= 0 {
		return Rates{}
	}
	over := span(r.Over)
	r.CPU = over.share(a.Process.CPU, b.Process.CPU)
	r.threads(a, b)
	r.Collections = grown(a.JVM.GC.Collections, b.JVM.GC.Collections)
	r.collectors(&a.JVM.GC, &b.JVM.GC)

	r.SafepointSyncShare = over.share(a.JVM.Safepoints.SyncTime, b.JVM.Safepoints.SyncTime)
	r.MajorFaults = over.rate(a.Process.MajorFaults, b.Process.MajorFaults)
	r.Periods = grown(a.Cgroup.Periods, b.Cgroup.Periods)
	r.Throttled = grown(a.Cgroup.Throttled, b.Cgroup.Throttled)
	r.machine(&a.Machine, &b.Machine, over)
	return r
}

type span time.Duration

func grown(a, b maybe.Value[uint64]) maybe.Value[uint64] {
	x, ok := a.Get()
	y, ok2 := b.Get()
	return maybe.If(y-x, ok && ok2 && y >= x)
}

// rate returns the growth of a count per second.
func (s span) rate(a, b maybe.Value[uint64]) maybe.Value[float64] {
	n, ok := grown(a, b).Get()
	return maybe.If(float64(n)/time.Duration(s).Seconds(), ok)
}

// share returns the growth of a time as a part of the time between the readings.
func (s span) share(a, b maybe.Value[time.Duration]) maybe.Value[float64] {
	x, ok := a.Get()
	y, ok2 := b.Get()
	return maybe.If(float64(y-x)/float64(s), ok && ok2 && y >= x)
}

// threads compares the threads that are in both readings, and adds up their work.
func (r *Rates) threads(a, b *Reading) {
	before := make(map[int]*Thread, len(a.Threads))
	for i := range a.Threads {
		before[a.Threads[i].TID] = &a.Threads[i]
	}
	over := span(r.Over)
	collector, waited, allocated := 0.0, 0.0, 0.0
	knowsAllocated, knowsWaited, knowsRoles := false, false, true
	for i := range b.Threads {
		now := &b.Threads[i]
		was := before[now.TID]
		if was == nil || was.began != now.began {
			continue
		}
		t := ThreadRate{TID: now.TID, Name: now.Name, Role: now.Role, CPU: over.share(was.CPU, now.CPU),
			Waited: over.share(was.Waited, now.Waited), Allocated: over.rate(was.Allocated, now.Allocated)}
		if t.Role == Collection {
			collector += t.CPU.Or(0)
		}
		waited += t.Waited.Or(0)
		knowsWaited = knowsWaited || t.Waited.IsKnown()
		knowsRoles = knowsRoles && t.Role != ""
		allocated += t.Allocated.Or(0)
		knowsAllocated = knowsAllocated || t.Allocated.IsKnown()
		r.Threads = append(r.Threads, t)
	}
	if len(r.Threads) == 0 {
		return
	}
	r.CollectorCPU, r.WaitedCPU = maybe.If(collector, knowsRoles), maybe.If(waited, knowsWaited)
	r.Allocated = maybe.If(allocated, knowsAllocated)
}

func (r *Rates) collectors(a, b *GC) {
	for i := range b.Collectors {
		now := &b.Collectors[i]
		for k := range a.Collectors {
			was := &a.Collectors[k]
			if was.Number != now.Number || was.Name != now.Name || now.Count < was.Count || now.Time < was.Time {
				continue
			}
			spent := now.Time - was.Time
			r.Collectors = append(r.Collectors, CollectorRate{Name: now.Name, Kind: now.Kind,
				Count: now.Count - was.Count, Time: spent, Share: float64(spent) / float64(r.Over)})
		}
	}
}

func (r *Rates) machine(a, b *Machine, over span) {
	r.SwapIn, r.SwapOut = over.rate(a.SwappedIn, b.SwappedIn), over.rate(a.SwapOut, b.SwapOut)
	r.CPUStall = over.stall(a.CPUPressure, b.CPUPressure)
	r.MemStall = over.stall(a.MemoryPressure, b.MemoryPressure)
	was, ok := a.CPUTime.Get()
	now, ok2 := b.CPUTime.Get()
	if !ok || !ok2 || now.Total() <= was.Total() {
		return
	}
	all := float64(now.Total() - was.Total())
	part := func(was, now uint64) maybe.Value[float64] {
		return maybe.If(float64(now-was)/all, now >= was) // idle and iowait of the kernel decrease now and then
	}
	r.Steal = part(was.Steal, now.Steal)
	r.Busy = part(was.Total()-was.Idle-was.IOWait-was.Steal, now.Total()-now.Idle-now.IOWait-now.Steal)
}

// stall returns the part of the time in which at least one thread waited.
func (s span) stall(a, b maybe.Value[procfs.Pressure]) maybe.Value[float64] {
	x, ok := a.Get()
	y, ok2 := b.Get()
	return maybe.If(min(float64(y.Some.Total-x.Some.Total)/float64(s), 1), ok && ok2 && y.Some.Total >= x.Some.Total)
}
