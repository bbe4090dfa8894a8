package profile

import (
	"cmp"
	"time"
)

// ThreadMoves is what one thread did over several dumps.
type ThreadMoves struct {
	*ThreadDump // as in the last dump that has it
	// Still: the thread was in all dumps, with the same stack in the same state, and used no CPU time between them.
	Still bool
	// CPU is the thread's CPU time between each dump and the next. It has no entry for a pair of dumps without the thread.
	CPU   []time.Duration
	Dumps int // number of dumps with the thread
}

// CPUSum returns the thread's total CPU time.
func (m *ThreadMoves) CPUSum() (sum time.Duration) {
	for _, d := range m.CPU {
		sum += d
	}
	return sum
}

// restless is how much CPU time a BLOCKED thread may use in a second and still count as not moving. Up to JDK 23, one
// of the threads that wait for a monitor wakes up about once a second to try it (runtime/objectMonitor.cpp,
// MAX_RECHECK_INTERVAL).
const restless = 100 * time.Microsecond

// Moves compares dumps of one process, the oldest first. Threads are in the order of the last dump. After them come
// threads that are only in earlier dumps, in the order of those dumps.
func Moves(dumps []*Dump) (all []ThreadMoves) {
	known := map[ThreadRef]bool{}
	byRef := make([]map[ThreadRef]*ThreadDump, len(dumps))
	for i, d := range dumps {
		byRef[i] = make(map[ThreadRef]*ThreadDump, len(d.Threads))
		for k := range d.Threads {
			byRef[i][d.Threads[k].ref()] = &d.Threads[k]
		}
	}
	for i := len(dumps) - 1; i >= 0; i-- {
		for k := range dumps[i].Threads {
			t := &dumps[i].Threads[k]
			if ref := t.ref(); !known[ref] {
				known[ref] = true
				all = append(all, movesOf(t, dumps, byRef))
			}
		}
	}
	return all
}

// ref identifies a thread in several dumps. It has no name, because names may change.
func (t *ThreadDump) ref() ThreadRef {
	if t.TID == 0 && t.Virtual != nil {
		return ThreadRef{Virtual: t.Virtual.ID}
	}
	return ThreadRef{TID: t.TID}
}

// movesOf returns how a thread moved between dumps. byRef has the threads of each dump.
func movesOf(last *ThreadDump, dumps []*Dump, byRef []map[ThreadRef]*ThreadDump) ThreadMoves {
	m := ThreadMoves{ThreadDump: last, CPU: make([]time.Duration, max(len(dumps)-1, 0))}
	still := len(dumps) > 1
	var before *ThreadDump
	for i := range dumps {
		t := byRef[i][last.ref()]
		if t != nil {
			m.Dumps++
		}
		if i > 0 && t != nil && before != nil {
			m.CPU[i-1] = max(0, t.CPU-cmp.Or(before.CPUAfter, before.CPU))
			still = still && t.stoodSince(before, m.CPU[i-1], dumps[i].At.Sub(dumps[i-1].At))
		}
		before = t
	}
	m.Still = still && m.Dumps == len(dumps)
	return m
}

// stoodSince reports whether the thread has not moved since an earlier dump.
func (t *ThreadDump) stoodSince(before *ThreadDump, cpu, length time.Duration) bool {
	allowed := time.Duration(0)
	if t.State == "BLOCKED" {
		allowed = time.Duration(length.Seconds() * float64(restless))
	}
	return t.Err == "" && before.Err == "" && t.State == before.State && cpu <= allowed && sameStack(&t.Stack,
		&before.Stack)
}

func sameStack(a, b *Stack) bool {
	if len(a.Frames) != len(b.Frames) || len(a.Frames) == 0 || a.Truncated != b.Truncated || a.Mounted != b.Mounted ||
		a.Virtual.ID != b.Virtual.ID {
		return false
	}
	for i := range a.Frames {
		x, y := &a.Frames[i], &b.Frames[i]
		if x.Line != y.Line || x.BCI != y.BCI || x.SP != y.SP || x.PC != y.PC || x.name() != y.name() {
			return false
		}
	}
	return true
}

func (f *Frame) name() string {
	if f.Func == nil {
		return ""
	}
	return f.Func.Name
}
