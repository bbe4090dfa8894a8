//go:build linux

package offcpu

import (
	"bytes"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/sampler/bpf"
	"goprof/sampler/cpuset"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// Finding out what ends a wait. A wake-up passes the tracepoint sched_waking, in the waker's system call or in an
// interrupt. A BPF program at the tracepoint searches a map for the woken thread, by the address of its struct
// task_struct. The map has the threads of the process that have left their CPUs. A second program, at the switches of
// threads, fills the map. So no offsets in the kernel's structures are needed, and a wake-up of another process costs
// one search in the map.
//
// The record of a wake-up has the kernel's call stack, which shows whether a thread or an interrupt woke the waiting
// thread. Registers and stack are copied only if the waker is a thread of the process itself.
//
// The program decides at random whether a short wait counts (thin.go). It decides before the copy, and copies nothing
// for a wait that does not count. If a wait has no record of its wake-up, the engine decides. So each wait counts as
// often as without wakers.

// The fields of a value of the map of threads.
const (
	sleeperTID  = 0
	sleeperOut  = 8 // when the thread left its CPU; 0: it was woken since
	sleeperSize = 16
	// mostSleepers bounds the threads in the map, which the kernel allocates at once. Wake-ups of further threads are
	// not noted.
	mostSleepers = 1 << 15
)

// The fields that the program at wake-ups writes.
const (
	wokeTID  = 0  // the woken thread
	wokeOut  = 8  // sleeperOut
	wokeLot  = 16 // a random number of 32 bits
	wokeBy   = 24 // the waker's process << 32 | its thread
	wokeFull = 32 // 1: the waker's registers and stack follow
	wokeComm = 40 // 16 bytes
	wokeSpan = 56 // the span, by package span
	wokeSize = wokeSpan + ring.SpanSize
)

// wakeups notes wake-ups, and keeps their records.
type wakeups struct {
	run              *offRun
	rings            ring.Set
	fds              []int // all that is closed at the end, without the rings
	sleepers, counts int   // maps
	full, bare       int   // maps through which the program finds the events of the CPUs
	mem              []byte
	limit            *uint64
	rec              ring.Hit
	lostAt           int64 // when records were last found missing, because the kernel had no room
}

type wakeup struct {
	pid, tid int // the waker
	when     int64
	out      int64   // when the woken thread left its CPU
	lot      float64 // a random number from 0 to 1
	comm     string
	kernel   []uint64
	copy     offCopy
	after    *look.Tally // look.Waker.After
}

type slept struct {
	tally   *look.Tally // nil: the wait has none
	out, in int64
}

const (
	// mostSlept is how many waits of a thread are remembered.
	mostSlept = 4
	// HopShare: a waker counts as waiting during a wait if one wait of its own takes at least 1/HopShare of that time.
	HopShare = 10
)

// sleptWhile returns the tally of the thread's last wait that took at least 1/HopShare of a time in which another
// thread waited. nil: the thread ran for nearly all of that time, or this is not known.
func (th *offThread) sleptWhile(from, to int64) *look.Tally {
	for i := range th.slept {
		if s := &th.slept[i]; (s.in-max(s.out, from))*HopShare >= to-from {
			return s.tally
		}
	}
	return nil
}

// TryWakers finds out whether wake-ups can be noted.
func TryWakers(pid int) error {
	w := &wakeups{run: &offRun{pid: pid, cpu: cpus.Here(), cpus: cpuset.Online()}}
	defer w.close()
	return w.open(ring.Floor)
}

// open makes the kernel note wake-ups. size is the size of a ring.
func (w *wakeups) open(size int) (err error) {
	if !ring.KnowsPIDs() {
		return ring.ErrNested
	}
	r := w.run
	if w.rings, err = ring.Open(r.cpus, size, min(size, ring.Floor)); err != nil {
		return err
	}
	if w.full, err = w.outputs(r, min(SwitchStack, ring.StackFor(size))); err != nil {
		return err
	}
	if w.bare, err = w.outputs(r, 0); err != nil {
		return err
	}
	if err = w.load(); err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	return nil
}

// outputs opens the events to which the program writes, and makes the map through which the program finds them. stack
// is the size of the stack that the events copy; 0: no registers either.
func (w *wakeups) outputs(r *offRun, stack int) (array int, err error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER5, Config: unix.PERF_COUNT_SW_BPF_OUTPUT, Sample: 1,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_ID | unix.PERF_SAMPLE_CALLCHAIN |
			unix.PERF_SAMPLE_RAW,
		Bits:    unix.PerfBitUseClockID | unix.PerfBitExcludeHv | unix.PerfBitExcludeCallchainUser,
		Clockid: unix.CLOCK_MONOTONIC,
	}
	if stack > 0 {
		attr.Sample_type |= unix.PERF_SAMPLE_REGS_USER | unix.PERF_SAMPLE_STACK_USER
		attr.Sample_regs_user, attr.Sample_stack_user = r.cpu.Perf.Mask, uint32(stack)&^7
	}
	var events []int
	for i, cpu := range r.cpus {
		fd, err := ring.OpenEvent(&attr, -1, cpu, w.rings[i])
		if err != nil {
			return -1, err
		}
		w.fds, events = append(w.fds, fd), append(events, fd)
	}
	if array, err = w.keep(bpf.PerfArray(r.cpus, events)); err != nil {
		err = &ring.Error{Call: "bpf", Err: err}
	}
	return array, err
}

// keep notes a descriptor to be closed at the end.
func (w *wakeups) keep(fd int, err error) (int, error) {
	if err == nil {
		w.fds = append(w.fds, fd)
	}
	return fd, err
}

// load loads the programs, and starts those that do not belong to a thread.
func (w *wakeups) load() (err error) {
	if w.sleepers, err = w.keep(bpf.NewMap(bpf.MapHash, 8, sleeperSize, mostSleepers)); err != nil {
		return err
	}
	if w.counts, w.mem, err = bpf.NewMapped(unix.Getpagesize()); err != nil {
		return err
	}
	w.fds, w.limit = append(w.fds, w.counts), (*uint64)(unsafe.Pointer(&w.mem[0]))
	// The address may later be another thread's.
	if _, err = w.keep(w.freeProgram().AttachRaw("sched_process_free")); err != nil {
		return err
	}
	_, err = w.keep(w.wakingProgram().AttachRaw("sched_waking"))
	return err
}

func (w *wakeups) close() {
	if w == nil {
		return
	}
	for _, fd := range w.fds {
		unix.Close(fd)
	}
	if w.mem != nil {
		unix.Munmap(w.mem)
	}
	w.rings.Close()
}

// key is the place on the programs' stacks for the address of a thread.
const key = -8

// noteLeaving writes code that notes the thread that leaves its CPU.
func (w *wakeups) noteLeaving(c *bpf.Code) {
	const value = key - sleeperSize
	c.Call(bpf.KtimeGetNS)
	c.Mov(bpf.R7, bpf.R0)
	c.Call(bpf.GetCurrentPIDTGID)
	c.Mov(bpf.R8, bpf.R0)
	c.Imm(bpf.LeftImm, bpf.R8, 32)
	c.Imm(bpf.RightImm, bpf.R8, 32)
	c.Call(bpf.GetCurrentTask)
	c.Store(bpf.R10, key, bpf.R0)
	c.CallOf(bpf.MapLookup, w.sleepers, key)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "new")
	c.Store(bpf.R0, sleeperTID, bpf.R8)
	c.Store(bpf.R0, sleeperOut, bpf.R7)
	c.Jump(bpf.Goto, 0, 0, 0, "left")
	c.Label("new")
	c.Store(bpf.R10, value+sleeperTID, bpf.R8)
	c.Store(bpf.R10, value+sleeperOut, bpf.R7)
	c.Mov(bpf.R3, bpf.R10)
	c.Imm(bpf.AddImm, bpf.R3, value)
	c.Imm(bpf.MovImm, bpf.R4, 0)
	c.CallOf(bpf.MapUpdate, w.sleepers, key)
	c.Label("left")
}

// freeProgram makes the program that forgets a thread whose struct task_struct is freed. The tracepoint's first
// argument points to the struct.
func (w *wakeups) freeProgram() *bpf.Code {
	c := bpf.New()
	c.Load(bpf.Load64, bpf.R1, bpf.R1, 0)
	c.Store(bpf.R10, key, bpf.R1)
	c.CallOf(bpf.MapDelete, w.sleepers, key)
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

// wakingProgram returns a BPF program that writes a record when a thread of the process is woken. That thread is the
// tracepoint's first argument. There is one record for each wait.
//
// The program also copies the waker's registers and stack, if the waker belongs to the process and the wait counts. A
// wait counts if it is at least as long as the limit that thin has set. A shorter wait counts by lot: its chance is its
// length divided by the limit.
func (w *wakeups) wakingProgram() *bpf.Code {
	const data = key - wokeSize
	c := bpf.New()
	c.Mov(bpf.R6, bpf.R1)
	c.Load(bpf.Load64, bpf.R1, bpf.R6, 0)
	c.Store(bpf.R10, key, bpf.R1)
	c.CallOf(bpf.MapLookup, w.sleepers, key)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R8, bpf.R0, sleeperOut)
	c.Jump(bpf.JumpEqImm, bpf.R8, 0, 0, "end")
	c.Zero(bpf.R0, sleeperOut)
	c.Load(bpf.Load64, bpf.R1, bpf.R0, sleeperTID)
	c.Store(bpf.R10, data+wokeTID, bpf.R1)
	c.Store(bpf.R10, data+wokeOut, bpf.R8)
	c.Call(bpf.KtimeGetNS)
	c.Op(bpf.Sub, bpf.R0, bpf.R8, 0, 0)
	c.Mov(bpf.R8, bpf.R0) // the length of the wait
	c.Call(bpf.Random)
	c.Mov(bpf.R9, bpf.R0)
	c.Store(bpf.R10, data+wokeLot, bpf.R9)
	c.Call(bpf.GetCurrentPIDTGID)
	c.Mov(bpf.R7, bpf.R0)
	c.Store(bpf.R10, data+wokeBy, bpf.R7)
	c.Zero(bpf.R10, data+wokeFull)
	for at := wokeSpan; at < wokeSize; at += 8 {
		c.Zero(bpf.R10, data+at)
	}
	c.Mov(bpf.R1, bpf.R10)
	c.Imm(bpf.AddImm, bpf.R1, data+wokeComm)
	c.Imm(bpf.MovImm, bpf.R2, wokeSpan-wokeComm)
	c.Call(bpf.GetCurrentComm)
	c.Imm(bpf.RightImm, bpf.R7, 32)
	c.Jump(bpf.JumpNeImm, bpf.R7, 0, w.run.pid, "bare")
	c.Value(bpf.R1, w.counts)
	c.Load(bpf.Load64, bpf.R1, bpf.R1, 0)
	c.Jump(bpf.JumpGe, bpf.R8, bpf.R1, 0, "full")
	c.Op(bpf.Mul, bpf.R9, bpf.R1, 0, 0)
	c.Imm(bpf.LeftImm, bpf.R8, 32)
	c.Jump(bpf.JumpGe, bpf.R9, bpf.R8, 0, "bare")
	c.Label("full")
	c.Imm(bpf.MovImm, bpf.R1, 1)
	c.Store(bpf.R10, data+wokeFull, bpf.R1)
	w.run.spans.Read(c, data+wokeSpan)
	c.Output(w.full, data, wokeSize)
	c.Jump(bpf.Goto, 0, 0, 0, "end")
	c.Label("bare")
	c.Output(w.bare, data, wokeSize)
	c.Label("end")
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

const (
	// shortWake: a wait shorter than --min / shortWake at its wake-up gets its waker's stack only by lot. Such a wait
	// is recorded only if its thread then also waits long enough for a CPU.
	shortWake = 8
	// mostLimit keeps the products of the program within 64 bits.
	mostLimit = 1 << 31
)

// thin gives the program the limit below which waits are thinned out. The program uses half of that limit, because the
// limit may have changed when the engine counts the wait, and the wait is longer by then.
func (w *wakeups) thin(limit, least time.Duration) {
	atomic.StoreUint64(w.limit, uint64(min(max(limit/2, least/shortWake), mostLimit)))
}

// Record is described at ring.Taker. It keeps the record.
func (w *wakeups) Record(b ring.Bytes, rec ring.Record) {
	h, r := &w.rec, w.run
	at, ok := b.ParseHit(rec, true, h)
	if !ok || h.RawLen < wokeSize {
		return
	}
	by := b.Word(h.Raw + wokeBy)
	x := &wakeup{pid: int(by >> 32), tid: int(uint32(by)), when: h.When, out: int64(b.Word(h.Raw + wokeOut)),
		lot: float64(uint32(b.Word(h.Raw+wokeLot))) / (1 << 32), comm: commOf(b, h.Raw+wokeComm),
		kernel: append([]uint64(nil), h.Kernel...)}
	if b.Word(h.Raw+wokeFull) != 0 && b.ParseMachine(at, rec, r.cpu, &h.Sample) && h.HasRegs {
		size, cut, _ := h.OwnStack(h.Regs[r.cpu.SP], r.known[x.tid])
		x.copy = offCopy{when: h.When, regs: h.Regs, unknown: h.Unknown, stack: r.arena.take(size), cut: cut,
			context: b.Span(h.Raw + wokeSpan)}
		if x.copy.has = x.copy.stack != nil; x.copy.has {
			b.CopyTo(x.copy.stack, h.StackAt)
		}
	}
	r.records = append(r.records,
		offRecord{when: h.When, tid: int(int32(b.Word(h.Raw + wokeTID))), kind: offWoken, woke: x})
}

// commOf returns the text in a record, up to a zero byte.
func commOf(b ring.Bytes, at uint64) string {
	var text [wokeSpan - wokeComm]byte
	b.CopyTo(text[:], at)
	name, _, _ := bytes.Cut(text[:], []byte{0})
	return string(bytes.ToValidUTF8(name, []byte("\uFFFD")))
}

// Lose is described at ring.Taker. The waits themselves are known.
func (w *wakeups) Lose(ptrace.Outcome, int64) { w.lostAt = ptrace.Monotonic() }

// wokenBy returns the record of the wake-up that ended a thread's wait, nil if there is none. The record must be from
// after the thread had left its CPU for this wait.
func (th *offThread) wokenBy() *wakeup {
	if x := th.woken; x != nil && x.out > th.ran && x.out <= th.out && !th.taken {
		return x
	}
	return nil
}

// endWait records how a wait has ended, and hands over the waker. The look of the wait was handed over before.
func (r *offRun) endWait(th *offThread, at int64) {
	if r.wakes == nil {
		return
	}
	how, x := look.NotNoted, th.wokenBy()
	switch {
	case th.taken:
		how = look.NotAsleep
	case x != nil:
		how = look.WakerLost
		if snap := r.Queue.Take(); snap != nil {
			th.tally.End(look.Woken)
			r.putWaker(snap, th, x)
			return
		}
	case at == r.ended:
		how = look.GoesOn
	case th.out <= r.Began:
		how = look.TooEarly
	case th.out <= r.wakes.lostAt:
		how = look.WakerLost
	}
	th.tally.End(how)
}

// putWaker fills a snapshot with the waker of a wait, and hands it over.
func (r *offRun) putWaker(snap *look.Look, th *offThread, x *wakeup) {
	c := &x.copy
	snap.When, snap.TID = x.when, x.tid
	snap.Waker = look.Waker{Of: th.tally, After: x.after, TID: th.tid, PID: x.pid, Comm: x.comm}
	snap.Kernel = append(snap.Kernel, x.kernel...)
	if c.has {
		snap.Regs, snap.Unknown, snap.SP, snap.Cut = c.regs, c.unknown, c.regs[r.cpu.SP], c.cut
		snap.Stack = append(snap.Stack[:0], c.stack...)
		snap.SideAddr, snap.RunsOn, snap.Context = r.known[x.tid].Side, true, c.context
		if r.Tracer.After != nil {
			r.Tracer.After(snap, x.when) // the waker ran on
		}
	}
	r.Queue.Put(snap)
}
