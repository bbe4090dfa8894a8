package vitals

import (
	"time"

	"goprof/process/maybe"
	"goprof/vmstructs"
)

// JVM is what the JVM's own structures say.
type JVM struct {
	Uptime maybe.Value[time.Duration]
	// Began is when the JVM was made, by the wall clock of that time (sun.rt.createVmBeginTime).
	Began maybe.Value[time.Time]
	// Flags are those that matter to its health, by name, as -XX:+PrintFlagsFinal writes their values.
	Flags map[string]string

	GC         GC
	Metaspace  Pool // metadata of classes; its Max is MaxMetaspaceSize, where one is set
	Safepoints Safepoints
	Code       Code
	Compiled   Compiled
	Classes    Classes
	Threads    ThreadCounts
	References References
	Virtual    Virtual
	Errors     Errors
}

// GC is what is known of the heap and of its collector.
type GC struct {
	Name string // G1, Parallel, Serial, ZGC, Shenandoah, CMS, Epsilon; empty if that is not known

	// Heap and Old are read now, from the heap's own structures. Collectors without generations have no Old. G1's
	// generations are counted in whole regions. Humongous objects are Old.
	Heap, Old Pool
	// OldAfter is what Old used when the last collection (of any kind) had ended. A collection of the young generation
	// leaves garbage in Old: it is live data only where LastFull is the newest.
	OldAfter maybe.Value[uint64]
	// HeapAfter is what Heap used then. Only G1 says so.
	HeapAfter maybe.Value[uint64]

	// Collectors are the JVM's counters of collections, by kind (sun.gc.collector.N).
	Collectors []Collector
	// Collections counts all collections that the heap itself has counted (CollectedHeap::_total_collections). It is
	// known without counters, too.
	Collections maybe.Value[uint64]
	// Cause is why the collection that is under way was begun, "No GC" between collections. LastCause is why the last
	// one was, "No GC" while one is under way (CollectedHeap::set_gc_cause).
	Cause, LastCause maybe.Value[string]
}

// CollectorKind says what a collector of the JVM's counters collects.
type CollectorKind = vmstructs.CollectorKind

const (
	YoungCollections = vmstructs.YoungCollections
	FullCollections  = vmstructs.FullCollections
	ConcurrentPauses = vmstructs.ConcurrentPauses
)

// Collector is one of the JVM's counters of collections.
type Collector struct {
	Number int
	Name   string // "G1 young collection pauses"
	Kind   CollectorKind
	Count  uint64        // collections so far: begun, not all ended
	Time   time.Duration // that they have taken, those that have ended
	// Begun and Ended are when one has begun and ended last, since the JVM began.
	Begun, Ended maybe.Value[time.Duration]
	// UnderWay: one has begun and not ended.
	UnderWay bool
}

// SafepointState is what SafepointSynchronize::_state says.
type SafepointState string

const (
	NoSafepoint     SafepointState = "none"
	BeginsSafepoint SafepointState = "begins"    // the VM thread waits until all threads have come to rest
	InSafepoint     SafepointState = "under way" // all threads have, and the operation runs
)

// Safepoints is what is known of stops of all threads.
type Safepoints struct {
	Count    maybe.Value[uint64]        // so far
	SyncTime maybe.Value[time.Duration] // until all threads had stopped, so far
	Time     maybe.Value[time.Duration] // of those that have ended, SyncTime included
	// State is known where libjvm.so has symbols, and on JDK 8.
	State maybe.Value[SafepointState]
	// Operation is what the VM thread executes now, "G1CollectForAllocation". Known where libjvm.so has symbols; empty:
	// none.
	Operation maybe.Value[string]
	// HoldOuts are the threads that have not stopped yet, while State is BeginsSafepoint: they run Java code, the JVM's
	// own code, or change between the two. One reading proves little. A thread in several readings holds the safepoint
	// up.
	HoldOuts []int
}

// Code is what is known of compiled code.
type Code struct {
	Heaps []CodeHeap
	// Total is the sum of Heaps.
	Total Pool
	// Compiling is false if the JVM has stopped its compilers: because the code cache was full, or by a flag.
	Compiling maybe.Value[bool]
	// GaveUp: the JVM itself has turned its compilers off, because there was no room. It says so only if code cache
	// flushing is off, or if a compiler could not begin.
	GaveUp maybe.Value[bool]
	// Queues are the methods that wait for a compiler, C1's first. Known where libjvm.so has symbols, since 9.
	Queues maybe.Value[[]CompileQueue]
	// Current are the methods that compilers compile now.
	Current []Current
}

// CompileQueue is what waits for one compiler.
type CompileQueue = vmstructs.CompileQueue

// Current is a method that is compiled now.
type Current struct {
	Thread string // that compiles it: "C2 CompilerThread0"
	Method string // with the compiler: "C2 com.shop.Cart.total"
}

// Compiled is what the compilers have done since the JVM began (sun.ci and java.ci).
type Compiled struct {
	Methods, OnStack      maybe.Value[uint64] // compilations of whole methods, and of loops that ran (OSR)
	MethodBytes, OSRBytes maybe.Value[uint64] // of bytecode in these
	Bailouts, Invalidated maybe.Value[uint64]
	Size, CodeSize        maybe.Value[uint64] // of what they made, and of the instructions in that
	Time                  maybe.Value[time.Duration]
	Threads               maybe.Value[uint64]
}

// CodeHeap is one part of the code cache.
type CodeHeap struct {
	Name string // "CodeHeap 'profiled nmethods'", "CodeCache"; empty if it is not known
	Pool        // Max is what is reserved
	// Refused is how often there was no room.
	Refused maybe.Value[uint64]
}

// Classes counts classes since the JVM began.
type Classes struct{ Loaded, Unloaded maybe.Value[uint64] }

// ThreadCounts are the JVM's own numbers of Java threads, now and since it began, without virtual ones and without
// threads of its own.
type ThreadCounts struct{ Live, Started maybe.Value[uint64] }

// References is what waits for the threads "Reference Handler" and "Finalizer".
type References struct {
	// Finalizers is how many objects wait for their finalizer (ReferenceQueue.queueLength).
	Finalizers maybe.Value[uint64]
	// Pending is how many references the collector has found and the Reference Handler has not taken yet. No more than
	// MaxPending are counted. Known where libjvm.so has symbols, and on 8.
	Pending maybe.Value[uint64]
}

// MaxPending bounds how many pending references are counted.
const MaxPending = 1 << 14

// Virtual is what is known of the virtual threads that carriers run now. Not known on JVMs that have none.
type Virtual struct {
	Mounted maybe.Value[int]
	// Parallelism is how many carriers there may be, where the JVM's command line says so
	// (-Djdk.virtualThreadScheduler.parallelism). It is read only where a thread is pinned.
	Parallelism maybe.Value[int]
	// Pinned are the virtual threads that have parked and could not give up their carrier.
	Pinned []PinnedThread
}

// PinnedThread is a virtual thread that holds its carrier while it waits.
type PinnedThread struct {
	Carrier int    // its tid
	ID      uint64 // Thread.threadId()
	Name    string
}

// Errors counts the errors that the JVM itself has thrown since it began. They are known where libjvm.so has symbols.
// The JVM counts no other exceptions. Stacks show if a program throws all the time (Throwable.fillInStackTrace).
type Errors struct{ OutOfMemory, StackOverflow maybe.Value[uint64] }
