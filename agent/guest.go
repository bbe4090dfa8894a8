//go:build linux

package agent

import (
	"context"
	"time"

	"goprof/sampler"
	"goprof/session"
)

// guestState says what the agent does with a JVM.
type guestState uint8

const (
	idle     guestState = iota // only its CPU clock is read
	opening                    // goprof attaches to it
	recorded                   // its samples are taken
	denied                     // the settings exclude it
	barred                     // it cannot be recorded: see why
	halted                     // only in the census: idle or recorded, and stopped by a signal or a debugger

	numStates
)

var stateNames = [numStates]string{"idle", "attaching", "recorded", "denied", "unsupported", "stopped"}

// stillBeats is how many beats in a row must find a JVM stopped before the agent reports it. goprof itself stops
// threads, but for a shorter time.
const stillBeats = 2

type guest struct {
	Candidate
	state guestState
	said  map[string]bool // causes that were logged
	retry time.Time       // of barred: when to try again; zero: never
	tries int

	// CPU time of the JVM. read is the last reading of its CPU clock.
	read     time.Duration
	window   time.Time     // the beginning of the time over which use is counted
	atWindow time.Duration // the CPU clock at that time
	leave    time.Time     // do not attach before this time: memory was short
	still    int           // beats in a row that found the JVM stopped

	record *record
}

// record is a guest's recording. Only the goroutine of Agent.Run uses the fields above end.
type record struct {
	batches *batches
	control Control // nil until the recording has begun
	cut     time.Time
	share   float64
	fixed   bool       // its rate cannot change
	counted lookCounts // at the last reading
	due     float64    // samples due since the last budget.hold, at a share of 1
	stop    context.CancelFunc

	beside  []*record          // the recordings of events; never changed
	event   session.AskedEvent // the event, if this is a recording of an event
	hits    int64              // of the event's probes, since the last budget.hold
	dear    bool               // the event was too expensive at the last budget.hold
	dropped bool               // the event was too expensive twice in a row, and is not recorded
	drops   int                // how often the event was dropped
	again   time.Time          // when the event is tried again; zero while it begins; then when it has begun
}

type lookCounts struct {
	taken, lost, hits int64
	leftOut           int64 // stops that were not begun
	paused            time.Duration
}

func countsOf(s *sampler.Stats) lookCounts {
	c := lookCounts{taken: s.Taken, lost: s.LostSum(), hits: hitsOf(s), paused: s.Pauses.Sum()}
	for _, n := range s.Holds.LeftOut {
		c.leftOut += n
	}
	return c
}

// event is a report of a recording's goroutine to Run.
type event struct {
	pid     int
	record  *record
	jvm     *Candidate // goprof is attached; these are the facts of the JVM
	control Control    // the recording has begun
	beside  *record    // the event's recording that control and err belong to
	ended   bool
	unlike  bool // the settings exclude the JVM because of its version or vendor
	exec    bool // the process has become another program, or has ended
	err     error
	killed  string  // the message, if the kernel killed the JVM for lack of memory
	cost    expense // of attaching
}
