//go:build linux

package vitals

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"goprof/process/maybe"
	"goprof/process/procfs"
	"goprof/vmstructs"
)

type knownThread struct {
	began uint64
	ns    int       // its number in the JVM's namespace
	round time.Time // time of the last reading that saw it
}

// renameEvery is the time after which a thread's name is read again, because programs rename the threads of pools.
const renameEvery = 3 * time.Second

func (v *Vitals) readKernelThreads(r *Reading) {
	tids, err := v.p.ThreadIDs()
	if err != nil {
		return
	}
	if len(tids) > MaxThreads {
		r.Unread = len(tids) - MaxThreads
		tids = tids[:MaxThreads]
	}
	r.Threads = make([]Thread, 0, len(tids))
	for _, tid := range tids {
		if t, ok := v.readKernelThread(tid, r.At); ok {
			r.Threads = append(r.Threads, t)
		}
	}
	maps.DeleteFunc(v.threads, func(_ int, k *knownThread) bool { return k.round != r.At })
}

// readKernelThread reads one thread. ok is false if the thread has ended.
func (v *Vitals) readKernelThread(tid int, round time.Time) (t Thread, ok bool) {
	text := v.dir.Read(tid, "stat")
	stat, ok := procfs.ParseStat(text)
	if !ok || !stat.Alive() {
		return t, false
	}
	t = Thread{TID: tid, Name: procfs.Comm(text), State: stat.State, began: stat.Start}
	if s, ok := procfs.ParseSchedstat(v.dir.Read(tid, "schedstat")); ok {
		t.CPU, t.Waited = maybe.Known(nanoseconds(s.Ran)), maybe.Known(nanoseconds(s.Waited))
		t.Turns = maybe.Known(s.Turns)
	} else {
		t.CPU = maybe.Known(procfs.Ticks(stat.Ticks)) // a kernel without CONFIG_SCHED_INFO
	}
	k := v.threads[tid]
	if k == nil || k.began != stat.Start {
		k = &knownThread{began: stat.Start}
		if k.ns, ok = v.innerTID(tid); !ok {
			return t, false
		}
		v.threads[tid] = k
	}
	k.round = round
	return t, true
}

func (v *Vitals) innerTID(tid int) (int, bool) {
	ns, err := v.p.NSTID(tid)
	return ns, err == nil
}

func nanoseconds(n uint64) time.Duration { return time.Duration(min(n, 1<<62)) }

func (v *Vitals) mergeThreads(r *Reading, part *javaPart) {
	byNS := make(map[int]int, len(part.threads))
	for i, t := range part.threads {
		if t.NSTID != 0 {
			byNS[t.NSTID] = i
		}
	}
	outer := make(map[int]int, len(r.Threads))
	for i := range r.Threads {
		t := &r.Threads[i]
		k := v.threads[t.TID]
		if k == nil {
			continue
		}
		outer[k.ns] = t.TID
		at, isJava := byNS[k.ns]
		if !isJava {
			t.Role = nativeRole(t.Name, part.ok)
			continue
		}
		java := &part.threads[at]
		if name := part.names[at]; name != "" {
			t.Name = name
		}
		t.Role, t.Allocated = javaRole(java, t.Name), part.allocated[at]
	}
	r.JVM.Safepoints.HoldOuts = outerTIDs(r.JVM.Safepoints.HoldOuts, outer)
	for _, m := range part.mounted {
		if m.IsPinned() {
			r.JVM.Virtual.Pinned = append(r.JVM.Virtual.Pinned,
				PinnedThread{Carrier: outer[m.Carrier], ID: m.ID, Name: m.Name})
		}
	}
}

// outerTIDs converts numbers of the JVM's namespace to numbers of goprof's namespace.
func outerTIDs(inner []int, outer map[int]int) (list []int) {
	for _, ns := range inner {
		if tid, ok := outer[ns]; ok {
			list = append(list, tid)
		}
	}
	slices.Sort(list)
	return list
}

// javaName is a Java thread's name as it was a moment ago.
type javaName struct {
	tid  int // its NSTID, because another JavaThread may take the place of an ended one
	name string
	at   time.Time
}

// nameThreads returns the Java name of each thread. A name is empty if there is none, or while a collector moves it. A
// name is read again every few seconds.
func (v *Vitals) nameThreads(threads []vmstructs.Thread, now time.Time) []string {
	names := make([]string, len(threads))
	known := make(map[uint64]javaName, len(threads))
	for i, t := range threads {
		n := v.names[t.Addr]
		if n.tid != t.NSTID {
			n = javaName{tid: t.NSTID}
		}
		if n.name == "" || !v.work && now.Sub(n.at) >= renameEvery { // a thread's purpose does not change
			if name, err := v.health.Name(t); err == nil && name != "" {
				n.name, n.at = name, now
			}
		}
		names[i], known[t.Addr] = n.name, n
	}
	v.names = known
	return names
}

// nativeRole returns the role of a thread that runs no Java code. If the Java threads could not be listed, the thread
// may run some, but not under these names.
func nativeRole(comm string, listed bool) Role {
	switch vmstructs.NativeRoleOf(comm) {
	case vmstructs.OfGC:
		return Collection
	case vmstructs.OfVM:
		return VMInternal
	}
	if !listed {
		return ""
	}
	return Foreign
}

func javaRole(t *vmstructs.Thread, name string) Role {
	switch {
	case t.Compiler:
		return Compilation
	case vmstructs.IsVMJavaThread(name):
		return VMInternal
	}
	return Application
}

func parseUint(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}
