//go:build linux

package session

import "time"

// A thread may be sampled before its name is known: it has just been born, or a collector moves the name. The
// kernel's name stands in, which is the first fifteen bytes of Java's, or none. When the name is learnt, what was
// counted before is given it, so that a thread has one name in a recording.

// lateName is what a thread of unknown name was called, by its number.
type lateName struct {
	label string
	th    *listedThread // nil: not even the kernel's name was known
	when  time.Time
}

// lateFor is how long a thread is taken for the one that has its number later, though the directory has lost sight of
// it meanwhile (a listing may leave out threads that live). Numbers come round after thousands of threads.
const lateFor = 2 * refreshEvery

// threadLabel is the label under which a thread's own stacks are added.
func (r *recording) threadLabel(tid int, label string) string {
	th := r.dir.threads[tid]
	late, was := r.late[tid]
	switch {
	case th != nil && th.javaNamed:
		if was {
			delete(r.late, tid)
			r.relabel(late, th, r.pool(label))
		}
		return r.pool(label)
	case was && late.label == label && late.th == th:
		return label
	case was:
		r.relabel(late, th, label)
	}
	if len(r.late) >= maxPools {
		return r.pool(label)
	}
	if r.late == nil {
		r.late = map[int]lateName{}
	}
	r.late[tid] = lateName{label, th, time.Now()}
	return label
}

// relabel gives what was counted under a late name another one, if it is the same thread's. Else it is one of a
// pool's, if these are to be one.
func (r *recording) relabel(late lateName, th *listedThread, label string) {
	if late.th != th && time.Since(late.when) > lateFor {
		label = r.pool(late.label)
	}
	r.profile.Relabel(late.label, label)
}

// settleNames gives names to threads that had none when they were sampled last.
func (r *recording) settleNames() {
	for tid, late := range r.late {
		label := late.label
		th := r.dir.threads[tid]
		if th != nil && (th.javaNamed || r.dir.name(th) && th.javaNamed) {
			label = r.dir.label(tid)
			delete(r.late, tid)
		} else {
			th = late.th
		}
		r.relabel(late, th, r.pool(label))
	}
}
