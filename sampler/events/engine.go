//go:build linux

package events

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
	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/span"
	"goprof/sampler/threads"
)

// Engine takes samples of events, and no others. Like package perf's engine it stops no thread.
type Engine struct {
	sampler.Base
	list   []Event
	kernel bool // the kernel's frames are wanted
	thin   atomic.Int64
	read   *Contents // for events with Retired; nil: the contents of buffers are not read
}

// New makes a sampler of events of pid. kernel says that the kernel's frames are wanted, too: Look.Kernel.
func New(pid int, cpu *arch.CPU, list []Event, kernel bool) *Engine {
	return &Engine{Base: sampler.NewBase(pid, cpu, nil), list: slices.Clone(list), kernel: kernel}
}

// ReadContents makes the run read into c what buffers held. Call it before Run.
func (e *Engine) ReadContents(c *Contents) { e.read = c }

// Run is described at sampler.Engine.
func (e *Engine) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	return e.RunEngine(cfg, q, func() (stats sampler.Stats, err error) {
		if len(e.list) == 0 || len(e.list) > MaxEvents {
			return sampler.Stats{}, ErrNoEvents
		}
		for i := range e.list {
			if err := e.list[i].check(len(e.CPU.Probe.Args)); err != nil {
				return sampler.Stats{}, err
			}
		}
		ptrace.OnThreadHoldingNobody(func() { stats, err = e.run(ctx, cfg, q) })
		return stats, err
	})
}

const (
	// eventTick is the mean time between two looks into the rings.
	eventTick = int64(4 * time.Millisecond)
	// eventRest is how long goprof does not read the rings after it has found a record. There is a rest only if samples
	// are some of many hits. To read, goprof takes a CPU from a thread, often from the one that was hit. On a busy
	// machine this costs the thread more than its hits. The first record after a rest is read at once. If each hit is
	// to be a sample there is no rest: the rings might have no room for hundreds of hits that come at once. There is no
	// rest either where virtual threads run: their frames in the heap have to be read within microseconds.
	eventRest = int64(3 * time.Millisecond)
)

// eventRun is one run on its own OS thread.
type eventRun struct {
	*Engine
	cfg        sampler.Config
	q          *sampler.Queue
	proc       *procfs.Dir
	stats      sampler.Stats
	stack      int // bytes of it that are copied for each sample
	cpus       []int
	rings      ring.Set
	polls      []unix.PollFd
	waiter     *ring.Waiter // set in a Lean run
	outputs    []int        // the events to which programs write, by CPU
	array      int          // the map that leads to outputs
	spans      *span.Reader // nil: spans cannot be read here
	buffers    int          // the map of threads, for events with a Buffer
	probes     []eventProbe
	followedAt int64
	probeTID   int // the thread through which the probes were set
	counters   counters
	counts     []sampler.EventCount
	brought    []int64 // records of each event
	contents   contentReader
	known      sampler.KnownHints
	rec        ring.Hit
	failed     error
	rest       int64 // eventRest, or 0
	readAt     int64 // when something was found in a ring

	began      int64
	over       int64 // when hits stopped counting; 0: they still count
	checkedAt  int64
	ownCPU     int64   // CPU time of goprof at checkedAt
	most       float64 // samples per second at most
	attempted  int64   // stats.Attempted at checkedAt
	fewer      int64   // one in so many samples of counters is kept
	cpuAtStart time.Duration
	ts         unix.Timespec
}

type eventProbe struct {
	number  int // the event's
	at      []Probe
	frees   bool   // its functions give memory back
	point   string // the raw tracepoint of the program, if it has no probes
	prog    int    // -1: it is closed
	mem     []byte
	counts  *eventCounts // nil: another probe's program has the counts
	events  []int
	seen    int64  // samples when the rate was last looked at
	longest uint64 // the longest interval so far
}

// newEventRun makes a run without descriptors. Their fields are -1, because 0 is goprof's own input.
func newEventRun(e *Engine) *eventRun {
	return &eventRun{Engine: e, known: sampler.KnownHints{}, array: -1, buffers: -1, fewer: 1,
		counters: counters{prog: -1}}
}

// run opens all events, reads their rings until the end, and returns the account.
func (e *Engine) run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	r := newEventRun(e)
	r.cfg, r.q, r.proc, r.most = cfg, q, procfs.OpenDir(e.PID), cmp.Or(cfg.MostSamples, mostSamples)
	defer r.proc.Close()
	if !r.proc.Exists() {
		return sampler.Stats{}, sampler.ErrNoProcess
	}
	defer r.close()
	if err := r.open(); err != nil {
		return sampler.Stats{}, err
	}
	r.pause(0)
	r.began, r.cpuAtStart = ptrace.Monotonic(), sampler.ThreadCPU()
	r.checkedAt, r.ownCPU = r.began, sampler.OwnCPU()
	r.loop(ctx)
	r.pause(1)
	r.over = ptrace.Monotonic()
	r.readCounters()
	r.counters.close()
	r.closeProbes() // the last record has come
	r.takeFiles()
	r.drain()
	r.closeFiles()
	return r.sum(), r.failed
}

// open makes the rings, and opens the counters and probes.
func (r *eventRun) open() (err error) {
	threads.RaiseFileLimit()
	r.cpus = cpuset.Online()
	size := ring.Share(len(r.cpus), ring.MostOfEvents)
	least := min(size, ring.Least)
	r.stack = ring.StackFor(size)
	if r.cfg.MaxStack > 0 {
		r.stack = min(r.stack, r.cfg.MaxStack)
	}
	if r.cfg.Lean {
		size = min(size, leanEventRing)
		least = min(size, ring.Floor)
		r.stack = min(r.stack, leanEventStack, ring.StackFor(least))
	}
	r.contents = contentReader{Contents: r.read, chance: firstChance}
	thinned := true
	for i := range r.list {
		if retired := r.list[i].Retired; r.read == nil {
			r.list[i].Retired = nil
		} else if retired != nil {
			r.contents.moment = retired.Moment
		}
		r.counts = append(r.counts, sampler.EventCount{Name: r.list[i].Name, Interval: max(r.list[i].Interval, 1)})
		r.brought = append(r.brought, 0)
		thinned = thinned && r.counts[i].Interval > 1
	}
	if thinned && !r.cfg.Lean {
		r.startResting()
	}
	if r.rings, err = ring.Open(r.cpus, size, least); err != nil {
		return err
	}
	r.polls = r.rings.Polls()
	if r.cfg.Lean {
		if r.waiter, err = ring.NewWaiter(r.polls); err != nil {
			return err
		}
	}
	if err := r.openProbes(); err != nil {
		return err
	}
	return r.openCounters()
}

// A Lean run shares the machine's locked memory with the runs of two hundred JVMs. Its rings have room for a few
// records only. So goprof empties a ring as soon as it has a record.
const (
	leanEventStack = 32 << 10
	leanEventRing  = 128 << 10
	leanEventTick  = time.Second
)

func (r *eventRun) close() {
	r.closeProbes()
	r.closeFiles()
	r.counters.close()
	r.waiter.Close()
	for _, fd := range r.outputs {
		unix.Close(fd)
	}
	for _, fd := range []int{r.array, r.buffers} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	r.spans.Close()
	r.rings.Close()
}

// loop reads the rings until ctx is done, the process ends or something fails.
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
		r.spans.Follow(r.PID, r.cfg.Contexts)
		r.takeFiles()
		r.drain()
		now := ptrace.Monotonic()
		if r.isTimeToRate(now) {
			r.boundRates(now - r.checkedAt)
			r.boundPairs(now)
			r.checkedAt = now
		}
		if now-r.followedAt >= seekThreadEvery {
			r.followedAt = now
			r.followProcess()
		}
		r.Progress.Answer(r.sum)
		r.wait()
	}
}

// seekThreadEvery is how often goprof checks that the thread through which the probes were set is still alive.
const seekThreadEvery = int64(100 * time.Millisecond)

func (r *eventRun) takeHints() {
	if r.known.TakeFrom(&r.Hints) {
		r.hurry()
	}
}

// startResting makes goprof leave records in the rings for some milliseconds from now on.
func (r *eventRun) startResting() {
	r.rest = eventRest
	ptrace.WaitItsTurn()
}

// hurry makes goprof read records at once from now on.
func (r *eventRun) hurry() {
	if r.rest > 0 {
		r.rest = 0
		ptrace.PreemptAtOnce()
	}
}

// wait rests, and then sleeps until a ring has something, or for a tick. Like ptrace.SleepUntil, wait keeps its
// processor of Go's scheduler. A Lean run gives it up: otherwise hundreds of sleeping runs would hold all processors.
func (r *eventRun) wait() {
	if r.waiter != nil {
		if err := r.waiter.Wait(sampler.PulseAfter(ptrace.Monotonic(), int64(leanEventTick)),
			r.rings.HaveRecords); err != nil {
			r.failed = err
		}
		return
	}
	if r.rest > 0 {
		r.ts = unix.NsecToTimespec(r.readAt + r.rest)
		ptrace.SleepUntil(&r.ts)
	}
	r.ts = unix.NsecToTimespec(eventTick)
	ring.SleepUntil(r.polls, &r.ts)
}

func (r *eventRun) sum() sampler.Stats {
	s := r.stats
	s.Threads = len(r.known)
	s.Interval = r.cfg.Interval
	s.Wall = time.Duration(cmp.Or(r.over, ptrace.Monotonic()) - r.began)
	s.CPU = sampler.ThreadCPU() - r.cpuAtStart
	s.Events = make([]sampler.EventCount, len(r.counts))
	copy(s.Events, r.counts)
	for i := range r.probes {
		r.probes[i].sum(&s.Events[r.probes[i].number])
	}
	return s
}

func (r *eventRun) drain() {
	if r.rest > 0 && r.rings.HaveRecords() {
		r.readAt = ptrace.Monotonic()
	}
	r.rings.Drain(r)
}

// Lose is described at ring.Taker.
func (r *eventRun) Lose(o ptrace.Outcome, n int64) {
	r.stats.Attempted += n
	r.stats.Lost[o] += n
}

// Record is described at ring.Taker.
func (r *eventRun) Record(b ring.Bytes, rec ring.Record) {
	if at, ok := b.ParseHit(rec, r.kernel, &r.rec); !ok || !b.ParseMachine(at, rec, r.CPU, &r.rec.Sample) {
		r.Lose(ptrace.Failed, 1)
	} else if r.rec.PID == r.PID {
		r.sample(b, &r.rec)
	}
}

// sample makes a look from a record and hands the look over.
func (r *eventRun) sample(b ring.Bytes, e *ring.Hit) {
	number, amount, own := r.whatOf(b, e)
	if number < 0 || r.known[e.TID].Skip {
		return
	}
	if o := r.list[number].IO; o != nil {
		o.name(r.PID, int64(b.Word(e.Raw+dataCopies+ioDataFD)), b.Word(e.Raw+dataCopies+ioDataID))
	}
	r.brought[number]++
	lot := r.lotOf(b, e, number)
	if lot.sort != look.HitWithoutSample {
		count := &r.counts[number]
		count.Taken++
		count.Stood += amount
	} else if r.list[number].Buffer == NewBuffer { // the hit reports the buffer alone
		r.contents.take(e.TID, &lot)
		return
	}
	why := ptrace.NoRegisters
	var to *look.Look
	if e.HasRegs {
		to, why = r.q.Take(), ptrace.QueueFull
	}
	if to == nil {
		if lot.sort != look.HitWithoutSample {
			r.Lose(why, 1)
		}
		return
	}
	b.Fill(&e.Sample, r.CPU, r.known[e.TID], to)
	to.Event.Number, to.Event.Amount, to.Event.Own = number+1, amount, own
	to.Event.Sort, to.Event.Weight = lot.sort, lot.weight
	if !r.list[number].isCounter() {
		to.Context = b.Span(e.Raw + dataSpan)
		to.Event.Data = appendTo(b, to.Event.Data, e.Raw+dataCopies, r.list[number].size())
	} else {
		to.Event.Data = appendTo(b, to.Event.Data, e.Raw, e.RawLen)
	}
	r.cfg.ReadSoon(to, true)
	if lot.sort != look.HitWithoutSample {
		r.stats.Attempted++
		r.stats.Taken++
	}
	r.q.Put(to)
	r.contents.take(e.TID, &lot)
}

// whatOf returns which event a record is of, and how much the record stands for. own is the amount of the hit itself.
// number is -1 for an event of another run.
func (r *eventRun) whatOf(b ring.Bytes, e *ring.Hit) (number int, amount, own int64) {
	if i, ok := r.counters.ids[e.ID]; ok {
		if r.counters.isTwin(e, e.Regs[r.CPU.SP], e.Regs[r.CPU.PC]) {
			return -1, 0, 0
		}
		times := min(r.thinness()*r.fewer, mostThin)
		if times > 1 && rand.Int64N(times) != 0 {
			return -1, 0, 0
		}
		return i, r.counts[i].StandsFor() * times, 1
	}
	if e.RawLen < dataCopies {
		return -1, 0, 0
	}
	number = int(b.Word(e.Raw+dataNumber)) - 1
	if number < 0 || number >= len(r.list) || e.RawLen < r.list[number].dataSize() {
		return -1, 0, 0
	}
	return number, believableAmount(b.Word(e.Raw + dataAmount)), believableAmount(b.Word(e.Raw + dataOwn))
}

// believableAmount returns the amount that an argument gives, 0 if it is too large: the target chooses the argument.
func believableAmount(n uint64) int64 {
	const most = 1 << 46
	if n > most {
		return 0
	}
	return int64(n)
}

// appendTo returns to with bytes of a record appended. The bytes begin at a multiple of 4.
func appendTo(b ring.Bytes, to []byte, at uint64, n int) []byte {
	for range n {
		to = append(to, b[at&uint64(len(b)-1)])
		at++
	}
	return to
}

// Abilities is described at sampler.Engine.
func (e *Engine) Abilities() sampler.Abilities {
	return sampler.Abilities{ReadsLate: true, Bursts: true}
}
