//go:build linux

package visit

import "runtime"

// manyDue reports whether, on average, a tick has as many due threads as there are CPUs.
func (r *run) manyDue() bool { return r.dueMean >= dueUnit*int64(runtime.NumCPU())-dueUnit/2 }

// dueUnit stands for one thread in dueMean. dueWeight is how many ticks dueMean looks back.
const (
	dueUnit   = 1024
	dueWeight = 16
)

func (r *run) countDue(looks int64) {
	r.dueMean += (looks*dueUnit - r.dueMean) / dueWeight
	r.Tracer.Stay = r.manyDue()
}
