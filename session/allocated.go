//go:build linux

package session

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"goprof/profile"
	"goprof/vmstructs"
)

// During any recording, goprof also reads how much memory threads allocate. HotSpot counts that for each Java thread
// (Thread::_allocated_bytes). So the numbers are exact, they cost a few reads of memory each second, and no thread is
// stopped for them.
//
// What a thread allocates between the last reading and its end is not known. The bytes of a virtual thread are counted
// for the carriers that ran it.

// AllocationSink is a Sink that also takes how much threads have allocated.
type AllocationSink interface {
	// Allocated is called about once a second, and at the end, for each thread that has allocated since the last call.
	// bytes is what the thread has allocated since it began.
	Allocated(at profile.Instant, t profile.Thread, bytes uint64)
}

const (
	// allocationShare: reading may take at most this fraction of the time (one part in 100).
	allocationShare = 100
	// maxAllocating bounds the number of counted threads. The account says if there were more.
	maxAllocating = 1 << 16
	// mostAllocating is the number of threads that an account names.
	mostAllocating = 10
)

// allocating identifies one Java thread. Addresses and thread numbers are reused, but hardly ever both together.
type allocating struct {
	addr  uint64
	nstid int
}

// allocated is what is known of such a thread.
type allocated struct {
	label string
	last  uint64 // the count at the last reading
	known bool   // last was read. If not, the next reading begins the count
	bytes uint64 // since the recording began
}

// allocations counts what each thread allocates during a recording.
type allocations struct {
	reader      *vmstructs.Allocations
	of          map[allocating]*allocated
	round       int
	full        bool
	pace        sparing
	first, last time.Time // readings
}

func (s *Session) allocations() *allocations {
	return &allocations{reader: s.VM.NewAllocations(), of: map[allocating]*allocated{}}
}

// countAllocated reads what threads have allocated so far. Later readings are compared with the first one.
func (r *recording) countAllocated() {
	a := r.allocated
	if !r.habits.counts || !a.reader.Known() {
		return
	}
	a.pace.doTimed(func() error {
		java, err := r.VM.Threads()
		if err != nil {
			return err
		}
		bytes := a.reader.Of(java)
		again, err := r.VM.Threads()
		if err != nil {
			return err
		}
		// The memory of an ended thread may belong to another thread by now. A count is used only if the address still
		// belongs to its thread.
		still := make(map[uint64]int, len(again))
		for i := range again {
			still[again[i].Addr] = again[i].NSTID
		}
		tids := r.dir.byNSTID()
		if slices.ContainsFunc(java, func(t vmstructs.Thread) bool { return t.NSTID != 0 && tids[t.NSTID] == 0 }) {
			r.dir.update(r.dir.allNames)
			tids = r.dir.byNSTID()
		}
		a.last = time.Now()
		if a.round++; a.round == 1 {
			a.first = a.last
		}
		for i := range java {
			if t := &java[i]; t.NSTID != 0 && still[t.Addr] == t.NSTID {
				n, ok := bytes[i].Get()
				r.noteAllocated(allocating{t.Addr, t.NSTID}, tids[t.NSTID], n, ok)
			}
		}
		return nil
	})
}

// noteAllocated counts what a thread has allocated since the last reading. tid is 0 if it is not known yet.
func (r *recording) noteAllocated(who allocating, tid int, total uint64, ok bool) {
	a := r.allocated
	th := a.of[who]
	if th == nil {
		if a.full = a.full || len(a.of) >= maxAllocating; a.full {
			return
		}
		th = &allocated{known: a.round > 1} // a thread that began after the first reading started at 0
		a.of[who] = th
	}
	if !ok {
		return
	}
	grown := total - th.last
	if !th.known || total < th.last {
		grown = 0
	}
	if grown > 0 && tid == 0 {
		return // the next reading counts them
	}
	th.last, th.known = total, true
	if grown > 0 && r.wantsThread(tid) {
		th.bytes += grown
		th.label = r.dir.label(tid)
		r.tellAllocated(tid, total)
	}
}

func (r *recording) wantsThread(tid int) bool {
	if r.opt.Wants == nil {
		return true
	}
	label := r.dir.label(tid)
	return r.opt.Wants(label[1 : len(label)-1])
}

func (r *recording) tellAllocated(tid int, total uint64) {
	if r.timed == nil {
		return
	}
	if sink, ok := r.timed.sink.(AllocationSink); ok && r.dir.threads[tid] != nil {
		when := now()
		sink.Allocated(r.timed.clock.at(when), r.dir.threads[tid].at(when), total)
	}
}

// account returns the account of allocations by thread. It is nil without two readings to compare.
func (a *allocations) account() *profile.Allocated {
	if a == nil || a.round < 2 { // nothing to compare with
		return nil
	}
	out := &profile.Allocated{Full: a.full, Time: a.last.Sub(a.first)}
	all := slices.Collect(maps.Keys(a.of))
	sort.Slice(all, func(i, j int) bool { // most first
		x, y := all[i], all[j]
		return cmp.Or(cmp.Compare(a.of[y].bytes, a.of[x].bytes), cmp.Compare(x.nstid, y.nstid),
			cmp.Compare(x.addr, y.addr)) < 0
	})
	for _, who := range all {
		th := a.of[who]
		out.Bytes += int64(th.bytes)
		if th.bytes > 0 && len(out.Threads) < mostAllocating {
			out.Threads = append(out.Threads, profile.ThreadBytes{Thread: th.label, Bytes: int64(th.bytes)})
		}
	}
	return out
}
