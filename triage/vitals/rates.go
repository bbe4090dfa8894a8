package vitals

import (
	"time"

	"goprof/process/maybe"
)

// Rates is what happened between two readings. A rate is not known where one of the two counts is not, or where a count
// went down.
type Rates struct {
	Over time.Duration

	// CPU is how many CPUs the process used. CollectorCPU is the part of the collector's threads that were there at both
	// readings. Serial collects in the VM thread: there Collectors tell.
	CPU, CollectorCPU maybe.Value[float64]
	// WaitedCPU is how many threads, on average, were ready to run and had no CPU.
	WaitedCPU maybe.Value[float64]

	Collections maybe.Value[uint64] // of any kind, by the heap's own count
	Collectors  []CollectorRate
	// Allocated is bytes a second, of threads that were there at both readings.
	Allocated maybe.Value[float64]

	SafepointSyncShare maybe.Value[float64] // part of the time in which some thread did not come to rest, 0 to 1

	MajorFaults maybe.Value[float64] // of the process, a second
	Periods     maybe.Value[uint64]  // of its control group
	Throttled   maybe.Value[uint64]

	// Of the machine: parts of the time of all its CPUs, 0 to 1.
	Busy, Steal        maybe.Value[float64]
	SwapIn, SwapOut    maybe.Value[float64] // pages a second
	CPUStall, MemStall maybe.Value[float64] // part of the time in which some thread of the machine waited, 0 to 1

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
