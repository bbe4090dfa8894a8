package triage

import (
	"fmt"
	"slices"

	"goprof/profile"
	"goprof/profile/contention"
)

// Threads of a healthy program wait for a lock for moments. A lock is the finding if several threads spend most of
// their time waiting for it. A thread that waits for a notification (a pool's thread without work) does not wait for a
// lock.
const (
	lockedThreads = 2   // one waiting thread may be intended, as in an exchange
	lockedShare   = 0.7 // of the time of each of them
)

func lockContention(x *exam) *suspicion {
	if x.Wall == nil {
		return x.cannotTell("there is no recording of what threads wait for")
	}
	dead := x.deadlocked()
	victims, site := x.victims(dead)
	if len(victims) < lockedThreads {
		return nil
	}
	class := x.lockClass(dead)
	share := 0.0
	for _, tid := range victims {
		share += x.waits[tid].lockedShare() / float64(len(victims))
	}
	s := &suspicion{sure: scaled(share, lockedShare, 0.75, 0.91), severity: profile.Warning,
		claim: fmt.Sprintf("%d threads wait for locks for %s of their time.", len(victims), percent(share)),
		next:  fmt.Sprintf("goprof locks --pid %d  (who holds it, and who waits)", x.PID)}
	if class != "" {
		s.claim = fmt.Sprintf("%d threads wait for locks for %s of their time, most for one of class %s%s.", len(victims),
			percent(share), class, x.heldBy(class, dead))
	}
	var names []string
	for _, tid := range victims {
		names = append(names, x.waits[tid].name)
	}
	s.evidence = append(s.evidence, "they are "+few(names, 5))
	if site != "" {
		s.evidence = append(s.evidence, "most want it in "+site)
	}
	s.evidence = append(s.evidence, x.ownerText(class, dead)...)
	return s
}

// victims returns the threads that wait for locks for most of their time, and the place where most of them wait. The
// threads of a deadlock, and those that wait behind them, are left out: the rule deadlock reports them.
func (x *exam) victims(dead map[int]bool) (tids []int, site string) {
	sites := map[string]int64{}
	for tid, w := range x.waits {
		if w.lockedShare() < lockedShare || dead[tid] || w.total < leastLooks {
			continue
		}
		tids = append(tids, tid)
		for m, n := range w.sites {
			sites[m] += n
		}
	}
	slices.Sort(tids)
	if names := profile.ByCount(sites); len(names) > 0 {
		site = names[0]
	}
	return tids, site
}

// lockClass returns the class of the locks that most threads wait for, over all dumps.
func (x *exam) lockClass(dead map[int]bool) string {
	classes := map[string]int{}
	for _, d := range x.dumpsWithLocks() {
		for i := range d.Threads {
			if w := d.Threads[i].WaitsFor; w != nil && w.OfAnother() && !dead[d.Threads[i].TID] {
				classes[w.Class]++
			}
		}
	}
	if names := profile.ByCount(classes); len(names) > 0 {
		return names[0]
	}
	return ""
}

// leastLooks is the least number of looks to judge a share of a thread's time.
const leastLooks = 20

// deadlocked returns the threads of rings, and those that wait behind the rings.
func (x *exam) deadlocked() map[int]bool {
	dead := map[int]bool{}
	dumps := x.dumpsWithLocks()
	if len(dumps) == 0 {
		return dead
	}
	threads := dumps[len(dumps)-1].Threads
	var pending []*contention.Node
	for _, n := range contention.New(threads).Chains {
		if n.Deadlock >= 0 {
			pending = append(pending, n)
		}
	}
	for len(pending) > 0 { // the threads behind rings form trees, so each thread comes once
		n := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], n.Waiting...)
		dead[threads[n.Thread].TID] = true
	}
	for _, r := range rings(dumps[len(dumps)-1]) {
		for _, t := range r {
			dead[t.TID] = true
		}
	}
	return dead
}

// ownerText names, for each dump, the owner of the lock of that class that most threads waited for.
func (x *exam) ownerText(class string, dead map[int]bool) (lines []string) {
	dumps := x.dumpsWithLocks()
	if len(dumps) == 0 {
		return []string{"who holds it is not known: what threads hold could not be read"}
	}
	for n, d := range dumps {
		lock, waiters, owner := busiest(d, class, dead)
		if open := profile.Unconfirmed(d.Threads); open > 0 {
			lines = append(lines, fmt.Sprintf("dump %d: whose locks %s for could not be confirmed", n+1, whoWait(open)))
		}
		if waiters == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("dump %d: %s wait for %s%s", n+1, counted(waiters, "thread"), lock.Text(),
			d.heldBy(owner)))
	}
	return lines
}

// heldBy names the owner of the lock of that class that most threads waited for, if all dumps show the same owner.
// Otherwise it returns "".
func (x *exam) heldBy(class string, dead map[int]bool) (text string) {
	var holder profile.ThreadRef
	for _, d := range x.dumpsWithLocks() {
		_, _, owner := busiest(d, class, dead)
		if owner == (profile.ThreadRef{}) || holder != (profile.ThreadRef{}) && owner != holder {
			return ""
		}
		holder, text = owner, d.heldBy(owner)
	}
	return text
}

// heldBy names the holder of a lock for use in a sentence, with the holder's place. It returns "" if the holder is not
// known.
func (d *Dump) heldBy(holder profile.ThreadRef) string {
	if holder == (profile.ThreadRef{}) {
		return ""
	}
	text := ", held by " + holder.String()
	if t := d.thread(holder.TID); t != nil && len(t.Stack.Frames) > 0 {
		text += " in " + topJava(&t.Stack)
	}
	return text
}

// busiest returns the lock of a class that most threads of a dump wait for.
func busiest(d *Dump, class string, dead map[int]bool) (lock profile.Lock, waiters int, owner profile.ThreadRef) {
	counts := map[uint64]int{}
	for i := range d.Threads {
		w := d.Threads[i].WaitsFor
		if w == nil || !w.OfAnother() || w.Class != class || dead[d.Threads[i].TID] {
			continue
		}
		counts[w.ID]++
		if counts[w.ID] > waiters {
			if lock.ID != w.ID {
				owner = profile.ThreadRef{}
			}
			lock, waiters = w.Lock, counts[w.ID]
		}
		if w.ID == lock.ID && w.Owner != (profile.ThreadRef{}) {
			owner = w.Owner
		}
	}
	return lock, waiters, owner
}
