package vitals

import (
	"time"

	"goprof/process/maybe"
)

// Rates is what happened between two readings. A rate is not known where one of the two counts is not, or where a count
// went down.
type Rates struct {
	Over time.Duration

	// CPU is how many CPUs the process used. CollectorCPU, CompilerCPU and VMCPU are the parts of the JVM's threads of
	// these roles: of those that were there at both readings. Serial collects in the VM thread: there Collectors tell.
	CPU, CollectorCPU, CompilerCPU, VMCPU maybe.Value[float64]
	// WaitedCPU is how many threads, on average, were ready to run and had no CPU.
	WaitedCPU maybe.Value[float64]

	Collections maybe.Value[uint64] // of any kind, by the heap's own count
	Collectors  []CollectorRate
	// Allocated is bytes a second, of threads that were there at both readings.
	Allocated maybe.Value[float64]

	Safepoints         maybe.Value[float64] // a second
	SafepointShare     maybe.Value[float64] // part of the time in which all threads stood, 0 to 1
	SafepointSyncShare maybe.Value[float64] // part of the time in which some did not come to rest

	ClassesLoaded, ClassesUnloaded maybe.Value[float64] // a second
	ThreadsStarted                 maybe.Value[float64] // a second, Java threads
	Compiled, Invalidated          maybe.Value[float64] // a second
	Contended                      maybe.Value[float64] // monitors that a thread had to wait for, a second

	MajorFaults    maybe.Value[float64] // of the process, a second
	Periods        maybe.Value[uint64]  // of its control group
	Throttled      maybe.Value[uint64]
	ThrottledShare maybe.Value[float64] // part of Periods, 0 to 1

	// Of the machine: parts of the time of all its CPUs, 0 to 1.
	Busy, Steal, Idle, IOWait   maybe.Value[float64]
	SwapIn, SwapOut             maybe.Value[float64] // pages a second
	CPUStall, MemStall, IOStall maybe.Value[float64] // part of the time in which some thread of the machine waited, 0 to 1

	Threads []ThreadRate
}

// CollectorRate is what one of the JVM's collectors did.
type CollectorRate struct {
	Name  string
	Kind  CollectorKind
	Count uint64
	Time  time.Duration
	// Share is Time's part of the time between the readings, 0 to 1.
	Share float64
}

// ThreadRate is what a thread did that was there at both readings.
type ThreadRate struct {
	TID       int
	Name      string
	Role      Role
	CPU       maybe.Value[float64] // part of one CPU, 0 to 1
	Waited    maybe.Value[float64] // part of the time in which it was ready and had no CPU
	Allocated maybe.Value[float64] // bytes a second
}
