//go:build linux

package session

import "goprof/sampler/look"

// A sample that comes too late for its walk is lost as stale. Only stacks with code that is new are lost so, and those
// of the JVM's compilers never. So the thread's next samples count for the lost ones, too: the thread has its share.

// owed is what a thread's lost samples counted, and the CPU time that they carried.
type owed struct{ samples, cpu int64 }

// A sample makes up for one in owedShare of what its thread is owed, or for one. mostOwed bounds the threads.
const (
	owedShare = 8
	mostOwed  = 1 << 12
)

func (r *cpuTime) owe(snap *look.Look) {
	if r.owed == nil || len(r.owed) >= mostOwed {
		r.owed = map[int]owed{}
	}
	o := r.owed[snap.TID]
	r.owed[snap.TID] = owed{o.samples + snap.Samples(), o.cpu + snap.CPU}
}

// settleOwed lets a look count for lost ones of its thread, and notes what it counts.
func (r *cpuTime) settleOwed(snap *look.Look) {
	if o, ok := r.owed[snap.TID]; ok {
		n := max(o.samples/owedShare, 1)
		cpu := o.cpu / o.samples * n
		snap.Count, snap.CPU = snap.Samples()+n, snap.CPU+cpu
		r.madeUp += n
		if o.samples -= n; o.samples == 0 {
			snap.CPU += o.cpu - cpu
			delete(r.owed, snap.TID)
		} else {
			r.owed[snap.TID] = owed{o.samples, o.cpu - cpu}
		}
	}
	n := float64(snap.Samples())
	r.squares += n * n
}

// effective is profile.Summary.Effective of so many samples.
func (r *cpuTime) effective(samples int64) int64 {
	if n := float64(samples); r.squares > n {
		return max(int64(n*n/r.squares), 1)
	}
	return 0
}
