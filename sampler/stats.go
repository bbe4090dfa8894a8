//go:build linux

package sampler

import (
	"time"

	"goprof/sampler/ptrace"
)

// Stats is what happened. Attempted = Taken + the sum of Lost.
type Stats struct {
	Attempted int64
	Taken     int64
	Lost      [ptrace.NumOutcomes]int64 // by Outcome; [Taken] and [Pending] stay 0
	MadeUp    int64                     // of those taken: they count for lost ones of their threads
	Waiting   int64                     // looks at threads that waited for a CPU: no attempts, the thread has not paid
	Visits    bool                      // threads were met by visiting their CPUs
	NoVisits  NoVisits                  // why they were not
	Ticks     int64
	Reached   float64       // samples for each second of CPU time, where the kernel's timers say when (Perf); else 0
	Skipped   int64         // ticks that were not held because their time had passed
	Gap       time.Duration // the longest between two ticks
	Threads   int           // seen by now
	Interval  time.Duration // between two samples of a thread; more than asked for if MaxOverhead made it so
	Ended     bool          // the process ended by itself
	Pauses    ptrace.Histogram
	Holds     ptrace.Holds
	Wall      time.Duration
	CPU       time.Duration // of the sampling thread and its preempters
	Times     Times
	Silent    []int        // threads whose memory did not answer; looks at them are Lost[Silent]
	Looks     LookCounts   // by package wall; a Repeated look is Taken, too
	Events    []EventCount // by package events, in the order that they were given in
	Gathered  GatherCounts // by package wall, where it gathers
	OffCPU    OffCPUCounts // by package offcpu
	NoSpans   error        // why the kernel does not read for which spans threads work; nil: it does
}

// LostSum is how many looks were lost.
func (s *Stats) LostSum() (n int64) {
	for _, v := range s.Lost {
		n += v
	}
	return n
}

// Rate returns how many ticks a second were held, or times a second of CPU time a thread was sampled.
func (s *Stats) Rate() float64 {
	if s.Reached > 0 {
		return s.Reached
	}
	if s.Wall <= 0 {
		return 0
	}
	return float64(s.Ticks) / s.Wall.Seconds()
}

// Times is where the CPU time of the process went. Process = Sampled + NotSampled + Exited.
type Times struct {
	Process    time.Duration // what the process used during the run, without threads to be skipped
	Sampled    time.Duration // what samples carry
	NotSampled time.Duration // of threads that live, but were not seen on a CPU after they had used this time
	Exited     time.Duration // of threads that had ended before a sample could carry it
	// Of NotSampled: what was used while goprof could not look (threads/forgive.go), and by threads that used less than
	// an interval.
	Unwatched, Small time.Duration
}

// EventCount is what is known of one event of a run: all hits, and the hits that became samples.
type EventCount struct {
	Name string
	// Hits and Amount are all that happened, exact: the program at the probe, or the kernel, has counted them. For
	// counters they are known at the end only.
	Hits, Amount uint64
	// Taken is how many hits became samples. Stood is the amount that these samples stand for.
	Taken int64
	Stood int64
	// Missed is how many hits should have become samples, but the kernel had no room.
	Missed uint64
	// Interval is the longest mean amount between samples during the run. It is more than was asked for if hits came
	// too often, or if samples cost more than they may.
	Interval uint64
}

// interval is what a sample of a counter stands for.
func (c *EventCount) StandsFor() int64 { return int64(max(c.Interval, 1)) }

// LookCounts is how threads were looked at.
type LookCounts struct {
	Unstopped int64 // without a stop
	Stopped   int64
	AtRest    int64 // of these stops, for NativeOnce
	Asleep    int64 // of these stops, the thread had gone to sleep in the microseconds before
	Repeated  int64 // had not moved since the look before, which counts again
	Quiet     int64 // of these repeats, the thread was not even asked (wall/quiet.go)
	Running   int64 // ran and were not to be stopped
	Voids     int64 // Tracer.Voids
}

// GatherCounts is what was found.
type GatherCounts struct {
	Count   int64         // how often threads were asked to come to rest
	Took    time.Duration // until all had come, all times together
	Counted bool          // the process itself has counted: both are exact
	Seen    int64         // gatherings that a tick has met
	SeenFor time.Duration // how long the gatherings in Seen took
	Longest time.Duration // the longest gathering in Seen
	Unknown int64         // threads that had not come, and were too new to be looked at
}

// OffCPUCounts is what package offcpu has found.
type OffCPUCounts struct {
	Waits, Short int64         // Short: below Min
	ShortFor     time.Duration // how long those took together
	Thinned      int64         // waits that do not count: others stand for them
	Limit        time.Duration // how long those were at most; 0: there were none
	Dropped      int64         // records for which the kernel had no room
	Missed       time.Duration // how long it was not known, after such losses, which threads waited
}
