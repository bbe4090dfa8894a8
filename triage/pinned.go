package triage

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"goprof/profile"
	"goprof/profile/naming"
)

// A virtual thread that waits normally gives up its carrier. A pinned virtual thread cannot (because of a native frame,
// a class initialiser, or before JDK 24 a monitor). Then the carrier waits, too, and there are only as many carriers as
// CPUs. One thread that is pinned for a moment does no harm. Many pinned threads at all readings do. More than half of
// the carriers are required: with two CPUs, a thread that waits in native code for ever takes half of them, which is
// not a fault yet.
const pinnedShare = 0.5 // of the carriers, at each reading

func pinned(x *exam) *suspicion {
	if _, ok := x.last.JVM.Virtual.Mounted.Get(); !ok {
		return nil // most JVMs run no virtual threads
	}
	carriers := x.carriers()
	if len(x.Readings) < 3 {
		return x.cannotTell("it was looked at too seldom")
	}
	if carriers == 0 {
		return nil
	}
	may, ok := x.parallelism()
	if !ok {
		return x.cannotTell("how many carriers there may be is not known")
	}
	carriers = max(carriers, may)
	least := carriers
	for _, r := range x.Readings {
		least = min(least, len(r.JVM.Virtual.Pinned))
	}
	share := float64(least) / float64(carriers)
	if least == 0 || share <= pinnedShare {
		return nil
	}
	s := &suspicion{sure: scaled(share, pinnedShare, 0.85, 0.93), severity: profile.Warning,
		claim: fmt.Sprintf("Virtual threads hold their carriers while they wait: %d of %d carriers were pinned all the time.",
			least, carriers),
		next: fmt.Sprintf("goprof dump --pid %d  (what the pinned threads wait for)", x.PID)}
	for _, p := range x.last.JVM.Virtual.Pinned[:min(4, len(x.last.JVM.Virtual.Pinned))] {
		line := fmt.Sprintf("virtual thread #%d", p.ID)
		if p.Name != "" {
			line += fmt.Sprintf(" %q", p.Name)
		}
		if t := x.lastDump().thread(p.Carrier); t != nil {
			line += fmt.Sprintf(" on %q, in %s", t.Name, topJava(&t.Stack))
		}
		s.evidence = append(s.evidence, line)
		if load := x.loadOf(p.Carrier); load != "" && len(s.evidence) == 1 {
			s.evidence = append(s.evidence, load)
		}
	}
	return s
}

// lastDump is never nil.
func (x *exam) lastDump() *Dump {
	if len(x.Dumps) == 0 {
		return &Dump{}
	}
	return &x.Dumps[len(x.Dumps)-1]
}

// parallelism returns how many carriers there may be. The present carriers are only as many as were needed so far, and
// the next virtual thread may get a new one. Without a property the limit is Runtime.availableProcessors().
func (x *exam) parallelism() (n int, ok bool) {
	if n, ok := x.last.JVM.Virtual.Parallelism.Get(); ok {
		return n, true
	}
	if n, err := strconv.Atoi(x.last.JVM.Flags["ActiveProcessorCount"]); err == nil && n > 0 {
		return n, true
	}
	allowed, ok := x.last.Process.CPUsAllowed.Get()
	n = int(allowed)
	if limit, limited := x.last.Cgroup.CPUs.Get(); limited && limit < float64(n) {
		n = max(int(math.Ceil(limit)), 1)
	}
	return n, ok
}

// carriers returns the number of threads in the pool of carriers. The pool is that of the threads that now run a
// virtual thread.
func (x *exam) carriers() (n int) {
	var pools []string
	for _, p := range x.last.JVM.Virtual.Pinned {
		for i := range x.last.Threads {
			if t := &x.last.Threads[i]; t.TID == p.Carrier {
				pools = append(pools, naming.Pool(t.Name))
			}
		}
	}
	for i := range x.last.Threads {
		if slices.Contains(pools, naming.Pool(x.last.Threads[i].Name)) {
			n++
		}
	}
	return n
}
