package vitals

import (
	"time"

	"goprof/process/maybe"
)

// Role is the purpose of a thread. It is empty if the JVM's memory could not be read.
type Role string

const (
	Application Role = "application" // it may run Java code: the program's threads, and those of the class library
	Collection  Role = "collector"   // of the garbage collector
	Compilation Role = "compiler"    // C1, C2, Graal
	VMInternal  Role = "vm"          // other threads of the JVM: VM Thread, VM Periodic Task Thread, signal handlers
	Foreign     Role = "native"      // unknown to the JVM: started by native code
)

// Thread is one thread of the process.
type Thread struct {
	TID  int
	Name string // Java's name, or else the kernel's. It is read again every few seconds
	Role Role

	State byte // the kernel's, R S D T t Z
	// CPU is its CPU time so far. Waited is the time in which it was ready to run and had no CPU. Turns counts how
	// often it got a CPU.
	CPU, Waited maybe.Value[time.Duration]
	Turns       maybe.Value[uint64]
	// Allocated is the number of bytes that it has allocated in the heap, as ThreadMXBean.getThreadAllocatedBytes
	// reports. It is known of Java threads only. The bytes of virtual threads are counted for their carriers.
	Allocated maybe.Value[uint64]

	began uint64 // ticks since the machine began; distinguishes it from a later thread with the same number
}

// MaxThreads limits the threads of a Reading.
const MaxThreads = 1 << 15
