//go:build linux

package ptrace

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/osthread"
)

// The processes and the preempter of these tests.
const (
	ours         = 100
	ourPreempter = 101
	sampled      = 200
	stranger     = 300
)

// newPreempter makes a preempter that no OS thread runs, with notes that a test writes.
func newPreempter() *preempter {
	l := &shared{pid: ours}
	l.at.Store(-1)
	l.patience.Store(1_000_000)
	l.wanted[sampled/32].Store(1 << (sampled % 32))
	data := make([]byte, 4096)
	return &preempter{shared: l, number: 3, tid: ourPreempter, head: new(uint64), notes: unsafe.Pointer(&data[0]),
		size: 4096,
		all:  true}
}

// comes notes the switch from a thread to the preempter, as the kernel does.
func (h *preempter) comes(kind, misc uint32, pid, tid, came int32) {
	*h.head -= 24
	data := unsafe.Slice((*byte)(h.notes), h.size)
	for i, word := range []uint32{kind, misc | 24<<16, uint32(pid), uint32(tid), ours, uint32(came)} {
		binary.LittleEndian.PutUint32(data[(*h.head+uint64(4*i))&(h.size-1):], word)
	}
}

// TestWhoWasHere: a preempter finds out from the kernel's newest note from which thread it took the CPU.
func TestWhoWasHere(t *testing.T) {
	h := newPreempter()
	for i, c := range []struct {
		kind, misc     uint32
		pid, tid, came int32
		want           int
	}{
		{NoteOfSwitch, 0, sampled, sampled + 1, ourPreempter, wanted},
		{NoteOfSwitch, 0, stranger, stranger, ourPreempter, other},
		{NoteOfSwitch, 0, sampled + wantedNumbers, 7, ourPreempter, wanted}, // the sampling thread checks the number
		{NoteOfSwitch, 0, 0, 0, ourPreempter, nobody},
		{NoteOfSwitch, 0, ours, ours + 7, ourPreempter, ourselves},
		{NoteOfSwitch, 0, -1, -1, ourPreempter, other},       // a thread that has ended
		{NoteOfSwitch, 0, sampled, sampled, 5, noSwitch},     // the note is not about the switch to the preempter
		{NoteOfSwitch + 1, 0, sampled, sampled, 5, noSwitch}, // another note
		{NoteOfSwitch, NoteOfOut, sampled, sampled, ourPreempter, noSwitch},
	} {
		for range 300 { // more notes than the ring has room for
			h.comes(c.kind, c.misc, c.pid, c.tid, c.came)
			if got := h.whoWasHere(); got != c.want {
				t.Fatalf("%d: %d, want %d", i, got, c.want)
			}
		}
	}
	if got := h.whoWasHere(); got != noSwitch {
		t.Errorf("nobody has come since: %d", got)
	}
}

// TestCPUIsIdle: a CPU counts as idle until some visits in a row have met a thread there. Threads of goprof do not
// count.
func TestCPUIsIdle(t *testing.T) {
	h := newPreempter()
	for i, c := range []struct{ pid, metInARow int32 }{
		{stranger, 1}, {sampled, 2}, {ours, 2}, {stranger, 3}, {stranger, 3}, {0, 0}, {ours, 0}, {stranger, 1},
	} {
		h.comes(NoteOfSwitch, 0, c.pid, c.pid, ourPreempter)
		h.whoWasHere()
		if got := h.metInARow.Load(); got != c.metInARow {
			t.Errorf("%d: %d, want %d", i, got, c.metInARow)
		}
	}
}

// TestNoCPUIsIdle: in another namespace of process numbers a thread that goprof cannot name has the number 0, as the
// idle thread has. So no CPU counts as idle.
func TestNoCPUIsIdle(t *testing.T) {
	h := newPreempter()
	h.all = false
	for range takenFor {
		h.comes(NoteOfSwitch, 0, stranger, stranger, ourPreempter)
		h.whoWasHere()
	}
	h.comes(NoteOfSwitch, 0, 0, 0, ourPreempter)
	if who := h.whoWasHere(); who != nobody || h.metInARow.Load() != takenFor {
		t.Errorf("%d was here, and %d visits have met somebody", who, h.metInARow.Load())
	}
}

// TestPreempterWaitsLonger: the longer the sampling thread is busy, the longer a preempter waits before it looks again.
// While the sampling thread rests, the preempter waits for the end of that rest.
func TestPreempterWaitsLonger(t *testing.T) {
	h := newPreempter()
	h.shared.caller.Store(callerBusy)
	const now = 1 << 20
	for i, want := range []int64{1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8, 8} {
		if h.maySee(other, now); h.again != now+want*tryAgain {
			t.Errorf("%d: after %d us", i, (h.again-now)/1000)
		}
	}
	h.shared.rest.Store(now + 9_000_000)
	if h.maySee(other, now); h.again != now+9_000_000 {
		t.Errorf("while we rest: after %d us", (h.again-now)/1000)
	}
	h.shared.rest.Store(0)
	h.planned[0], h.again = plannedVisit{2 * now, 1}, 0
	h.put.Store(1)
	if h.next(); h.maySee(other, now) || h.again != now+tryAgain {
		t.Errorf("the next visit: after %d us", (h.again-now)/1000)
	}
}

// TestPreempterWatches: if other threads are stopped meanwhile, the preempter that has called soon checks whether the
// visit waits.
func TestPreempterWatches(t *testing.T) {
	h := newPreempter()
	h.shared.at.Store(h.number)
	const now = 1_000_000_000
	for hasty, want := range map[uint32]int64{0: watchAfter, 1: stopWithin} {
		h.shared.hasty.Store(hasty)
		h.shared.caller.Store(callerComing)
		if !h.call(now) || h.watchAt != now+want {
			t.Errorf("hasty %d: after %d us", hasty, (h.watchAt-now)/1000)
		}
	}
	for _, c := range []struct{ late, coming, want int64 }{
		{0, 0, now + watchAfter},
		{0, now + watchAfter, 0},
		{0, now - 5, 0},
		{0, now + watchAfter + 1, now + watchAfter},
		{now - lateLately, 0, now + watchAfter},
		{now - 5, now + 5, now + stopWithin},
	} {
		h.shared.hasty.Store(0)
		h.shared.lateAt.Store(c.late)
		if got := h.watchWhen(now, c.coming); got != c.want {
			t.Errorf("late at %d, the next visit at %d: %d", c.late, c.coming, got)
		}
	}
	preempters := &Preempters{shared: h.shared}
	if preempters.Hasten(true); h.shared.hasty.Load() == 0 {
		t.Error("stops are pending")
	}
	OnOwnThread(func() {
		preempters.Hasten(false)
		alone := h.shared.hasty.Load() == 0
		OnOwnThread(func() { preempters.Hasten(false) })
		if !alone || h.shared.hasty.Load() == 0 {
			t.Errorf("alone: hasty %v; beside another one: %d", !alone, h.shared.hasty.Load())
		}
	})
}

// TestGiveBackTellsTheCPU: a Tracer that was brought to another CPU says so when it gives the Runner back.
func TestGiveBackTellsTheCPU(t *testing.T) {
	lead, member := &Tracer{stayAt: 1}, &Tracer{stayAt: -1}
	member.Borrow(lead)
	member.BoundTo(5)
	if member.GiveBack(lead); lead.stayAt != 5 {
		t.Errorf("the CPU is %d", lead.stayAt)
	}
}

// TestPreempterLooksAgain: while the sampling thread is busy with the visit of another CPU, a preempter looks again,
// whichever thread is on its CPU. While the sampling thread waits on the preempter's CPU for a thread to stop, the
// preempter looks again only for other threads of the program.
func TestPreempterLooksAgain(t *testing.T) {
	const now, called = 1_000_000, 77
	for _, c := range []struct {
		name   string
		caller uint32
		at     int32
		aside  uint32
		who    int
		met    uint32
		done   bool
	}{
		{"we are free, nobody is there", callerNone, 3, 0, nobody, 0, true},
		{"we are free, a stranger is there", callerNone, 1, 0, other, 5, true},
		{"busy elsewhere, nobody is there", 2, 1, 0, nobody, 0, false},
		{"busy elsewhere, a stranger is there", 2, 1, 0, other, 5, false},
		{"busy elsewhere, a thread is there", 2, 1, 0, wanted, 6, false},
		{"busy with our books", callerBusy, 1, 0, wanted, 6, false},
		{"we wait here, a stranger is there", 4, 3, 0, other, 5, true},
		{"we wait here, another thread is there", 4, 3, 0, wanted, 6, false},
		{"we wait here for this thread", 4, 3, 0, wanted, called, true},
		{"we have let the thread go", 4, 3, 1, wanted, called, false},
	} {
		h := newPreempter()
		l := h.shared
		l.caller.Store(c.caller)
		l.at.Store(c.at)
		l.aside.Store(c.aside)
		l.since.Store(now)
		h.whom, h.met = called, c.met
		if got := h.maySee(c.who, now); got != c.done {
			t.Errorf("%s: %v", c.name, got)
		}
		if again := h.again >= now+tryAgain && h.again < now+tryAgain+1<<16; again == c.done {
			t.Errorf("%s: the preempter looks again at %d", c.name, h.again)
		}
		if l.caller.Load() != c.caller {
			t.Errorf("%s: we were called", c.name)
		}
	}
}

// TestPreempterCalls: a preempter calls the sampling thread if a thread of the program is on its CPU, and notes for
// which visit.
func TestPreempterCalls(t *testing.T) {
	h := newPreempter()
	h.shared.at.Store(h.number) // the sampling thread need not be moved
	h.visit, h.again = plannedVisit{990_000, 5}, 990_000
	h.comes(NoteOfSwitch, 0, sampled, sampled+1, ourPreempter)
	if h.makeVisit(1_000_000); h.shared.caller.Load() != uint32(h.number)+1 {
		t.Fatal("we were not called")
	}
	came := *h.head
	if h.arrived != 1_000_000 || h.called.stands != 5 || h.whom != sampled+1 || h.headThen != came || h.again != 0 {
		t.Errorf("%+v", h.called)
	}
	if held, met := h.counts.held.Load(), h.counts.met.Load(); held != 1 || met != 1 {
		t.Errorf("%d visits, %d met somebody", held, met)
	}
}

// TestCallStandsStill: the note of a call does not change if its preempter wakes up again before the sampling thread
// has read it.
func TestCallStandsStill(t *testing.T) {
	h := newPreempter()
	h.shared.at.Store(h.number)
	h.visit, h.again = plannedVisit{990_000, 5}, 990_000
	h.comes(NoteOfSwitch, 0, sampled, sampled+1, ourPreempter)
	came := *h.head
	h.makeVisit(1_000_000)
	h.visit, h.again = plannedVisit{1_040_000, 1}, 1_040_000
	h.comes(NoteOfSwitch, 0, ours, ours+1, ourPreempter)
	h.makeVisit(1_040_000)
	if h.seen == came || h.arrived != 1_000_000 || h.called.stands != 5 || h.whom != sampled+1 || h.headThen != came {
		t.Errorf("%d, then %d: %+v at %d, head %d", came, h.seen, h.called, h.arrived, h.headThen)
	}
}

// TestCallThatFails: the sampling thread cannot be bound to the preempter's CPU. So it is free again, and the preempter
// looks again.
func TestCallThatFails(t *testing.T) {
	h := newPreempter() // its CPU has no bit in its mask
	h.visit, h.again = plannedVisit{990_000, 1}, 990_000
	h.comes(NoteOfSwitch, 0, sampled, sampled+1, ourPreempter)
	h.makeVisit(1_000_000)
	if h.shared.caller.Load() != callerNone || h.again < 1_000_000+tryAgain || h.watchAt != 0 ||
		h.counts.held.Load() != 0 {
		t.Errorf("caller %d, again at %d, %d visits", h.shared.caller.Load(), h.again, h.counts.held.Load())
	}
}

// TestAwaitSeesACallThrough: the time of Await ends at the very moment at which a preempter calls. Await returns when
// the preempter has written the note of its call.
func TestAwaitSeesACallThrough(t *testing.T) {
	h := &Preempters{shared: new(shared)}
	h.shared.caller.Store(callerBusy)
	until := Monotonic() + int64(time.Second) // enough for the other goroutine to begin, however busy the machine is
	go func() {
		for !h.shared.caller.CompareAndSwap(callerNone, callerComing) {
			runtime.Gosched()
		}
		for Monotonic() < until+int64(20*time.Millisecond) {
			time.Sleep(time.Millisecond)
		}
		h.shared.since.Store(77)
		h.shared.caller.Store(3)
		osthread.Wake(&h.shared.caller)
	}()
	n := h.Await(until)
	for n == -1 && Monotonic() < until { // a signal came, one of those that Go sends to its threads
		n = h.Await(until)
	}
	if n != 2 || h.shared.since.Load() != 77 {
		t.Errorf("preempter %d, called at %d", n, h.shared.since.Load())
	}
	if n := h.Await(Monotonic()); n != -1 || h.shared.caller.Load() != callerBusy {
		t.Errorf("nobody has called: %d", n)
	}
}

// TestNobodyHurriesACall: a preempter sends the signal only to a sampling thread that it has called, and that has
// waited since.
func TestNobodyHurriesACall(t *testing.T) {
	const now = 10_000_000
	for caller, want := range map[uint32]bool{callerNone: false, callerComing: false, callerBusy: false, 2: true} {
		h := newPreempter()
		h.shared.tid = 1 << 30 // no thread has this number
		h.shared.caller.Store(caller)
		h.shared.since.Store(now - 2*stopWithin)
		if h.hurry(now); h.shared.lateAt.Load() == now != want {
			t.Errorf("caller %d: hurried at %d", caller, h.shared.lateAt.Load())
		}
	}
}

// TestHurriesLessAndLess: between two signals the sampling thread has ever more time, up to hurryEach. On an emulated
// CPU the handler of the signal takes 80 us.
func TestHurriesLessAndLess(t *testing.T) {
	h := newPreempter()
	h.shared.tid = 1 << 30
	h.shared.caller.Store(2)
	hurries, before := 0, int64(0)
	for now := int64(0); now < 100*stopWithin; now += tryAgain / 2 {
		if h.hurry(now); h.shared.lateAt.Load() != before {
			before = now
			hurries++
		}
	}
	if hurries < 11 || hurries > 15 { // five in the first 2 ms, and one each hurryEach then
		t.Errorf("%d times in %d us", hurries, 100*stopWithin/1000)
	}
}

// TestPreempterKeepsMoments: a visit that is made again does not take the place of the next one. One that is late is
// missed.
func TestPreempterKeepsMoments(t *testing.T) {
	h := newPreempter()
	for i := range int64(3) {
		h.planned[i] = plannedVisit{100_000 * (i + 1), i}
		h.put.Add(1)
	}
	if at := h.next(); at != 100_000 || h.next() != 100_000 {
		t.Errorf("the first visit is at %d", at)
	}
	h.called, h.again = h.visit, 0
	if at := h.next(); at != 200_000 {
		t.Errorf("the second visit is at %d", at)
	}
	h.redo.Store(150_000)
	if at := h.next(); at != 150_000 || h.visit.stands != 0 {
		t.Errorf("the first visit again: %d, %+v", at, h.visit)
	}
	h.again = 0
	if at := h.next(); at != 200_000 || h.visit.stands != 1 {
		t.Errorf("then the second: %d, %+v", at, h.visit)
	}
	if h.makeVisit(3_000_000); h.counts.missed.Load() != 1 {
		t.Error("a visit that comes too late is made")
	}
	if at := h.next(); at != 300_000 {
		t.Errorf("the third visit is at %d", at)
	}
	h.again = 0
	if at := h.next(); at != 0 || h.dry.Load() != 1 {
		t.Errorf("there are no more visits: %d", at)
	}
	h.raiseAt.Store(77)
	if at := h.next(); at != 77 {
		t.Errorf("it is to bring us back at 77, and sleeps until %d", at)
	}
}

// TestPreemptersEnd: preempters come, sleep, and end with their descriptors.
func TestPreemptersEnd(t *testing.T) {
	OnOwnThread(func() {
		h, err := NewPreempters()
		if err != nil {
			t.Skip("real-time priority is not permitted here")
		}
		if err := h.Send(8191, nil); err == nil {
			t.Error("a preempter is on a CPU that is not there")
		}
		var may unix.CPUSet
		unix.SchedGetaffinity(0, &may)
		cpu := 0
		for !may.IsSet(cpu) {
			cpu++
		}
		for range 20 {
			if err := h.Send(cpu, nil); err != nil {
				t.Fatal(err)
			}
		}
		if h.SetPatience(int64(1e9)); !h.Tell(5, Monotonic(), 1) {
			t.Error("it knows too many moments already")
		}
		number := -1
		for end := Monotonic() + int64(20e9); number < 0 && Monotonic() < end; {
			number = h.Await(end)
		}
		if number != 5 || h.Visit(5).TID != h.all[5].TID() || len(h.Visit(5).Account) == 0 {
			t.Errorf("called by %d: %+v", number, h.Visit(5))
		}
		h.End()
	})
}
