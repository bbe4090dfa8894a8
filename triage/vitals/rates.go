package vitals

import (
	"time"

	"goprof/process/maybe"
)

// Rates are the changes between two readings. A rate is not known if one of its two counts is not known, or if the
// count went down.
type Rates struct {
	Over time.Duration

	// CPU is the number of CPUs that the process used. CollectorCPU counts only the collector's threads that are in
	// both readings. Serial collects in the VM thread, so use Collectors there.
	CPU, CollectorCPU maybe.Value[float64]
	// WaitedCPU is the average number of threads that were ready to run and had no CPU.
	WaitedCPU maybe.Value[float64]

	Collections maybe.Value[uint64] // of any kind, as the heap counts them
	Collectors  []CollectorRate
	// Allocated is bytes per second, by threads that are in both readings.
	Allocated maybe.Value[float64]

	SafepointSyncShare maybe.Value[float64] // part of the time in which the JVM waited for threads to stop, 0 to 1

	MajorFaults maybe.Value[float64] // of the process, per second
	Periods     maybe.Value[uint64]  // of the control group
	Throttled   maybe.Value[uint64]

	// The machine: parts of the time of all its CPUs, 0 to 1.
	Busy, Steal        maybe.Value[float64]
	SwapIn, SwapOut    maybe.Value[float64] // pages per second
	CPUStall, MemStall maybe.Value[float64] // part of the time in which at least one thread of the machine waited, 0 to 1

	Threads []ThreadRate
}

// CollectorRate is the work of one of the JVM's collectors.
type CollectorRate struct {
	Name  string
	Kind  CollectorKind
	Count uint64
	Time  time.Duration
	// Share is Time as a part of the time between the readings, 0 to 1.
	Share float64
}

// ThreadRate is the work of a thread that is in both readings.
type ThreadRate struct {
	TID       int
	Name      string
	Role      Role
	CPU       maybe.Value[float64] // in CPUs, 0 to 1
	Waited    maybe.Value[float64] // part of the time in which the thread was ready and had no CPU
	Allocated maybe.Value[float64] // bytes per second
}
