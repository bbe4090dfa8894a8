//go:build linux

package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"goprof/process/procfs"
	"goprof/profile"
	"goprof/sampler/ptrace"
	"goprof/unwind"
	"goprof/vmstructs"
)

// Locks are read after all stacks, and no thread is stopped for them. goprof reads all locks in two rounds, and a dump
// has only locks that both rounds have found. A wait for another thread's lock is shown only if the thread's state, CPU
// time and number of turns on a CPU show that it did not run during the second round. So all such waits of a dump
// existed at one moment. A cycle of them is a deadlock, because a waiting thread cannot release the locks that it
// holds.

const (
	// lockRounds bounds how many rounds are read while threads come and go.
	lockRounds = 4
	// lockPatience bounds how long a dump waits for two things: for the collector, and for threads that wait for a lock
	// and yet want a CPU. Such threads were just stopped for their stacks. They sleep again as soon as they get a CPU.
	lockPatience = 500 * time.Millisecond
	firstPause   = time.Millisecond
	lastPause    = 32 * time.Millisecond
)

// LocksKnown returns nil if this JVM shows its locks. Otherwise the error says what the JVM lacks.
func (s *Session) LocksKnown() error {
	_, err := Ask(s, s.VM.NewLocks)
	return err
}

// lockReader fills in the locks of a dump.
type lockReader struct {
	d      *dumping
	k      *vmstructs.Locks
	proc   *procfs.Dir
	tids   map[uint64]int // of JavaThreads
	frames map[uint64][]vmstructs.LockFrame
	told   *profile.VirtualWaits // nil: virtual threads without a carrier are not asked for
}

// readLocks fills in what the threads hold and wait for.
func (d *dumping) readLocks() error {
	k, err := d.VM.NewLocks()
	if err != nil {
		return err
	}
	proc := procfs.OpenDir(d.Process.PID())
	defer proc.Close()
	r := lockReader{d: d, k: k, proc: proc, tids: map[uint64]int{}, frames: d.frames}
	if r.told = d.opt.Virtual; r.told != nil && !d.VM.HasVirtual() {
		r.told = nil
	}
	for tid, th := range d.dir.threads {
		if th.java.Addr != 0 {
			r.tids[th.java.Addr] = tid
		}
	}
	if err := r.read(); err != nil {
		return fmt.Errorf("%w: %w", ErrNoLocks, err)
	}
	r.nameVirtual()
	return nil
}

// ErrNoLocks is returned with the threads of a dump whose locks could not be read.
var ErrNoLocks = errors.New("locks could not be read")

// lockRound holds the locks that were read in one round, by JavaThread.
type lockRound struct {
	threads map[uint64]*vmstructs.ThreadLocks
	// unmounted are virtual threads without a carrier, by number.
	unmounted map[uint64]vmstructs.UnmountedLocks
	settled   bool
	// still are the threads that did not run during the round.
	still map[uint64]bool
}

// read reads rounds until two consecutive ones agree, or until there were too many.
func (r *lockReader) read() error {
	var last *lockRound
	began, pause := time.Now(), firstPause
	for rounds := 0; ; rounds++ {
		now, err := r.round(last)
		if err != nil {
			return err
		}
		if last != nil {
			done := r.unconfirmed(last, now)
			patient := done == pending && time.Since(began) < lockPatience && r.d.opt.cancelled() == nil
			whole := r.told == nil || rounds > 1 // the search for virtual threads comes after the first round
			if done == confirmedAll && whole || !patient && rounds >= lockRounds {
				r.tell(last, now)
				r.d.whileResting(r.k, r.proc, func() { r.tellUnmounted(last, now) })
				return nil
			}
			if patient {
				time.Sleep(pause)
				pause = min(2*pause, lastPause)
			}
		}
		if r.told != nil && (last == nil || !now.settled) {
			r.findUnmounted()
		}
		last = now
	}
}

// roundGain is what another round would add.
type roundGain int

const (
	confirmedAll roundGain = iota // nothing
	changing                      // waits change: another round may confirm more of them, or fewer
	pending                       // some threads only had to sleep again, or a collector was at work
)

// unconfirmed returns whether all waits are confirmed, and otherwise what another round would add.
func (r *lockReader) unconfirmed(last, now *lockRound) roundGain {
	if !now.settled || !last.settled {
		return pending
	}
	p := confirmedAll
	for addr, t := range now.threads {
		if t.Wants.How == 0 || confirmed(addr, last, now) {
			continue
		}
		if was := last.threads[addr]; was != nil && was.Wants == t.Wants {
			return pending
		}
		p = changing
	}
	for id, t := range now.unmounted {
		if accuses(&t.Wants) && !confirmedUnmounted(id, last, now) {
			p = changing // a waiting thread has not moved: another round is needed, but no CPU for that thread
		}
	}
	return p
}

// round reads all locks once. last is the previous round, or nil. With last, round also checks which of the threads
// that waited for another thread in last run during this round.
func (r *lockReader) round(last *lockRound) (*lockRound, error) {
	threads, err := r.d.VM.Threads()
	for range lockRounds { // the list may change while it is read
		if err == nil {
			break
		}
		threads, err = r.d.VM.Threads()
	}
	if err != nil {
		return nil, err
	}
	r.forgetNew(threads)
	watched := map[uint64]stillness{}
	if last != nil {
		for addr, t := range last.threads {
			if accuses(&t.Wants) && r.tids[addr] != 0 {
				watched[addr] = r.before(r.tids[addr])
			}
		}
	}
	var all []vmstructs.ThreadLocks
	var settled bool
	if !r.d.whileResting(r.k, r.proc, func() { all, settled = r.k.Round(threads, r.frames) }) {
		settled = false
	}
	now := &lockRound{settled: settled,
		threads: make(map[uint64]*vmstructs.ThreadLocks, len(all)), still: map[uint64]bool{},
		unmounted: map[uint64]vmstructs.UnmountedLocks{}}
	for _, v := range r.k.Unmounted() {
		now.unmounted[v.ID] = v
	}
	for i := range all {
		now.threads[all[i].Thread.Addr] = &all[i]
	}
	for addr, before := range watched {
		if r.stoodStill(r.tids[addr], before) {
			now.still[addr] = true
		}
	}
	return now, nil
}

// forgetNew removes the addresses of new threads, which are not in the dump, from tids. The JavaThread of a new thread
// may be at the address of one that has ended.
func (r *lockReader) forgetNew(threads []vmstructs.Thread) {
	for _, t := range threads {
		tid, ok := r.tids[t.Addr]
		if th := r.d.dir.threads[tid]; ok && (th == nil || th.java.NSTID != t.NSTID) {
			delete(r.tids, t.Addr)
		}
	}
}

// stillness is the state of a thread before a round. If the kernel reports the thread's CPU time, motion is not read: a
// thread that ran during the round has more CPU time after it.
type stillness struct {
	charged procfs.Schedstat
	told    bool
	motion  ptrace.Motion
}

func (r *lockReader) before(tid int) (s stillness) {
	if s.charged, s.told = ptrace.ChargeOf(r.proc, tid); !s.told {
		s.motion, _ = ptrace.MotionOf(r.proc, tid)
	}
	return s
}

// stoodStill reports whether a thread has not run since before was read.
func (r *lockReader) stoodStill(tid int, before stillness) bool {
	m, ok := ptrace.MotionOf(r.proc, tid)
	if !ok || m.StillRuns() {
		return false
	}
	if before.told {
		return m.Charged == before.charged
	}
	return m == before.motion
}

// accuses reports whether a thread waits for a lock that another thread holds, or may hold.
func accuses(w *vmstructs.Wanted) bool {
	switch w.How {
	case vmstructs.WaitToEnter, vmstructs.WaitToInitialize:
		return true
	case vmstructs.WaitToUnpark:
		return w.Kind == vmstructs.ExclusiveLock || w.Kind == vmstructs.SharedLock || w.Kind == vmstructs.TaskResult
	}
	return false
}

// confirmed reports whether the wait of a thread may be shown.
func confirmed(addr uint64, last, now *lockRound) bool {
	was, is := last.threads[addr], now.threads[addr]
	if was == nil || was.Thread.NSTID != is.Thread.NSTID || was.Virtual != is.Virtual {
		return false
	}
	a, b := was.Wants, is.Wants
	if !now.settled || !last.settled {
		if b.Monitor == 0 {
			return false
		}
		a.Object, b.Object, a.Class, b.Class = 0, 0, "", "" // the object may move; its monitor does not
	}
	return a == b && (!accuses(&b) || now.still[addr])
}

// mayWait reports whether a thread may have waited for another thread's lock in both rounds, although that is not
// confirmed. Waits for tasks do not count: they make no deadlock.
func mayWait(addr uint64, last, now *lockRound) bool {
	was, is := last.threads[addr], now.threads[addr]
	if was == nil || !accuses(&is.Wants) || is.Wants.Kind == vmstructs.TaskResult ||
		was.Thread.NSTID != is.Thread.NSTID {
		return false
	}
	return was.Wants == is.Wants || !now.settled || !last.settled
}

// tell adds the locks that both rounds have found to the dump.
func (r *lockReader) tell(last, now *lockRound) {
	for addr, t := range now.threads {
		i, ok := r.d.byTID[r.tids[addr]]
		if !ok {
			continue
		}
		out := &r.d.threads[i]
		if r.d.opt.Bare {
			out.Stack.Virtual.ID = t.Virtual
		}
		if t.Wants.How != 0 && confirmed(addr, last, now) {
			out.WaitsFor = r.wanted(&t.Wants)
			out.WaitsFor.Alone = unwind.WantsAlone(out.WaitsFor, &out.Stack)
		} else {
			out.Unconfirmed = mayWait(addr, last, now)
		}
		if was := last.threads[addr]; was != nil && was.Thread.NSTID == t.Thread.NSTID {
			out.Holds = r.held(was.Holds, t.Holds, &out.Stack)
		}
	}
}

func (r *lockReader) wanted(w *vmstructs.Wanted) *profile.WantedLock {
	return &profile.WantedLock{Lock: unwind.LockOf(&w.Lock), How: profile.LockWait(w.How), Timed: w.Timed,
		Owner: r.ref(&w.Owner)}
}

// held returns the locks that both rounds have found.
func (r *lockReader) held(was, is []vmstructs.Held, stack *profile.Stack) (held []profile.HeldLock) {
	type key struct{ monitor, object uint64 }
	keyOf := func(l *vmstructs.Lock) key {
		if l.Monitor != 0 {
			return key{monitor: l.Monitor}
		}
		return key{object: l.Object}
	}
	before := make(map[key]bool, len(was))
	for i := range was {
		before[keyOf(&was[i].Lock)] = true
	}
	for i := range is {
		if h := &is[i]; before[keyOf(&h.Lock)] {
			held = append(held, unwind.HeldLockOf(h, stack))
		}
	}
	return held
}

// ref returns the thread of this dump that owns a lock. It is empty if the owner is not in the dump.
func (r *lockReader) ref(o *vmstructs.LockOwner) (ref profile.ThreadRef) {
	if o.Thread != 0 {
		i, ok := r.d.byTID[r.tids[o.Thread]]
		if !ok {
			return ref // the owner has just begun
		}
		t := &r.d.threads[i]
		ref.TID, ref.Name = t.TID, t.Name
		if o.Virtual != 0 {
			if ref.Name = o.Name; t.Stack.Virtual.ID == o.Virtual {
				ref.Name = cmp.Or(t.Stack.Virtual.Name, o.Name)
			}
		}
	} else {
		ref.Name = o.Name
	}
	ref.Virtual = o.Virtual
	return ref
}

// virtualNames bounds the time of the search for names of virtual threads: there may be millions of them.
const virtualNames = time.Second

// nameVirtual finds the names of owners that are virtual threads. For an owner without a carrier, the monitor has only
// its number. For an owner with a carrier, ZGC may have moved its name.
func (r *lockReader) nameVirtual() {
	unnamed := map[uint64][]*profile.ThreadRef{}
	for i := range r.d.threads {
		if w := r.d.threads[i].WaitsFor; w != nil && w.Owner.Virtual != 0 && w.Owner.Name == "" {
			unnamed[w.Owner.Virtual] = append(unnamed[w.Owner.Virtual], &w.Owner)
		}
	}
	if len(unnamed) == 0 {
		return
	}
	c := r.d.VM.NewContinuations().ReadFrom(r.d.timed(virtualNames))
	platform, err := r.d.VM.Threads()
	if c == nil || err != nil {
		return
	}
	// Owners that cannot be read stay without a name.
	r.d.whileResting(c, r.proc, func() {
		_, _ = c.EachVirtual(platform, func(v *vmstructs.VirtualThread) {
			for _, ref := range unnamed[v.ID] {
				ref.Name = v.Name
			}
		})
	})
}

// keepFrames notes where the Java frames of the stack are that was just walked.
func (d *dumping) keepFrames(th *listedThread, stack *profile.Stack) {
	if !d.locks || th == nil || th.java.StackSize == 0 {
		return
	}
	d.frames[th.java.Addr] = unwind.LockFrames(stack.Frames, d.Walker.InterpretedFrames(), th.java)
}
