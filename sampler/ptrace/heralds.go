//go:build linux

package ptrace

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/errand"
)

// Heralds are the heralds of one sampling thread: the OS thread that has made them. Its methods are for that thread.
type Heralds struct {
	mem    []byte
	hall   *hall
	all    []*errand.Thread // by number; nil: recalled
	past   VisitCounts      // of heralds that were recalled
	raises bool             // they may raise our priority from SCHED_IDLE
	resume int64            // the moment before which we do not step aside
	goOn   *herald          // who brings us back; nil: nobody
	idle   unix.SchedAttr
	ts     unix.Timespec
}

// SwitchNotes is where the kernel notes the switches of a CPU (perf_event_open(2), a ring that is written backward).
type SwitchNotes struct {
	Head *uint64
	Data []byte
	// All: goprof is in the first namespace of process numbers. Elsewhere a thread of another namespace has the number
	// 0, as the idle thread has (kernel/events/core.c, perf_event_pid_type). Then nobody knows whether a CPU is idle.
	All bool
}

// ErrNoHerald: a CPU cannot have a herald.
var ErrNoHerald = errors.New("ptrace: no herald can be sent")

// NewHeralds prepares heralds for this OS thread, which must have real-time priority. It calls nobody yet.
func NewHeralds() (*Heralds, error) {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_FIFO || !handlesBoundSignal() {
		return nil, ErrNoHerald
	}
	const access, kind = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	mem, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(hall{})), access, kind)
	if err != nil {
		return nil, err
	}
	h := &Heralds{mem: mem, hall: (*hall)(unsafe.Pointer(unsafe.SliceData(mem))), raises: true}
	h.idle = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Flags: resetOnFork}
	l := h.hall
	l.pid, l.tid, l.first = uintptr(unix.Getpid()), uintptr(unix.Gettid()), realTime(tracerPriority)
	l.bell.Store(bellBusy)
	l.at.Store(-1)
	return h, nil
}

// Send sends a herald to a CPU. Its number is that of the heralds before it. Without notes the herald calls us at each
// visit.
func (h *Heralds) Send(cpu int, notes *SwitchNotes) error {
	h.all = append(h.all, nil)
	return h.SendAgain(len(h.all)-1, cpu, notes)
}

// SendNobody leaves a number out: its CPU is not there now. SendAgain may send a herald later.
func (h *Heralds) SendNobody() { h.all = append(h.all, nil) }

// SendAgain sends another herald in place of the one of that number.
func (h *Heralds) SendAgain(number, cpu int, notes *SwitchNotes) error {
	h.Recall(number)
	th, err := errand.NewThread(int(unsafe.Sizeof(herald{})))
	if err != nil {
		return err
	}
	r := (*herald)(th.Room())
	if cpu < 0 || cpu/64 >= len(r.mask) {
		th.End()
		return ErrNoHerald
	}
	r.hall, r.number = h.hall, int32(number)
	r.mask[cpu/64] = 1 << (cpu % 64)
	if notes != nil {
		r.head, r.notes, r.size = notes.Head, unsafe.Pointer(unsafe.SliceData(notes.Data)), uint64(len(notes.Data))
		r.all = notes.All
	}
	if err := th.Start(serve); err != nil {
		th.End()
		return err
	}
	h.all[number] = th
	if err := h.prepare(th, r, notes != nil); err != nil {
		h.Recall(number)
		return err
	}
	return nil
}

// prepare gives a herald its CPU and its priority.
func (h *Heralds) prepare(th *errand.Thread, r *herald, noted bool) error {
	if !noted {
		fd, err := unix.Open(fmt.Sprintf("/proc/self/task/%d/sched", th.TID()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		r.sched = uintptr(fd)
	}
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(th.TID()), unsafe.Sizeof(r.mask),
		uintptr(unsafe.Pointer(&r.mask)))
	if e != 0 {
		return e
	}
	// Who leaves SCHED_IDLE needs more permission than who becomes SCHED_FIFO (kernel/sched/syscalls.c,
	// user_check_sched_setscheduler): so that is tried on the herald.
	unix.SchedSetAttr(th.TID(), &h.idle, 0)
	if goFirst(th.TID(), heraldPriority) {
		return nil
	}
	return ErrNoHerald
}

// Recall ends the herald of that number.
func (h *Heralds) Recall(number int) {
	th := h.all[number]
	if th == nil {
		return
	}
	h.all[number] = nil
	r := (*herald)(th.Room())
	if h.goOn == r {
		h.goOn = nil
	}
	h.past.add(th)
	r.over.Store(1)
	r.wake()
	fd := int(r.sched)
	th.End()
	if fd > 0 {
		unix.Close(fd)
	}
}

// End recalls all heralds.
func (h *Heralds) End() {
	if h == nil {
		return
	}
	for number := range h.all {
		h.Recall(number)
	}
	unix.Munmap(h.mem)
}

func (h *Heralds) herald(number int) *herald {
	if number < 0 || number >= len(h.all) || h.all[number] == nil {
		return nil
	}
	return (*herald)(h.all[number].Room())
}

// wake has a herald look for news.
//
//go:nosplit
func (r *herald) wake() {
	r.news.Add(1)
	errand.Wake(&r.news)
}

// Tell tells a herald the moment of its next visit, after all that it was told before, and for how many visits this one
// stands. It returns false if the herald knows enough moments.
func (h *Heralds) Tell(number int, at, stands int64) bool {
	r := h.herald(number)
	if r == nil {
		return true
	}
	n := r.put.Load()
	if n-r.taken.Load() >= HeraldMoments-1 { // the herald may go back to the one that it took last
		return false
	}
	r.told[n%HeraldMoments] = told{at, stands}
	r.put.Store(n + 1)
	if r.dry.Swap(0) != 0 {
		r.wake()
	}
	return true
}

// Next is the moment of the next visit that a herald was told; 0 where there is none.
func (h *Heralds) Next() (at int64) {
	for number := range h.all {
		if r := h.herald(number); r != nil {
			if n := r.taken.Load(); n != r.put.Load() {
				at = earlier(at, r.told[n%HeraldMoments].at)
			}
		}
	}
	return at
}

// SetPatience says how late a visit may be.
func (h *Heralds) SetPatience(t int64) { h.hall.patience.Store(t) }

// Rest says that we are busy until that moment, whatever heralds meet.
func (h *Heralds) Rest(until int64) { h.hall.rest.Store(until) }

// Hasten says whether threads that were told to stop are waited for. Then, and while another OS thread of goprof may
// hold threads, a herald looks soon whether a visit waits.
func (h *Heralds) Hasten(pending bool) {
	hasty := uint32(0)
	if pending || holders.n.Load() > 1 {
		hasty = 1
	}
	h.hall.hasty.Store(hasty)
}

// Want sets whose threads are visited.
func (h *Heralds) Want(pids ...int) {
	var bits [wantedNumbers / 32]uint32
	for _, pid := range pids {
		bits[pid%wantedNumbers/32] |= 1 << (pid % 32)
	}
	for i := range bits {
		if w := &h.hall.wanted[i]; w.Load() != bits[i] {
			w.Store(bits[i])
		}
	}
}

// Await sleeps until a herald calls, a signal comes, or that moment. It returns the number of the herald, or -1. After
// a call, Await returns on the CPU of that herald: if the herald was the last to have that CPU, the thread that the
// herald has met has not run since. We are busy until the next Await.
func (h *Heralds) Await(until int64) int {
	bell := &h.hall.bell
	if bell.Store(bellFree); bell.Load() == bellFree {
		errand.SleepUntil(bell, bellFree, until, &h.ts)
	}
	for !bell.CompareAndSwap(bellFree, bellBusy) {
		if b := bell.Load(); b != bellFree && b != bellTaken {
			return int(b) - 1
		}
		errand.SleepUntil(bell, bellTaken, 0, &h.ts) // some microseconds, until we are called
	}
	return -1
}

// Busy says that we do not wait for a thread, whatever a herald has called us for.
//
//go:nosplit
func (h *Heralds) Busy() { h.hall.bell.Store(bellBusy) }

// Visit is a visit that a herald has called us to.
type Visit struct {
	Arrived int64  // when the herald had the CPU
	Stands  int64  // for how many visits it stands
	Head    uint64 // of the notes, when the newest one was that of the herald's coming
	TID     int    // of the herald
	Account []byte // the herald's sched (proc(5)) as it was then, if there are no notes
}

// Visit is what a herald has called us for. It stays as it is until the next Await.
func (h *Heralds) Visit(number int) Visit {
	r := h.herald(number)
	return Visit{r.arrived, r.called.stands, r.headThen, int(r.tid), r.accountThen.bytes[:r.accountThen.n]}
}

// Again has a herald make its visit once more, a little later: somebody else had the CPU before us.
func (h *Heralds) Again(number int) {
	r := h.herald(number)
	now := Monotonic()
	r.redo.Store(now + tryAgain + now&0xffff)
	r.wake()
}

// IsIdle reports whether nobody needed the CPU of a herald lately.
func (h *Heralds) IsIdle(number int) bool {
	r := h.herald(number)
	return r != nil && r.all && r.someone.Load() < takenFor
}

// VisitCounts is what became of visits.
type VisitCounts struct {
	Held   int64 // at their moment, or soon after it
	Met    int64 // held, and somebody was there
	Missed int64 // due too long ago
	CPU    int64 // CPU time of the heralds, in nanoseconds
}

func (c *VisitCounts) add(th *errand.Thread) {
	more := &(*herald)(th.Room()).counts
	c.Held += more.held.Load()
	c.Met += more.met.Load()
	c.Missed += more.missed.Load()
	c.CPU += int64(th.CPU())
}

// Counts is what became of all visits.
func (h *Heralds) Counts() VisitCounts {
	sum := h.past
	for _, th := range h.all {
		if th != nil {
			sum.add(th)
		}
	}
	return sum
}

// Stay binds a herald to its CPU again: a cpuset may have changed. It returns false if it cannot go there.
func (h *Heralds) Stay(number int) bool {
	th := h.all[number]
	if th == nil {
		return false
	}
	r := (*herald)(th.Room())
	return r.mask.set(th.TID(), unsafe.Sizeof(r.mask))
}
