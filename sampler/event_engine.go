//go:build linux

package sampler

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// Events is the engine that takes samples of events, and no others. Like Perf it stops nobody.
type Events struct {
	progress
	hints
	pid    int
	cpu    *arch.CPU
	list   []Event
	kernel bool // the kernel's frames are wanted
	thin   atomic.Int64
}

// NewEvents makes a sampler of events of pid. kernel says that the kernel's frames are wanted, too: Look.Kernel.
func NewEvents(pid int, cpu *arch.CPU, list []Event, kernel bool) *Events {
	return &Events{progress: newProgress(), pid: pid, cpu: cpu, list: slices.Clone(list), kernel: kernel}
}

// Run is Sampler.Run.
func (e *Events) Run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	return e.runEngine(cfg, q, func() (stats Stats, err error) {
		if len(e.list) == 0 || len(e.list) > MaxEvents {
			return Stats{}, ErrNoEvents
		}
		for i := range e.list {
			if err := e.list[i].check(len(e.cpu.Probe.Args)); err != nil {
				return Stats{}, err
			}
		}
		ptrace.OnThreadHoldingNobody(func() { stats, err = e.run(ctx, cfg, q) })
		return stats, err
	})
}

const (
	// eventTick is the mean time between two looks into the rings.
	eventTick = int64(4 * time.Millisecond)
	// eventRest is for how long goprof leaves the rings alone after it has found something, where samples are only some
	// of many hits. A reading takes a CPU from a thread, often from the one that was hit: beside other work that costs
	// the thread more than its hits. The first record after a rest is read at once. Where each hit is to be a sample
	// there is no rest: the rings might have no room for hundreds of hits that come at once. Nor is there any where
	// virtual threads run: their frames in the heap have to be read within microseconds.
	eventRest = int64(3 * time.Millisecond)
)

// eventRun is one run on its own OS thread.
type eventRun struct {
	*Events
	cfg        Config
	q          *Queue
	proc       *procfs.Dir
	stats      Stats
	stack      int // bytes that are copied of each
	cpus       []int
	rings      ringSet
	polls      []unix.PollFd
	waiter     *ringWaiter // of a Lean run
	outputs    []int       // the events behind which programs write, by CPU
	array      int         // the map that leads to these
	buffers    int         // the map of threads, for events that have to do with buffers
	probes     []eventProbe
	followedAt int64
	probeTID   int // the thread by which the probes know the process
	counters   counters
	counts     []EventCount
	brought    []int64 // records of each event
	contents   contentReader
	known      knownHints
	rec        eventRecord
	failed     error
	rest       int64 // eventRest, or 0
	readAt     int64 // when something was found in a ring

	began      int64
	over       int64 // when hits stopped counting; 0 before
	checkedAt  int64
	ownCPU     int64   // CPU time of goprof at that moment
	most       float64 // samples in a second
	attempted  int64   // stats.Attempted at checkedAt
	fewer      int64   // one in so many samples of counters is taken
	cpuAtStart time.Duration
	ts         unix.Timespec
}

// eventProbe is the program of an event with its probes.
type eventProbe struct {
	number  int // of the event
	prog    int
	mem     []byte
	counts  *eventCounts
	events  []int
	seen    int64  // how many samples there were when its rate was looked at last
	longest uint64 // the longest interval so far
}

// newEventRun makes a run that holds no descriptor yet. 0 is one: goprof's own input.
func newEventRun(e *Events) *eventRun {
	return &eventRun{Events: e, known: knownHints{}, array: -1, buffers: -1, fewer: 1}
}

func (e *Events) run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	r := newEventRun(e)
	r.cfg, r.q, r.proc, r.most = cfg, q, procfs.OpenDir(e.pid), cmp.Or(cfg.MostSamples, mostSamples)
	defer r.proc.Close()
	if !r.proc.Exists() {
		return Stats{}, ErrNoProcess
	}
	defer r.close()
	if err := r.open(); err != nil {
		return Stats{}, err
	}
	r.pause(0)
	r.began, r.cpuAtStart = ptrace.Monotonic(), threadCPU()
	r.checkedAt, r.ownCPU = r.began, processCPU()
	r.loop(ctx)
	r.pause(1)
	r.over = ptrace.Monotonic()
	r.readCounters()
	r.counters.close()
	r.closeProbes() // nothing comes any more
	r.drain()
	return r.sum(), r.failed
}

func (r *eventRun) open() (err error) {
	raiseFileLimit()
	r.cpus = onlineCPUs()
	size := ringShare(len(r.cpus), eventRing)
	least := min(size, ringLeast)
	r.stack = ringStack(size)
	if r.cfg.MaxStack > 0 {
		r.stack = min(r.stack, r.cfg.MaxStack)
	}
	if r.cfg.Lean {
		size = min(size, leanEventRing)
		least = min(size, ringFloor)
		r.stack = min(r.stack, leanEventStack, ringStack(least))
	}
	r.contents = contentReader{Contents: r.cfg.Contents, chance: firstChance}
	thinned := true
	for i := range r.list {
		if retired := r.list[i].Retired; r.cfg.Contents == nil {
			r.list[i].Retired = nil
		} else if retired != nil {
			r.contents.moment = retired.Moment
		}
		r.counts = append(r.counts, EventCount{Name: r.list[i].Name, Interval: max(r.list[i].Interval, 1)})
		r.brought = append(r.brought, 0)
		thinned = thinned && r.counts[i].Interval > 1
	}
	if thinned && !r.cfg.Lean {
		r.startResting()
	}
	if r.rings, err = openRings(r.cpus, size, least); err != nil {
		return err
	}
	r.polls = r.rings.polls()
	if r.cfg.Lean {
		if r.waiter, err = newRingWaiter(r.polls); err != nil {
			return err
		}
	}
	if err := r.openProbes(); err != nil {
		return err
	}
	return r.openCounters()
}

// A Lean run shares the machine's locked memory with the runs of two hundred JVMs. Its rings have room for some
// records, and are emptied as soon as there is one.
const (
	leanEventStack = 32 << 10
	leanEventRing  = 128 << 10
	leanEventTick  = time.Second
)

func (r *eventRun) close() {
	r.closeProbes()
	r.counters.close()
	r.waiter.close()
	for _, fd := range r.outputs {
		unix.Close(fd)
	}
	for _, fd := range []int{r.array, r.buffers} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	r.rings.close()
}

func (r *eventRun) loop(ctx context.Context) {
	stop := ctx.Done()
	for r.failed == nil {
		select {
		case <-stop:
			return
		default:
		}
		if r.proc.Ended() {
			r.stats.Ended = true
			return
		}
		r.takeHints()
		r.drain()
		now := ptrace.Monotonic()
		if r.isTimeToRate(now) {
			r.boundRates(now - r.checkedAt)
			r.checkedAt = now
		}
		if now-r.followedAt >= seekThreadEvery {
			r.followedAt = now
			r.followProcess()
		}
		r.progress.answer(r.sum)
		r.wait()
	}
}

// seekThreadEvery is how often goprof looks whether the thread by which the probes were set still lives.
const seekThreadEvery = int64(100 * time.Millisecond)

func (r *eventRun) takeHints() {
	if r.known.takeFrom(&r.hints) {
		r.hurry()
	}
}

// startResting has records wait for some milliseconds from now on.
func (r *eventRun) startResting() {
	r.rest = eventRest
	ptrace.WaitItsTurn()
}

// hurry has records read at once from now on.
func (r *eventRun) hurry() {
	if r.rest > 0 {
		r.rest = 0
		ptrace.PreemptAtOnce()
	}
}

// wait rests, and then sleeps until a ring has something, or for a tick. Like ptrace.SleepUntil, wait does not tell
// Go's scheduler. A Lean run does: hundreds of runs would keep all of Go's processors while they sleep.
func (r *eventRun) wait() {
	if r.waiter != nil {
		if err := r.waiter.wait(pulseAfter(ptrace.Monotonic(), int64(leanEventTick)), r.rings.haveRecords); err != nil {
			r.failed = err
		}
		return
	}
	if r.rest > 0 {
		r.ts = unix.NsecToTimespec(r.readAt + r.rest)
		ptrace.SleepUntil(&r.ts)
	}
	r.ts = unix.NsecToTimespec(eventTick)
	sleepUntilRecords(r.polls, &r.ts, false)
}

func (r *eventRun) sum() Stats {
	s := r.stats
	s.Threads = len(r.known)
	s.Interval = r.cfg.Interval
	s.Wall = time.Duration(cmp.Or(r.over, ptrace.Monotonic()) - r.began)
	s.CPU = threadCPU() - r.cpuAtStart
	s.Events = make([]EventCount, len(r.counts))
	copy(s.Events, r.counts)
	for i := range r.probes {
		r.probes[i].sum(&s.Events[r.probes[i].number])
	}
	return s
}

// drain reads all rings.
func (r *eventRun) drain() {
	if r.rest > 0 && r.rings.haveRecords() {
		r.readAt = ptrace.Monotonic()
	}
	r.rings.drain(r)
}

func (r *eventRun) lose(o ptrace.Outcome, n int64) {
	r.stats.Attempted += n
	r.stats.Lost[o] += n
}

// record is recordTaker.record.
func (r *eventRun) record(b ringBytes, rec perfRecord) {
	if !b.parseEvent(rec, r.cpu, r.kernel, &r.rec) {
		r.lose(ptrace.Failed, 1)
	} else if r.rec.pid == r.pid {
		r.sample(b, &r.rec)
	}
}

// sample makes a look from a record and hands the look over.
func (r *eventRun) sample(b ringBytes, e *eventRecord) {
	number, amount, own := r.whatOf(b, e)
	if number < 0 || r.known[e.tid].Skip {
		return
	}
	r.brought[number]++
	lot := r.lotOf(b, e, number)
	if lot.sort != look.HitTold {
		count := &r.counts[number]
		count.Taken++
		count.Stood += amount
	} else if r.list[number].Buffer == NewBuffer { // it tells of the buffer alone
		r.contents.take(e.tid, &lot)
		return
	}
	why := ptrace.NoRegisters
	var to *look.Look
	if e.hasRegs {
		to, why = r.q.take(), ptrace.QueueFull
	}
	if to == nil {
		if lot.sort != look.HitTold {
			r.lose(why, 1)
		}
		return
	}
	b.fill(&e.rawSample, r.cpu, r.known[e.tid], to)
	to.Event.Number, to.Event.Amount, to.Event.Own = number+1, amount, own
	to.Event.Sort, to.Event.Weight = lot.sort, lot.weight
	if len(r.list[number].Probes) > 0 {
		to.Event.Data = b.appendTo(to.Event.Data, e.raw+dataCopies, r.list[number].size())
	} else {
		to.Event.Data = b.appendTo(to.Event.Data, e.raw, e.rawLen)
	}
	r.cfg.readSoon(to, true)
	if lot.sort != look.HitTold {
		r.stats.Attempted++
		r.stats.Taken++
	}
	r.q.put(to)
	r.contents.take(e.tid, &lot)
}

// whatOf says which event a record is of, and how much the record stands for. number is -1 for an event that is not
// ours.
func (r *eventRun) whatOf(b ringBytes, e *eventRecord) (number int, amount, own int64) {
	if i, ok := r.counters.ids[e.id]; ok {
		if r.counters.isTwin(e, e.regs[r.cpu.SP], e.regs[r.cpu.PC]) {
			return -1, 0, 0
		}
		times := min(r.thinness()*r.fewer, mostThin)
		if times > 1 && rand.Int64N(times) != 0 {
			return -1, 0, 0
		}
		return i, r.counts[i].interval() * times, 1
	}
	if e.rawLen < dataCopies {
		return -1, 0, 0
	}
	number = int(b.word(e.raw+dataNumber)) - 1
	if number < 0 || number >= len(r.list) || e.rawLen < r.list[number].dataSize() {
		return -1, 0, 0
	}
	return number, believableAmount(b.word(e.raw + dataAmount)), believableAmount(b.word(e.raw + dataOwn))
}

// believableAmount bounds what a function's argument says: the target chooses the argument.
func believableAmount(n uint64) int64 {
	const most = 1 << 46
	if n > most {
		return 0
	}
	return int64(n)
}

// appendTo appends bytes of a record, which begin at a multiple of 4.
func (b ringBytes) appendTo(to []byte, at uint64, n int) []byte {
	for range n {
		to = append(to, b[at&uint64(len(b)-1)])
		at++
	}
	return to
}
