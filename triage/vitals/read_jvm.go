//go:build linux

package vitals

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"goprof/process/maybe"
	"goprof/vmstructs"
)

// javaPart is the part of a reading that comes from the JVM's memory.
type javaPart struct {
	jvm       JVM
	threads   []vmstructs.Thread
	names     []string // of threads
	ok        bool     // the threads could be listed
	allocated []maybe.Value[uint64]
	mounted   []vmstructs.Mounted
}

// mattering are the flags that Reading.JVM.Flags holds, if the JVM has them.
var mattering = []string{"MaxMetaspaceSize", "ActiveProcessorCount"}

// readJava reads all facts from the JVM's memory. If the memory does not answer, the caller continues while readJava
// still runs (session.Guarded). So readJava uses only fields of the Vitals that no other code uses: health, names and
// the session's clock.
func (v *Vitals) readJava() (part javaPart) {
	h := v.health
	j := &part.jvm
	if v.work {
		v.readWork(&part)
		return part
	}
	j.Flags = map[string]string{}
	for _, name := range mattering {
		if f, ok := h.Flag(name); ok {
			j.Flags[name] = f.String()
		}
	}
	// Facts that change soonest come first: whether a safepoint is under way, and which threads have not stopped.
	state := h.Safepoint()
	threads, err := h.Threads()
	part.threads, part.ok = threads, err == nil
	j.Safepoints.Operation = h.Operation()
	if s, ok := state.Get(); ok {
		if s == vmstructs.Polled {
			s = settled(threads)
		}
		j.Safepoints.State = maybe.Known(safepointStates[s])
		if s == vmstructs.Synchronizing && h.Safepoint() == state { // the same safepoint is still under way, or another one
			j.Safepoints.HoldOuts = holdOuts(threads)
		}
	}
	part.allocated = h.Allocated(threads)
	part.names = v.nameThreads(threads, time.Now())
	if h.HasVirtual() && part.ok {
		part.mounted = h.Mounted(threads)
		j.Virtual.Mounted = maybe.Known(len(part.mounted))
		if slices.ContainsFunc(part.mounted, func(m vmstructs.Mounted) bool { return m.IsPinned() }) {
			j.Virtual.Parallelism = maybe.If(parallelism(h.JVMArgs()))
		}
	}
	j.GC.Name = h.Collector()
	heap := h.Heap()
	j.GC.Heap, j.GC.Old, j.GC.Collections = Pool(heap.Heap), Pool(heap.Old), heap.Collections
	v.readCode(&j.Code)
	v.readCompilers(&part)
	j.Errors = Errors{h.OutOfMemory(), h.Overflows()}
	j.References = References{h.Finalizers(), h.Pending(MaxPending)}
	j.Threads.Live = h.ThreadCount()
	if c, ok := h.Counters(); ok {
		takeCounters(j, c)
	}
	return part
}

// readWork reads what threads have allocated, and how often the collector has run.
func (v *Vitals) readWork(part *javaPart) {
	threads, err := v.health.Threads()
	part.threads, part.ok = threads, err == nil
	part.allocated = v.health.Allocated(threads)
	part.names = v.nameThreads(threads, time.Now())
	part.jvm.GC.Collections = v.health.Heap().Collections
}

// parallelism returns the number of carriers in the JVM's arguments. The last argument counts.
func parallelism(args []string) (n int, ok bool) {
	for _, arg := range args {
		if text, is := strings.CutPrefix(arg, "-Djdk.virtualThreadScheduler.parallelism="); is {
			k, err := strconv.Atoi(text)
			n, ok = k, err == nil && k > 0 && k <= maxParallelism
		}
	}
	return n, ok
}

// maxParallelism is the limit of a ForkJoinPool (ForkJoinPool.MAX_CAP).
const maxParallelism = 0x7fff

var safepointStates = map[vmstructs.SafepointState]SafepointState{vmstructs.NotSynchronized: NoSafepoint,
	vmstructs.Synchronizing: BeginsSafepoint, vmstructs.Synchronized: InSafepoint}

// settled decides whether all threads have stopped, or some have not yet.
func settled(threads []vmstructs.Thread) vmstructs.SafepointState {
	if len(holdOuts(threads)) > 0 {
		return vmstructs.Synchronizing
	}
	return vmstructs.Synchronized
}

// holdOuts returns the threads that still run, by their numbers in the JVM's namespace. mergeThreads turns these into
// tids.
func holdOuts(threads []vmstructs.Thread) (list []int) {
	for _, t := range threads {
		if t.State.Moves() && t.NSTID != 0 {
			list = append(list, t.NSTID)
		}
	}
	return list
}

func (v *Vitals) readCode(code *Code) {
	used, committed, limit := maybe.Known(uint64(0)), maybe.Known(uint64(0)), maybe.Known(uint64(0))
	for _, part := range v.health.Code() {
		code.Heaps = append(code.Heaps, CodeHeap{Name: part.Name, Pool: Pool(part.Amount), Refused: part.Refused})
		used, committed, limit = add(used, part.Used), add(committed, part.Committed), add(limit, part.Max)
	}
	if len(code.Heaps) > 0 {
		code.Total = Pool{used, committed, limit}
	}
	code.Compiling, code.GaveUp = v.health.Compiling(), v.health.GaveUp()
}

// readCompilers reads the compilers' present tasks and their queues.
func (v *Vitals) readCompilers(part *javaPart) {
	code := &part.jvm.Code
	code.Queues = maybe.If(v.health.CompileQueues(v.s.Now().Ticks))
	for i, t := range part.threads {
		if method, ok := v.health.CompiledBy(t); ok {
			code.Current = append(code.Current, Current{part.names[i], method})
		}
	}
}

// add returns the sum. It is known if both values are.
func add(a, b maybe.Value[uint64]) maybe.Value[uint64] {
	x, ok := a.Get()
	y, ok2 := b.Get()
	return maybe.If(x+y, ok && ok2)
}

// counterValues reads counters of the JVM that cannot be negative.
type counterValues struct {
	vmstructs.Counters
	tick float64 // length in seconds
}

func (c *counterValues) count(name string) maybe.Value[uint64] {
	n, ok := c.Long(name)
	return maybe.If(uint64(max(n, 0)), ok && n >= 0)
}

// ticks reads a time that the JVM counts in ticks (PerfData::U_Ticks, os::elapsed_frequency).
func (c *counterValues) ticks(name string) maybe.Value[time.Duration] {
	n, ok := c.count(name).Get()
	d := float64(n) * c.tick
	return maybe.If(time.Duration(d*1e9), ok && c.tick > 0 && d < math.MaxInt64/2e9)
}

func (c *counterValues) text(name string) maybe.Value[string] { return maybe.If(c.Text(name)) }

func takeCounters(j *JVM, counters vmstructs.Counters) {
	c := &counterValues{Counters: counters}
	if hz, ok := c.Long("sun.os.hrt.frequency"); ok && hz > 0 {
		c.tick = 1 / float64(hz)
	}
	j.Metaspace = Pool{c.count("sun.gc.metaspace.used"), c.count("sun.gc.metaspace.capacity"), metaspaceMax(j)}
	j.Safepoints.Count = c.count("sun.rt.safepoints")
	j.Safepoints.SyncTime = c.ticks("sun.rt.safepointSyncTime")
	j.Safepoints.Time = c.ticks("sun.rt.safepointTime")
	j.Classes = Classes{add(c.count("java.cls.loadedClasses"), c.count("java.cls.sharedLoadedClasses")),
		add(c.count("java.cls.unloadedClasses"), c.count("java.cls.sharedUnloadedClasses"))}
	j.Threads.Started = c.count("java.threads.started")
	if n := c.count("java.threads.live"); n.IsKnown() {
		j.Threads.Live = n
	}
	j.GC.Cause, j.GC.LastCause = c.text("sun.gc.cause"), c.text("sun.gc.lastCause")
	takeCollectors(&j.GC, c)
	j.GC.OldAfter, j.GC.HeapAfter = c.OldAfter(j.GC.Name), c.HeapAfter(j.GC.Name)
	began, ok := c.Long("sun.rt.createVmBeginTime")
	j.Began = maybe.If(time.UnixMilli(began), ok && began > 0)
	j.Compiled = Compiled{Methods: c.count("sun.ci.standardCompiles"), OnStack: c.count("sun.ci.osrCompiles"),
		MethodBytes: c.count("sun.ci.standardBytes"), OSRBytes: c.count("sun.ci.osrBytes"),
		Bailouts: c.count("sun.ci.totalBailouts"), Invalidated: c.count("sun.ci.totalInvalidates"),
		Size: c.count("sun.ci.nmethodSize"), CodeSize: c.count("sun.ci.nmethodCodeSize"),
		Time: c.ticks("java.ci.totalTime"), Threads: c.count("sun.ci.threads")}
}

// metaspaceMax returns the limit that was set. Without one, MaxMetaspaceSize is the whole address space.
func metaspaceMax(j *JVM) maybe.Value[uint64] {
	n, ok := parseUint(j.Flags["MaxMetaspaceSize"])
	return maybe.If(n, ok && n < 1<<46)
}

// maxCollectors is a limit: JVMs have at most three.
const maxCollectors = 8

func takeCollectors(gc *GC, c *counterValues) {
	var names [maxCollectors]string
	for i := range names {
		names[i], _ = c.Text(collectorCounter(i, "name"))
	}
	kinds := vmstructs.KindsOfCollectors(names[:])
	for i, name := range names {
		count, ok2 := c.count(collectorCounter(i, "invocations")).Get()
		spent, ok3 := c.ticks(collectorCounter(i, "time")).Get()
		if name == "" || !ok2 || !ok3 {
			continue
		}
		one := Collector{Number: i, Name: name, Kind: kinds[i], Count: count, Time: spent,
			Begun: c.ticks(collectorCounter(i, "lastEntryTime")), Ended: c.ticks(collectorCounter(i, "lastExitTime"))}
		begun, ok := one.Begun.Get()
		ended, ok2 := one.Ended.Get()
		one.UnderWay = ok && ok2 && count > 0 && begun > ended
		gc.Collectors = append(gc.Collectors, one)
	}
}

func collectorCounter(i int, what string) string {
	return "sun.gc.collector." + string(rune('0'+i)) + "." + what
}
