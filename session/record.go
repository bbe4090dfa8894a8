//go:build linux

package session

import (
	"cmp"
	"context"
	"maps"
	"os"
	"sync/atomic"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

type RecordOptions struct {
	Duration time.Duration // from the first look on; 0 is until ctx is done
	Mode     Mode          // "" is CPUMode
	Interval time.Duration // between two samples of a thread: CPU time in CPUMode, otherwise elapsed time
	Depth    int           // most frames of a stack; 0 is unwind.DefaultDepth
	Threads  bool          // each stack begins with its thread's frame
	Weight   profile.Weight
	Engine   EngineName // not AutoEngine; "" is PtraceEngine
	// Wants chooses threads by "name tid=N"; nil chooses all. Other threads are ignored, with their CPU time.
	Wants func(thread string) bool
	// GroupThreads merges the threads of a pool. HideInternal leaves out frames that only pass calls on. See package
	// naming.
	GroupThreads, HideInternal bool
	// SureLeaf replaces a leaf that is a guess with the innermost method that is certain.
	SureLeaf bool
	// MaxOverhead is the share of CPU time that pauses may cost; see sampler.Config. 0 is any.
	MaxOverhead float64
	// Visits are called between two samples, to show the recording so far. No stack is walked during a visit, so it should
	// be short.
	Visits <-chan Visit
	// States chooses looks by the thread's state, in wall-clock modes; nil chooses all.
	States func(profile.State) bool
	// LeaveIdle leaves out looks at idle threads of the JVM itself (own_threads.go), in wall-clock modes.
	LeaveIdle bool
	// NonBlocking and NativeOnce are wall.Options, for wall-clock modes.
	NonBlocking, NativeOnce bool
	// Min leaves out shorter waits, with WaitingMode and PerfEngine.
	Min time.Duration
	// Wakers asks what has ended each wait, with WaitingMode and PerfEngine. See TryWakers.
	Wakers bool
	// Chain is how many wakers are recorded for each wait: its own waker, the waker of that waker's last wait, and so on.
	// 0 is one.
	Chain int
	// Sink gets each sample with its time, if it is not nil.
	Sink Sink
	// Full, if not nil, is called with the stacks so far when they need much memory. The profile then forgets them. Full
	// is for callers that get the samples by Sink, and need only sums from the profile. It is called on the goroutine that
	// walks stacks. With Threads the profile keeps all stacks, because names of threads may become known late.
	Full func(stacks *profile.Profile)
	// Member, if it is not nil and Mode is CPUMode, returns the engine: an engine of the kind that Engine names, which
	// takes samples together with those of other recordings.
	Member func(pid int) sampler.Engine
	// Yield ends the recording with ErrCut if PtraceEngine would show more of this program (yield.go).
	Yield bool
	// Pace is sampler.Config's.
	Pace *atomic.Int64
	// Started, if not nil, gets the engine before it runs.
	Started func(sampler.Engine)
	// Lean is for recordings that run without end beside many others (habits.go). Their stacks go to Sink alone, and the
	// profile has only the account. The caller sets goprof's priority.
	Lean bool
	// Event, if not nil, is sampled in place of CPU time. Then Engine is PerfEngine.
	Event *EventPlan
	// MostSamples bounds the samples of Event in a second; 0 is the default.
	MostSamples float64
	// Kernel asks for the kernel's frames above those of the program, with PerfEngine.
	Kernel bool
	// Part is the recording's name if several go into one file, each with a Session of its own.
	Part string
}

// Visit is called during a recording, with the profile so far and its account. It may use both only until it returns.
type Visit func(*profile.Profile, *profile.Summary)

// queueLength is how many snapshots can wait for their walk; see queueFor.
const queueLength = 256

// Record samples the JVM until ctx is done or the process ends. Both are normal ends.
func (s *Session) Record(ctx context.Context, opt RecordOptions) (*profile.Profile, profile.Summary, error) {
	if opt.Depth > 0 {
		s.Walker.MaxDepth = opt.Depth
	}
	p := profile.New()
	before := ownCPU()
	if opt.Mode == TTSPMode {
		if err := s.WatchSafepoints(); err != nil {
			return p, p.Summary(), err
		}
	}
	has := habitsOf(opt.Lean)
	if has.ahead {
		defer runAhead()()
	}
	var r *recording
	var config sampler.Config
	if !s.guarded(func() {
		p.Meta = s.meta(opt)
		s.Walker.Warm()
		r = s.recording(opt)
		s.dir.allNames, s.dir.every = opt.Wants != nil, has.list
		r.profile, r.before = p, before
		r.readSoon(&config)
		r.findContexts() // a hint has the address of the thread's context
		r.refreshHints(0)
		r.beginTimed()
		r.countAllocated()
		if has.surveys {
			r.surveyed.do(s.VM.Survey)
		}
		if !has.stacks {
			s.VM.ForgetFlags()
		}
	}) {
		return p, p.Summary(), process.ErrSilent
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if opt.Duration > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, opt.Duration)
		defer end()
	}
	r.stop = stop
	queue := sampler.NewQueue(r.queueLength())
	done := make(chan error, 1)
	r.configure(&config)
	if opt.Started != nil {
		opt.Started(r.sampler)
	}
	ended := make(chan struct{})
	go func() {
		_, err := r.sampler.Run(ctx, config, queue)
		done <- err
		close(ended)
	}()
	r.hangs = hangsAfter(ctx, ended)
	var silent error
	if !s.guarded(func() {
		r.takeAll(queue)
		r.unmounted.end()
		r.endShares()
		r.endUnfreed()
		r.manner.end()
		r.endIO()
		r.countAllocated()
		r.tellStarts()    // after countAllocated, which may find new threads
		s.Walker.Forget() // writing the result needs this memory
		s.VM.Forget()
	}) {
		stop()
		silent = process.ErrSilent
	}
	select {
	case err := <-done:
		silent = cmp.Or(err, silent)
	case <-r.hangs:
		silent = cmp.Or(silent, error(ErrHangs))
	}
	silent = cmp.Or(silent, r.yielding.why)
	s.guarded(func() {
		r.settleNames() // it reads the names of threads
		s.dir.watch = nil
	})
	return p, r.account(), silent
}

func (r *recording) configure(c *sampler.Config) {
	o := &r.opt
	if c.Interval = o.Interval; o.Event != nil { // the interval of an event is an amount
		c.Interval = time.Second
	}
	c.MaxOverhead, c.MaxStack = o.MaxOverhead, stackLimit(o.Depth)
	c.Contexts, c.Memory, c.Pace = &r.contexts.Contexts, r.memory, o.Pace
	c.Lean, c.MostSamples = o.Lean, o.MostSamples
}

// strangerShare: the search for unknown threads that are late for a safepoint may take this fraction of the time (one
// part in 10). Without the bound, a thread that is only in the JVM's memory, and not in the kernel's list, would be
// searched at each tick.
const strangerShare = 10

type recording struct {
	*Session
	opt     RecordOptions
	habits  habits
	manner  manner
	sampler sampler.Engine
	can     sampler.Abilities
	advice
	queue *sampler.Queue
	ending

	bunch   bunch
	stack   profile.Stack // of the present look
	virtual profile.Stack // the part of stack that belongs to a virtual thread
	threadNames
	mappings
	kernel  kernelFrames
	group   memoryGroup
	events  *eventReader // in a recording of events
	shares  *allocShares // nil if no buffers are read
	unfreed *unfreed     // nil unless an event is about memory that is not freed
	// unmounted counts virtual threads without a carrier. It is nil if they are not wanted.
	unmounted *unmounted
	contexts  contexts
	surveyed  surveyed // of generated code

	profile   *profile.Profile
	timed     *telling // nil if no samples with their times are wanted
	sampled   map[int]bool
	lost      [ptrace.NumOutcomes]int64 // what the profile has counted as lost
	before    time.Duration             // goprof's CPU time at the beginning
	allocated *allocations
	bounds
}

// advice is what the sampler has been told about threads.
type advice struct {
	advised    int                 // the round of the directory that the sampler knows
	hints      map[int]ptrace.Hint // the sampler's hints
	carriers   map[int]bool        // threads that were seen to run virtual threads
	newThreads <-chan struct{}     // gets a message if an unknown thread is late; nil if unknown threads are not searched
	strangers  sparing             // bounds the search for such threads
}

type ending struct {
	stop     context.CancelFunc
	hangs    <-chan struct{} // closed if the sampling thread does not end
	yielding yielding
}

// threadNames are the names under which stacks are added.
type threadNames struct {
	labels virtualLabels
	pools  map[string]string // labels of pools, by the labels of threads
	late   map[int]lateName
	folder naming.Folder
}

// mappings notes when the process got its present mappings.
type mappings struct {
	mapped   uint64 // their generation
	mappedAt int64  // when a change was last noticed
}

type bounds struct {
	caches cacheBound
	kept   int // how many nodes the profile must have before it is handed over
}

func (s *Session) recording(opt RecordOptions) *recording {
	r := &recording{Session: s, opt: opt, habits: habitsOf(opt.Lean), sampled: map[int]bool{}, allocated: s.allocations(),
		advice:      advice{hints: map[int]ptrace.Hint{}},
		threadNames: threadNames{labels: virtualLabels{}, pools: map[string]string{}},
		mappings:    mappings{mapped: s.Process.Generation()},
		kernel:      openKernelFrames(opt.Kernel), group: memoryGroupOf(s.Process.PID())}
	r.choose()
	return r
}

// eventQueue is how many looks of events and of context switches can wait. Many may come at once, and all are counted.
const eventQueue = 8192

func (r *recording) queueLength() int {
	n := queueFor(stackLimit(r.opt.Depth))
	switch {
	case r.habits.queue > 0:
		return min(n, r.habits.queue)
	case r.can.Bursts:
		return eventQueue
	}
	return n
}

// remapEvery is how often goprof checks the process's mappings, and whether it still lives. remapShare bounds the share
// of the time that this may take: the stacks of ten thousand threads are twenty thousand mappings.
const (
	remapEvery = time.Second
	remapShare = 100
)

// takeAll takes the looks that the sampler hands over, until the sampler ends or its thread hangs. In between, it also
// takes allocation buffers, draws virtual threads without a carrier, and shows the profile to visitors. At each tick of
// idle it does the work that must be done even if no looks come.
func (r *recording) takeAll(queue *sampler.Queue) {
	r.queue = queue
	r.unmounted.begin()
	idle := sampler.NewPulse(remapEvery, 0)
	defer idle.Stop()
	var mapped sparing
	quiet := 0 // consecutive ticks without a look
	for {
		select {
		case snap, ok := <-queue.Looks():
			if !ok {
				return
			}
			quiet = 0
			r.takeTogether(snap, queue)
			r.survey()
			r.handOverStacks()
		case held := <-r.shares.buffers():
			r.takeBuffer(held)
		case <-r.unmounted.due():
			r.unmounted.next()
		case <-r.hangs:
			return
		case <-idle.C:
			// A new library may be mapped in place of an old one. The process may also have called exec, which nothing else
			// notices while all threads are idle.
			idle.Next(r.nextIdle())
			if quiet++; quiet > 1 && (quiet-1)%r.habits.quiet != 0 {
				continue
			}
			if mapped.due(remapShare) {
				mapped.doTimed(r.Process.Refresh)
			}
			r.findContexts()
			r.alive()
			r.refreshHints(0)
			if r.allocated.pace.due(allocationShare) {
				r.countAllocated()
			}
			r.manner.settleAll()
			r.tick()
			r.shares.forgetClasses()
			r.boundCaches()
		case <-r.newThreads:
			if r.strangers.due(strangerShare) {
				r.strangers.doTimed(func() error { r.refreshHints(0); return nil })
			}
		case visit := <-r.opt.Visits:
			r.settleNames()
			r.payAll()
			sum := r.account()
			visit(r.profile, &sum)
		}
	}
}

// nextIdle returns the parameters for a Pulse: when takeAll next checks the process.
func (r *recording) nextIdle() (every, shift time.Duration) {
	if every = r.habits.remap; r.habits.spread {
		shift = time.Duration(r.Process.PID()) * time.Second % every
	}
	return every, shift
}

// alive ends the recording if the process has become another program by exec. The sampler does not notice that: a
// process with this number still runs.
func (r *recording) alive() bool {
	if r.Process.Alive() == nil {
		return true
	}
	r.stop()
	return false
}

// maxPools bounds the number of threads' labels that are kept.
const maxPools = 1 << 16

// pool returns the label of a thread's pool if threads are grouped by pool. Otherwise it returns the label itself.
func (r *recording) pool(label string) string {
	if !r.opt.GroupThreads {
		return label
	}
	return profile.Cached(r.pools, maxPools, label, func() string { return naming.PoolLabel(label) })
}

// follow looks up the thread of a sample, and reports whether the thread is wanted.
func (r *recording) follow(snap *look.Look) bool {
	r.refreshHints(snap.TID)
	h, known := r.hints[snap.TID]
	if !known {
		h = r.hint(snap.TID)
	}
	if h.Side != snap.SideAddr || h.Skip {
		r.sampler.Advise(snap.TID, h) // the sampler did not know the thread when it got the hint
	}
	return !h.Skip
}

// hint returns what the sampler should know about a thread.
func (r *recording) hint(tid int) (h ptrace.Hint) {
	if th := r.dir.threads[tid]; th != nil {
		h = th.hint(r.VM)
		h.Pointer = r.contexts.pointer(&th.java)
	}
	h.Soon = r.isCarrier(tid)
	if r.opt.Wants != nil {
		label := r.dir.label(tid)
		h.Skip = !r.opt.Wants(label[1 : len(label)-1]) // a name may itself have brackets
	}
	return h
}

// refreshHints looks for the thread tid if it is unknown, and for all threads from time to time. It gives the sampler
// the hints of all new threads, because the first look at a thread already needs its hint.
func (r *recording) refreshHints(tid int) {
	r.dir.get(tid)
	if r.dir.round == r.advised {
		return
	}
	r.advised = r.dir.round
	for tid := range r.dir.threads {
		if h := r.hint(tid); h != r.hints[tid] && r.sampler.Advise(tid, h) {
			r.hints[tid] = h
		}
	}
	maps.DeleteFunc(r.hints, func(tid int, _ ptrace.Hint) bool { return r.dir.threads[tid] == nil })
	maps.DeleteFunc(r.carriers, func(tid int, _ bool) bool { return r.dir.threads[tid] == nil })
}

// meta returns what is known before the first sample.
func (s *Session) meta(opt RecordOptions) profile.Meta {
	v := s.VM.Version()
	mode, interval := opt.Mode.name(), opt.Interval
	if opt.Event != nil {
		mode, interval = opt.Event.Name, 0
	}
	host, _ := os.Hostname() // "" if it is not known
	return profile.Meta{
		Host:      host,
		PID:       s.Process.PID(),
		MainClass: s.program(),
		JVM:       v.Release,
		Collector: s.VM.Collector(),
		Mode:      mode,
		Engine:    opt.Engine.name(),
		Start:     time.Now(),
		Interval:  interval,
		Weight:    opt.Weight,
		Part:      opt.Part,
	}
}

// now reads CLOCK_MONOTONIC, by which snapshots are dated.
func now() int64 { return ptrace.Monotonic() }
