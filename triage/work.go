package triage

import (
	"slices"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/triage/vitals"
	"goprof/vmstructs"
)

// work holds the CPU profile of the program, in samples.
type work struct {
	total     int64
	app       int64 // of threads of the program
	slow      int64 // in the interpreter
	collector int64
	compiler  int64
	methods   map[string]int64 // of the program's threads, by the innermost Java method
	threads   map[string]int64 // the same, by pools of threads
	throwing  throwing
	perSample float64 // CPUs that one sample stands for
}

// throwing is the part of the program's work that goes into exceptions.
type throwing struct {
	samples int64
	classes map[string]int64 // of the exceptions, if the stack shows it
	sites   map[string]int64 // methods that create them
}

// leastSamples is the least number of samples to judge a share of CPU time. With fifty, a share of 30 % is known to
// within 13 points.
const leastSamples = 50

// starvedText says why goprof does not know how the program spends its CPU time.
const starvedText = "the program had too little CPU for samples of what it does: a longer look shows it (-d 1m)"

// starved reports whether the program wanted CPU time and got too little to show how it uses it.
func (x *exam) starved() bool { return x.work.app < leastSamples && x.starving() }

// starving reports whether threads of the program waited longer for a CPU than they had one.
func (x *exam) starving() bool {
	waited, used := x.Rates.WaitedCPU.Or(0), x.Rates.CPU.Or(0)
	return waited > used && waited >= shortThreads
}

// maxNames limits how many methods are counted. If a program makes names without end, further methods do not count.
const maxNames = 1 << 16

// workOf sums up a CPU profile.
func (x *exam) workOf(p *profile.Profile) work {
	w := work{methods: map[string]int64{}, threads: map[string]int64{},
		throwing: throwing{classes: map[string]int64{}, sites: map[string]int64{}}}
	if p == nil {
		return w
	}
	p.Settled().Each(func(frames []profile.Frame, n int64) {
		t, ok := naming.ThreadOf(frames[0].Func.Name)
		if !ok {
			return
		}
		w.total += n
		switch x.workKind(t.TID, t.Virtual, frames) {
		case vitals.Collection:
			w.collector += n
		case vitals.Compilation:
			w.compiler += n
		case vitals.Application:
			w.app += n
			if frames[len(frames)-1].Kind == profile.Interpreted {
				w.slow += n
			}
			w.count(naming.Pool(t.JavaName), frames, n)
		}
	})
	if w.total > 0 && p.Meta.Duration > 0 {
		w.perSample = float64(p.Time) / float64(p.Meta.Duration) / float64(w.total)
	}
	return w
}

// cpus returns how many CPUs a number of samples stands for.
func (w *work) cpus(samples int64) float64 { return float64(samples) * w.perSample }

func (w *work) share(samples int64) float64 { return float64(samples) / float64(max(w.total, 1)) }

func (w *work) count(pool string, frames []profile.Frame, n int64) {
	name := innermostJava(frames)
	if _, ok := w.methods[name]; ok || len(w.methods) < maxNames {
		w.methods[name] += n
	}
	if _, ok := w.threads[pool]; ok || len(w.threads) < maxNames {
		w.threads[pool] += n
	}
	w.throwing.count(frames, n)
}

// innermostJava returns the Java method nearest to the leaf, or else the leaf. Frames are root first.
func innermostJava(frames []profile.Frame) string {
	for i := len(frames) - 1; i > 0; i-- {
		if frames[i].Kind.Java() {
			return frames[i].Func.Name
		}
	}
	return frames[len(frames)-1].Func.Name
}

// workKind returns whether a sample is work of the program, a collector or a compiler. While the VM thread executes an
// operation that collects, it counts as a collector: the serial collector does all of its work there.
func (x *exam) workKind(tid int, virtual bool, frames []profile.Frame) vitals.Role {
	if virtual {
		return vitals.Application
	}
	role, known := x.roles[tid]
	switch {
	case role == vitals.VMInternal && collects(frames):
		return vitals.Collection
	case !known && hasJava(frames):
		return vitals.Application // the thread has ended since, or began after the last reading
	}
	return role
}

func hasJava(frames []profile.Frame) bool {
	for i := range frames {
		if frames[i].Kind.Java() {
			return true
		}
	}
	return false
}

// collects reports whether the VM thread executes an operation that collects.
func collects(frames []profile.Frame) bool {
	return slices.ContainsFunc(frames, func(f profile.Frame) bool { return vmstructs.IsCollection(f.Func.Name) })
}
