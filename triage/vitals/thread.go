package vitals

import (
	"time"

	"goprof/process/maybe"
)

// Role says what a thread is for. It is empty if the JVM's memory could not be read.
type Role string

const (
	Application Role = "application" // it may run Java code: the program's threads, and those of the class library
	Collection  Role = "collector"   // of the garbage collector
	Compilation Role = "compiler"    // C1, C2, Graal
	VMInternal  Role = "vm"          // others of the JVM: VM Thread, VM Periodic Task Thread, signal handlers
	Foreign     Role = "native"      // unknown to the JVM: made by native code
)

// Thread is one thread of the process.
type Thread struct {
	TID  int
	Name string // as Java knows it, otherwise the kernel's. It is read again every few seconds
	Role Role

	State byte // the kernel's, R S D T t Z
	// CPU is its CPU time so far, Waited how long it was ready to run and had no CPU, Turns how often it got one.
	CPU, Waited maybe.Value[time.Duration]
	Turns       maybe.Value[uint64]
	// Allocated is how many bytes it has allocated in the heap so far, as ThreadMXBean.getThreadAllocatedBytes says. Java
	// threads only. The bytes of virtual threads are counted for their carriers.
	Allocated maybe.Value[uint64]

	began uint64 // ticks since the machine did; distinguishes it from another that gets its number later
}

// MaxThreads bounds how many threads a Reading holds.
const MaxThreads = 1 << 15
