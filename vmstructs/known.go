package vmstructs

import (
	"slices"
	"strings"
)

// Names that HotSpot, its launcher and its class library give to things, where a name is all that identifies a thing.

// threadEntries are the functions that a C library calls as the first of a thread: HotSpot's
// (os/linux/os_linux.cpp; java_start up to 8), and the launcher's (libjli/java_md.c; JavaMain up to 13).
var threadEntries = []string{"thread_native_entry", "java_start", "ThreadJavaMain", "JavaMain"}

// BeginsThread reports whether a function of that name is the first of a thread that the JVM or its launcher has made.
func BeginsThread(function string) bool { return slices.Contains(threadEntries, function) }

// threadLoops are the methods in which a thread of the VM's own does its work. The methods of threadBases are called on
// the way there.
var (
	threadLoops = []string{"run", "run_service", "loop"}
	threadBases = []string{"Thread", "NonJavaThread", "ConcurrentGCThread", "NamedThread"}
)

// ClassOfThread is the class of the VM's own thread to which a C++ function of that name belongs, if the name tells the
// class.
func ClassOfThread(function string) (class string, ok bool) {
	name, _, _ := strings.Cut(function, "(")
	class, method, ok := strings.Cut(name, "::")
	return class, ok && slices.Contains(threadLoops, method) && !slices.Contains(threadBases, class)
}

// MayCarry reports whether a Java thread of that name may run virtual ones
// (java.lang.VirtualThread, createDefaultScheduler).
func MayCarry(thread string) bool { return strings.HasPrefix(thread, "ForkJoinPool-") }

// Wait is how a Java thread waits.
type Wait uint8

const (
	NoWait         Wait = iota
	WaitsToEnter        // a monitor that another thread holds
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

// WaitOfMethod tells how a thread waits, if its topmost Java frame is a method of that name.
func WaitOfMethod(name string) Wait { return waitMethods[name] }

// WaitOfStatus tells how a thread waits, if its ThreadStatus is status.
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

// NativeRole is what a thread of the JVM that runs no Java code is for.
type NativeRole uint8

const (
	NotOfVM NativeRole = iota // the thread has no name that a JVM gives
	OfGC                      // of the garbage collector
	OfVM                      // the VM thread and others
)

// gcThreads begin the names of the collectors' threads, as far as the kernel has them (15 bytes; since 26 or so names
// that are longer have ".." in their middle). gc/*, ConcurrentGCThread and WorkerThreads; gang workers up to 10.
var gcThreads = []string{"GC Thread#", "GC task thread", "Gang worker#", "ParGC Thread#", "G1 ", "CMS ",
	"Concurrent Mark",
	"ZWorker", "ZDirector", "ZDriver", "ZStat", "ZUncommitter", "ZUnmapper", "XWorker", "XDirector", "XDriver", "XStat",
	"XUncommitter", "XUnmapper", "RuntimeWorker#", "Shenandoah", "ShenWorker", "ShenControl", "ShenUncommit", "ShenCtl",
	"StrDedup", "StringDedup", "Epsilon"}

var vmThreads = []string{"VM Thread", "VM Peri", "Sweeper thread", "AsyncLog", "Logger", "JFR "}

// NativeRoleOf tells what a thread that is no Java thread is for, by the name that the kernel has.
func NativeRoleOf(comm string) NativeRole {
	for _, p := range gcThreads {
		if strings.HasPrefix(comm, p) {
			return OfGC
		}
	}
	for _, p := range vmThreads {
		if strings.HasPrefix(comm, p) {
			return OfVM
		}
	}
	return NotOfVM
}

// vmJavaThreads are Java threads that run the VM's own code: their stacks have no Java frames, or few.
var vmJavaThreads = []string{"Signal Dispatcher", "Service Thread", "Monitor Deflation Thread", "Notification Thread",
	"Sweeper thread", "Attach Listener", "Surrogate Locker Thread (Concurrent GC)"}

// IsVMJavaThread reports whether the VM gives that name to a Java thread of its own.
func IsVMJavaThread(name string) bool { return slices.Contains(vmJavaThreads, name) }
