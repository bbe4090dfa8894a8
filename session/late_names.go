//go:build linux

package session

import "time"

// A thread may be sampled before its name is known: it has just begun, or a collector moves the name. Until then its
// samples have the kernel's name (the first fifteen bytes of Java's name) or none. Once the name is known, samples that
// were counted before get that name, too. So a thread has one name in a recording.

// lateName is the name under which samples of a thread were counted before its own name was known.
type lateName struct {
	label string
	th    *listedThread // nil: not even the kernel's name was known
	when  time.Time     // of the last sample under it
}

// lateFor: if a thread was last seen less than this long ago, a thread with the same number counts as the same thread.
// A listing may leave out living threads, and numbers are used again only after thousands of threads.
const lateFor = 2 * refreshEvery

// threadLabel returns the label for a thread's own stacks.
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
		late.when = time.Now() // on a busy machine the next listing may come late
		r.late[tid] = late
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

// relabel renames samples that were counted under a late name, if they belong to the same thread. If they do not, and
// pools are merged, the late name becomes the name of its pool.
func (r *recording) relabel(late lateName, th *listedThread, label string) {
	r.releaseHeld()
	if late.th != th && !th.hadNumber(late.when) {
		label = r.pool(late.label)
	}
	r.profile.Relabel(late.label, label)
}

// hadNumber reports whether the thread already had its number at a given time: it began before that, however late it
// was listed.
func (th *listedThread) hadNumber(when time.Time) bool {
	if th != nil && th.kernel.Start != 0 {
		if began := since(th.kernel.Start); !began.IsZero() {
			return !began.After(when)
		}
	}
	return time.Since(when) <= lateFor
}

// settleNames gives names to threads that had none at their last samples.
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
