package vitals

import (
	"time"

	"goprof/process/maybe"
	"goprof/vmstructs"
)

// JVM holds the facts from the JVM's own structures.
type JVM struct {
	Uptime maybe.Value[time.Duration]
	// Began is when the JVM was made, by the wall clock of that time (sun.rt.createVmBeginTime).
	Began maybe.Value[time.Time]
	// Flags are the flags that matter to a JVM's health, with values as -XX:+PrintFlagsFinal writes them.
	Flags map[string]string

	GC         GC
	Metaspace  Pool // metadata of classes; its Max is MaxMetaspaceSize, if set
	Safepoints Safepoints
	Code       Code
	Compiled   Compiled
	Classes    Classes
	Threads    ThreadCounts
	References References
	Virtual    Virtual
	Errors     Errors
}

// GC describes the heap and its collector.
type GC struct {
	Name string // G1, Parallel, Serial, ZGC, Shenandoah, CMS, Epsilon; empty if not known

	// Heap and Old are read now, from the heap's own structures. Collectors without generations have no Old. G1's
	// generations are counted in whole regions. Humongous objects are Old.
	Heap, Old Pool
	// OldAfter is the use of Old after the last collection of any kind. A collection of the young generation leaves
	// garbage in Old. So OldAfter is live data only if the last collection was a full one.
	OldAfter maybe.Value[uint64]
	// HeapAfter is the use of Heap at that time. Only G1 reports it.
	HeapAfter maybe.Value[uint64]

	// Collectors are the JVM's counters of collections, by kind (sun.gc.collector.N).
	Collectors []Collector
	// Collections counts all collections, as the heap itself does (CollectedHeap::_total_collections). It is known
	// without counters, too.
	Collections maybe.Value[uint64]
	// Cause is the reason for the collection under way, or "No GC" between collections. LastCause is the reason for the
	// last one, or "No GC" during a collection (CollectedHeap::set_gc_cause).
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
	Count  uint64        // collections that have begun so far
	Time   time.Duration // of the collections that have ended
	// Begun and Ended are the times of the last beginning and the last end, since the JVM began.
	Begun, Ended maybe.Value[time.Duration]
	// UnderWay reports whether the last collection has not ended.
	UnderWay bool
}

// SafepointState is the value of SafepointSynchronize::_state.
type SafepointState string

const (
	NoSafepoint     SafepointState = "none"
	BeginsSafepoint SafepointState = "begins"    // the VM thread waits until all threads have stopped
	InSafepoint     SafepointState = "under way" // all threads have stopped, and the operation runs
)

// Safepoints describes the stops of all threads.
type Safepoints struct {
	Count    maybe.Value[uint64]        // since the JVM began
	SyncTime maybe.Value[time.Duration] // the sum of the times until all threads had stopped
	Time     maybe.Value[time.Duration] // the sum over ended safepoints, SyncTime included
	// State is known if libjvm.so has symbols, and on JDK 8.
	State maybe.Value[SafepointState]
	// Operation is what the VM thread executes now, "G1CollectForAllocation". It is empty if it executes none, and
	// known only if libjvm.so has symbols.
	Operation maybe.Value[string]
	// HoldOuts are the threads that have not stopped yet while State is BeginsSafepoint. They run Java code, the JVM's
	// own code, or change between the two. One reading proves little. A thread in several readings holds the safepoint
	// up.
	HoldOuts []int
}

// Code describes the code cache and the compilers.
type Code struct {
	Heaps []CodeHeap
	// Total is the sum of Heaps.
	Total Pool
	// Compiling is false if the JVM has stopped its compilers, because of a full code cache or a flag.
	Compiling maybe.Value[bool]
	// GaveUp reports whether the JVM itself has turned its compilers off for lack of room. The JVM records that only if
	// code cache flushing is off, or if a compiler could not begin.
	GaveUp maybe.Value[bool]
	// Queues are the methods that wait for a compiler, C1's first. They are known if libjvm.so has symbols, since JDK
	// 9.
	Queues maybe.Value[[]CompileQueue]
	// Current are the methods that are being compiled.
	Current []Current
}

// CompileQueue is what waits for one compiler.
type CompileQueue = vmstructs.CompileQueue

// Current is a method that is being compiled.
type Current struct {
	Thread string // the compiling thread: "C2 CompilerThread0"
	Method string // the compiler and the method: "C2 com.shop.Cart.total"
}

// Compiled counts the compilers' work since the JVM began (sun.ci and java.ci).
type Compiled struct {
	Methods, OnStack      maybe.Value[uint64] // compilations of whole methods, and of loops that ran (OSR)
	MethodBytes, OSRBytes maybe.Value[uint64] // bytes of bytecode in these
	Bailouts, Invalidated maybe.Value[uint64]
	Size, CodeSize        maybe.Value[uint64] // bytes of the result, and of the instructions in it
	Time                  maybe.Value[time.Duration]
	Threads               maybe.Value[uint64]
}

// CodeHeap is one part of the code cache.
type CodeHeap struct {
	Name string // "CodeHeap 'profiled nmethods'", "CodeCache"; empty if not known
	Pool        // Max is the reserved size
	// Refused counts requests for which there was no room.
	Refused maybe.Value[uint64]
}

// Classes counts classes since the JVM began.
type Classes struct{ Loaded, Unloaded maybe.Value[uint64] }

// ThreadCounts are the JVM's own numbers of Java threads: now, and since it began. Virtual threads and the JVM's
// internal threads are not counted.
type ThreadCounts struct{ Live, Started maybe.Value[uint64] }

// References counts the work that waits for the threads "Reference Handler" and "Finalizer".
type References struct {
	// Finalizers is the number of objects that wait for their finalizer (ReferenceQueue.queueLength).
	Finalizers maybe.Value[uint64]
	// Pending is the number of references that the collector has found and the Reference Handler has not taken yet, up
	// to MaxPending. It is known if libjvm.so has symbols, and on JDK 8.
	Pending maybe.Value[uint64]
}

// MaxPending limits the count of pending references.
const MaxPending = 1 << 14

// Virtual describes the virtual threads that carriers run now. It is not known on JVMs without virtual threads.
type Virtual struct {
	Mounted maybe.Value[int]
	// Parallelism is the largest number of carriers, if the JVM's command line sets it
	// (-Djdk.virtualThreadScheduler.parallelism). It is read only if a thread is pinned.
	Parallelism maybe.Value[int]
	// Pinned are the virtual threads that have parked without giving up their carrier.
	Pinned []PinnedThread
}

// PinnedThread is a virtual thread that holds its carrier while it waits.
type PinnedThread struct {
	Carrier int    // the carrier's tid
	ID      uint64 // Thread.threadId()
	Name    string
}

// Errors counts the errors that the JVM itself has thrown since it began. They are known if libjvm.so has symbols. The
// JVM counts no other exceptions. Stacks show whether a program throws all the time (Throwable.fillInStackTrace).
type Errors struct{ OutOfMemory, StackOverflow maybe.Value[uint64] }
