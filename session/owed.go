//go:build linux

package session

import "goprof/sampler/look"

// A sample that waits too long for its walk is lost as stale. This happens only to stacks with new code, and never to
// those of the JVM's compilers. So the thread's next samples also count for the lost ones: the thread keeps its share.

// owed is how much a thread's lost samples counted, and the CPU time that they carried.
type owed struct{ samples, cpu int64 }

// Each sample makes up for 1/owedShare of the samples that are owed to its thread, and at least for one. mostOwed
// bounds the threads.
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

// settleOwed makes a look also count for lost samples of its thread.
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

// effective returns profile.Summary.Effective for so many samples. 0: each sample counts fully.
func (r *cpuTime) effective(samples int64) int64 {
	if n := float64(samples); r.squares > n {
		return max(int64(n*n/r.squares), 1)
	}
	return 0
}
