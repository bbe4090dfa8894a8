//go:build linux

package ptrace

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/osthread"
)

// Preempters are the preempters of one sampling thread. Only the OS thread that has made Preempters may call the
// methods.
type Preempters struct {
	mem    []byte
	shared *shared
	all    []*osthread.Thread // the index is the preempter's number; nil: recalled
	past   VisitCounts        // counts of ended preempters
	raises bool               // preempters may raise the sampling thread's priority from SCHED_IDLE
	resume int64              // the moment before which the sampling thread does not step aside
	goOn   *preempter         // the preempter that brings the sampling thread back; nil: there is none
	idle   unix.SchedAttr
	ts     unix.Timespec
}

// SwitchNotes is where the kernel notes the switches of a CPU (perf_event_open(2), a ring that is written backward).
type SwitchNotes struct {
	Head *uint64
	Data []byte
	// All: goprof is in the first PID namespace. In another namespace, the kernel reports 0 for threads outside of the
	// namespace, as for the idle thread (kernel/events/core.c, perf_event_pid_type). Then goprof does not know whether
	// a CPU is idle.
	All bool
}

// ErrNoPreempter: a CPU cannot have a preempter.
var ErrNoPreempter = errors.New("ptrace: no preempter can be sent")

// NewPreempters makes Preempters for this OS thread, which must have real-time priority. There is no preempter yet.
func NewPreempters() (*Preempters, error) {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_FIFO || !handlesBoundSignal() {
		return nil, ErrNoPreempter
	}
	const access, kind = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	mem, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(shared{})), access, kind)
	if err != nil {
		return nil, err
	}
	h := &Preempters{mem: mem, shared: (*shared)(unsafe.Pointer(unsafe.SliceData(mem))), raises: true}
	h.idle = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Flags: resetOnFork}
	l := h.shared
	l.pid, l.tid, l.first = uintptr(unix.Getpid()), uintptr(unix.Gettid()), realTime(tracerPriority)
	l.caller.Store(callerBusy)
	l.at.Store(-1)
	return h, nil
}

// Send starts a preempter on a CPU. Preempters are numbered from 0 in the order of Send. Without notes of switches the
// preempter calls the sampling thread at each visit.
func (h *Preempters) Send(cpu int, notes *SwitchNotes) error {
	h.all = append(h.all, nil)
	return h.SendAgain(len(h.all)-1, cpu, notes)
}

// SkipNumber skips a number, because its CPU is not available now. SendAgain can start a preempter later.
func (h *Preempters) SkipNumber() { h.all = append(h.all, nil) }

// SendAgain replaces the preempter of this number.
func (h *Preempters) SendAgain(number, cpu int, notes *SwitchNotes) error {
	h.Recall(number)
	th, err := osthread.NewThread(int(unsafe.Sizeof(preempter{})))
	if err != nil {
		return err
	}
	r := (*preempter)(th.Room())
	if cpu < 0 || cpu/64 >= len(r.mask) {
		th.End()
		return ErrNoPreempter
	}
	r.shared, r.number = h.shared, int32(number)
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

// prepare binds a preempter to its CPU and gives it its priority. If the kernel notes no switches (noted is false), it
// also opens the file with the kernel's account of the preempter itself.
func (h *Preempters) prepare(th *osthread.Thread, r *preempter, noted bool) error {
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
	// Leaving SCHED_IDLE needs more permission than entering SCHED_FIFO (kernel/sched/syscalls.c,
	// user_check_sched_setscheduler). So this tries it on the preempter.
	unix.SchedSetAttr(th.TID(), &h.idle, 0)
	if goFirst(th.TID(), preempterPriority) {
		return nil
	}
	return ErrNoPreempter
}

// Recall ends the preempter of this number.
func (h *Preempters) Recall(number int) {
	th := h.all[number]
	if th == nil {
		return
	}
	h.all[number] = nil
	r := (*preempter)(th.Room())
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

// End ends all preempters.
func (h *Preempters) End() {
	if h == nil {
		return
	}
	for number := range h.all {
		h.Recall(number)
	}
	unix.Munmap(h.mem)
}

func (h *Preempters) preempter(number int) *preempter {
	if number < 0 || number >= len(h.all) || h.all[number] == nil {
		return nil
	}
	return (*preempter)(h.all[number].Room())
}

// wake wakes a preempter up, because its moments or orders have changed.
//
//go:nosplit
func (r *preempter) wake() {
	r.news.Add(1)
	osthread.Wake(&r.news)
}

// Tell adds a visit to the moments of a preempter. stands is the number of visits that this one stands for. Tell
// returns false if the preempter has no room.
func (h *Preempters) Tell(number int, at, stands int64) bool {
	r := h.preempter(number)
	if r == nil {
		return true
	}
	n := r.put.Load()
	if n-r.taken.Load() >= PreempterMoments-1 { // one stays free: the preempter may put back the moment that it took last
		return false
	}
	r.planned[n%PreempterMoments] = plannedVisit{at, stands}
	r.put.Store(n + 1)
	if r.dry.Swap(0) != 0 {
		r.wake()
	}
	return true
}

// Next returns the next moment of any preempter. 0: there is none.
func (h *Preempters) Next() (at int64) {
	for number := range h.all {
		if r := h.preempter(number); r != nil {
			if n := r.taken.Load(); n != r.put.Load() {
				at = earlier(at, r.planned[n%PreempterMoments].at)
			}
		}
	}
	return at
}

// SetPatience sets how late a visit may be.
func (h *Preempters) SetPatience(t int64) { h.shared.patience.Store(t) }

// Rest makes the sampling thread count as busy until then.
func (h *Preempters) Rest(until int64) { h.shared.rest.Store(until) }

// Hasten sets whether pending stops are waited for. If they are, or if another OS thread of goprof may hold threads,
// preempters check soon whether a visit takes too long.
func (h *Preempters) Hasten(pending bool) {
	hasty := uint32(0)
	if pending || holders.n.Load() > 1 {
		hasty = 1
	}
	h.shared.hasty.Store(hasty)
}

// Want sets the processes whose threads are visited.
func (h *Preempters) Want(pids ...int) {
	var bits [wantedNumbers / 32]uint32
	for _, pid := range pids {
		bits[pid%wantedNumbers/32] |= 1 << (pid % 32)
	}
	for i := range bits {
		if w := &h.shared.wanted[i]; w.Load() != bits[i] {
			w.Store(bits[i])
		}
	}
}

// Await sleeps until a preempter calls, a signal comes, or the moment until. It returns the number of the preempter, or
// -1. After a call, Await returns on the CPU of that preempter. If no thread had that CPU in between, the thread that
// the preempter met has not run since. The sampling thread counts as busy until the next Await.
func (h *Preempters) Await(until int64) int {
	caller := &h.shared.caller
	if caller.Store(callerNone); caller.Load() == callerNone {
		osthread.SleepUntil(caller, callerNone, until, &h.ts)
	}
	for !caller.CompareAndSwap(callerNone, callerBusy) {
		if b := caller.Load(); b != callerNone && b != callerComing {
			return int(b) - 1
		}
		osthread.SleepUntil(caller, callerComing, 0, &h.ts) // some microseconds, until the call is complete
	}
	return -1
}

// Busy notes that the sampling thread waits for no thread.
//
//go:nosplit
func (h *Preempters) Busy() { h.shared.caller.Store(callerBusy) }

// Visit is the visit for which a preempter has called the sampling thread.
type Visit struct {
	Arrived int64  // when the preempter had the CPU
	Stands  int64  // the number of visits that it stands for
	Head    uint64 // the head of the notes when the newest note was about the preempter
	TID     int    // the preempter's
	Account []byte // the preempter's sched (proc(5)) at that time, if there are no notes
}

// Visit returns the visit for which the sampling thread was called. The result is the same until the next Await.
func (h *Preempters) Visit(number int) Visit {
	r := h.preempter(number)
	return Visit{r.arrived, r.called.stands, r.headThen, int(r.tid), r.accountThen.bytes[:r.accountThen.n]}
}

// Again makes a preempter repeat its visit a little later, because another thread had the CPU before the sampling
// thread.
func (h *Preempters) Again(number int) {
	r := h.preempter(number)
	now := Monotonic()
	r.redo.Store(now + tryAgain + now&0xffff)
	r.wake()
}

// IsIdle reports whether a preempter's CPU was idle lately.
func (h *Preempters) IsIdle(number int) bool {
	r := h.preempter(number)
	return r != nil && r.all && r.metInARow.Load() < takenFor
}

// VisitCounts counts visits by their results.
type VisitCounts struct {
	Held   int64 // made at their moment, or soon after it
	Met    int64 // held, and a thread was met
	Missed int64 // too late to be made
	CPU    int64 // CPU time of the preempters, in nanoseconds
}

func (c *VisitCounts) add(th *osthread.Thread) {
	more := &(*preempter)(th.Room()).counts
	c.Held += more.held.Load()
	c.Met += more.met.Load()
	c.Missed += more.missed.Load()
	c.CPU += int64(th.CPU())
}

// Counts returns the counts of all visits.
func (h *Preempters) Counts() VisitCounts {
	sum := h.past
	for _, th := range h.all {
		if th != nil {
			sum.add(th)
		}
	}
	return sum
}

// Stay binds a preempter to its CPU again, because a cpuset may have changed. It returns false if the preempter cannot
// run there.
func (h *Preempters) Stay(number int) bool {
	th := h.all[number]
	if th == nil {
		return false
	}
	r := (*preempter)(th.Room())
	return r.mask.set(th.TID(), unsafe.Sizeof(r.mask))
}
