package vmstructs

import (
	"regexp"
	"slices"
	"strings"
)

// Names that HotSpot, its launcher and its class library use, where only the name identifies a thing.

// anyOf reports whether is (strings.HasPrefix, strings.Contains) returns true for a name and one of the parts.
func anyOf(is func(name, part string) bool, name string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return is(name, part) })
}

// threadEntries are the functions in which threads begin: HotSpot's (os/linux/os_linux.cpp; java_start up to 8), and
// the launcher's (libjli/java_md.c; JavaMain up to 13).
var threadEntries = []string{"thread_native_entry", "java_start", "ThreadJavaMain", "JavaMain"}

// BeginsThread reports whether a function with that name is the first of a thread that the JVM or its launcher has
// made.
func BeginsThread(function string) bool { return slices.Contains(threadEntries, function) }

// threadLoops are the methods in which the VM's own threads do their work. The methods of the classes threadBases only
// call them.
var (
	threadLoops = []string{"run", "run_service", "loop"}
	threadBases = []string{"Thread", "NonJavaThread", "ConcurrentGCThread", "NamedThread"}
)

// ClassOfThread returns the class of the VM's own thread that works in a C++ function with that name. ok is false if
// there is no such class.
func ClassOfThread(function string) (class string, ok bool) {
	name, _, _ := strings.Cut(function, "(")
	class, method, ok := strings.Cut(name, "::")
	return class, ok && slices.Contains(threadLoops, method) && !slices.Contains(threadBases, class)
}

// MayCarry reports whether a Java thread with that name may run virtual threads (java.lang.VirtualThread,
// createDefaultScheduler).
func MayCarry(thread string) bool { return strings.HasPrefix(thread, "ForkJoinPool-") }

// Wait is the way in which a Java thread waits.
type Wait uint8

const (
	NoWait         Wait = iota
	WaitsToEnter        // for a monitor that another thread holds
	WaitsForNotify      // in Object.wait
	WaitsForUnpark      // in LockSupport.park
	WaitsForTime        // in Thread.sleep
)

// waitMethods are the methods in which Java threads wait: java.lang.Object, java.lang.Thread and Unsafe.
var waitMethods = map[string]Wait{
	"java.lang.Object.wait": WaitsForNotify, "java.lang.Object.wait0": WaitsForNotify,
	"java.lang.Thread.sleep": WaitsForTime, "java.lang.Thread.sleep0": WaitsForTime,
	"java.lang.Thread.sleepNanos0": WaitsForTime,
	"sun.misc.Unsafe.park":         WaitsForUnpark, "jdk.internal.misc.Unsafe.park": WaitsForUnpark,
}

// WaitOfMethod returns how a thread waits if its topmost Java frame is a method with that name.
func WaitOfMethod(name string) Wait { return waitMethods[name] }

// WaitsForSocket reports whether a virtual thread that is parked in a method with that name waits for a socket.
func WaitsForSocket(name string) bool { return strings.HasPrefix(name, "sun.nio.ch.Poller.") }

// WaitOfStatus returns how a thread with that ThreadStatus waits.
func WaitOfStatus(status string) Wait {
	switch status {
	case "BLOCKED":
		return WaitsToEnter
	case "PARKED", "TIMED_PARKED":
		return WaitsForUnpark
	case "SLEEPING":
		return WaitsForTime
	case "WAITING", "TIMED_WAITING":
		return WaitsForNotify
	}
	return NoWait
}

// NativeRole is the work of a thread of the JVM that runs no Java code.
type NativeRole uint8

const (
	NotOfVM NativeRole = iota // the thread's name is none of the JVM's
	OfGC                      // of the garbage collector
	OfVM                      // the VM thread and others
)

// gcThreads are the beginnings of the names of collectors' threads. The kernel has only 15 bytes of a name. Since about
// 26, longer names have ".." in the middle. See gc/*, ConcurrentGCThread and WorkerThreads; gang workers up to 10.
var gcThreads = []string{"GC Thread#", "GC task thread", "Gang worker#", "ParGC Thread#", "G1 ", "CMS ",
	"Concurrent Mark",
	"ZWorker", "ZDirector", "ZDriver", "ZStat", "ZUncommitter", "ZUnmapper", "XWorker", "XDirector", "XDriver", "XStat",
	"XUncommitter", "XUnmapper", "RuntimeWorker#", "Shenandoah", "ShenWorker", "ShenControl", "ShenUncommit", "ShenCtl",
	"StrDedup", "StringDedup", "Epsilon"}

var vmThreads = []string{"VM Thread", "VM Peri", "Sweeper thread", "AsyncLog", "Logger", "JFR "}

// NativeRoleOf returns the role of a thread that is not a Java thread, by its name in the kernel.
func NativeRoleOf(comm string) NativeRole {
	switch {
	case anyOf(strings.HasPrefix, comm, gcThreads...):
		return OfGC
	case anyOf(strings.HasPrefix, comm, vmThreads...):
		return OfVM
	}
	return NotOfVM
}

// vmJavaThreads are Java threads that run the VM's own code. Their stacks have few or no Java frames.
var vmJavaThreads = []string{"Signal Dispatcher", "Service Thread", "Monitor Deflation Thread", "Notification Thread",
	"Sweeper thread", "Attach Listener", "Surrogate Locker Thread (Concurrent GC)"}

// IsVMJavaThread reports whether that is the name of one of the VM's own Java threads.
func IsVMJavaThread(name string) bool { return slices.Contains(vmJavaThreads, name) }

// AllocTracer names the two functions that HotSpot calls if an object does not go into the thread's present buffer
// (TLAB). Either the thread gets a new buffer, or the object is allocated outside of all buffers
// (gc/shared/allocTracer.hpp). The first argument is the class's Klass.
type AllocTracer struct {
	InNewTLAB, OutsideTLAB string
	Bytes                  int // the number, counted from 1, of the argument with the size of the buffer or of the object
	// At is the number of the argument with the object's address. If At is 0, this argument is missing, and so is the last
	// one, with the thread.
	At     int
	Unseen string // allocations that call neither function
}

// refillsUnseen is for JDK 8. If eden is one range, the interpreter and C1's code take a new buffer, or allocate an
// object outside, without a call (c1_Runtime1_x86.cpp, FastTLABRefill; CollectedHeap::supports_inline_contig_alloc).
const refillsUnseen = "with Serial, Parallel and CMS, stacks of allocations by the interpreter and by C1's code are " +
	"mostly not seen"

// AllocTracers lists these two functions for all releases. goprof uses the first entry that a JVM has. The arguments in
// JDK 10 and later, and in 8u262 and later with JFR (8u: gc_interface/allocTracer.hpp), are:
//
//	InNewTLAB:   Klass*, HeapWord*, size_t tlab_size, size_t alloc_size, Thread*
//	OutsideTLAB: Klass*, HeapWord*, size_t alloc_size, Thread*
//
// In earlier releases the HeapWord* and the Thread* are missing. In JDK 8 both forms exist with the same names, and
// only the parameters in the mangled names differ.
var AllocTracers = [...]AllocTracer{
	{"AllocTracer::send_allocation_in_new_tlab", "AllocTracer::send_allocation_outside_tlab", 3, 2, ""},
	{"_ZN11AllocTracer33send_allocation_in_new_tlab_eventE11KlassHandleP8HeapWordmmP6Thread",
		"_ZN11AllocTracer34send_allocation_outside_tlab_eventE11KlassHandleP8HeapWordmP6Thread", 3, 2, refillsUnseen},
	{"_ZN11AllocTracer33send_allocation_in_new_tlab_eventE11KlassHandlemm",
		"_ZN11AllocTracer34send_allocation_outside_tlab_eventE11KlassHandlem", 2, 0, refillsUnseen},
}

// HiddenSymbol is VMThread::run (runtime/vmThread.cpp), a function of every libjvm.so that is never exported. If it is
// found, the library's own symbols are available.
const HiddenSymbol = "_ZN8VMThread3runEv"

// handlerSeekers are functions of HotSpot that search for the handler of an exception (opto/runtime.cpp,
// c1/c1_Runtime1.cpp, interpreter/interpreterRuntime.cpp, runtime/sharedRuntime.cpp), and parts of the names of stubs
// that call them.
var handlerSeekers = []string{"OptoRuntime::handle_exception_C", "OptoRuntime::rethrow_C", "exception_handler_for_pc",
	"SharedRuntime::compute_compiled_exc_handler", "InterpreterRuntime::exception_handler_for_exception",
	"SharedRuntime::raw_exception_handler_for_return_address"}

// SeeksHandler reports whether a native function or stub with that name searches for the handler of an exception.
func SeeksHandler(function string) bool { return anyOf(strings.Contains, function, handlerSeekers...) }

// vmThreadHomes are methods that only the JVM's own Java threads run: for references, and since 21 for virtual threads.
var vmThreadHomes = regexp.MustCompile(`^(?:java\.lang\.ref\.(?:Reference|Finalizer)\$|java\.lang\.ref\.ReferenceQueue\.|jdk\.internal\.ref\.CleanerImpl\.|` +
	`sun\.nio\.ch\.Poller|java\.lang\.VirtualThread\.(?:unblockVirtualThreads|takeVirtualThreadListToUnblock)$)`)

// IsHomeOfVMThread reports whether only the JVM's own Java threads run a method with that name.
func IsHomeOfVMThread(method string) bool { return vmThreadHomes.MatchString(method) }

// vmThreadWaits are the other methods on the stacks of these threads while they wait.
var vmThreadWaits = regexp.MustCompile(`^(?:java\.lang\.ref\.|java\.lang\.Object\.wait|java\.lang\.Thread\.run|` +
	`jdk\.internal\.misc\.InnocuousThread\.run$|sun\.misc\.InnocuousThread\.run$|(?:jdk\.internal|sun)\.misc\.Unsafe\.park$|` +
	`java\.util\.concurrent\.locks\.|java\.util\.concurrent\.ForkJoinPool\.(?:managedBlock|unmanagedBlock|compensatedBlock)$|` +
	`sun\.nio\.ch\.(?:EPoll|EPollPoller)\b)`)

// IsWaitOfVMThread reports whether the JVM's own Java threads may run a method with that name while they wait for work.
func IsWaitOfVMThread(method string) bool { return vmThreadWaits.MatchString(method) }

// vmOperations are the beginnings of the names of functions in which the VM thread works while the program is stopped.
var vmOperations = []string{"VM_", "SafepointSynchronize::", "VMThread::evaluate_operation"}

// IsOperation reports whether the VM thread executes an operation in a function with that name. A thread that waits
// there is not idle.
func IsOperation(function string) bool { return anyOf(strings.HasPrefix, function, vmOperations...) }

// monitorEntries are HotSpot's functions in which a thread waits to enter a monitor (runtime/objectMonitor.cpp,
// synchronizer.cpp, lightweightSynchronizer.cpp).
var monitorEntries = regexp.MustCompile(`^(?:ObjectMonitor::(?:enter|reenter|EnterI|enter_internal|ReenterI)|` +
	`(?:Object|Lightweight)Synchronizer::(?:enter|inflate_and_enter|fast_enter|slow_enter))`)

// EntersMonitor reports whether a thread in a native function with that name waits to enter a monitor.
func EntersMonitor(function string) bool { return monitorEntries.MatchString(function) }

// IsCollection reports whether a function with that name belongs to an operation of the VM thread that is a collection
// (gc/shared/gcVMOperations.hpp and those of each collector): VM_GenCollectForAllocation,
// VM_ParallelGCFailedAllocation, VM_G1CollectFull ...
func IsCollection(function string) bool {
	return strings.HasPrefix(function, "VM_") && anyOf(strings.Contains, function, "Collect", "GC", "G1")
}
