//go:build linux

package agent

import (
	"context"
	"time"

	"goprof/sampler"
	"goprof/session"
)

// guestState is what an agent does with a JVM.
type guestState uint8

const (
	idle     guestState = iota // its CPU clock is read
	opening                    // it is attached to
	recorded                   // its samples are taken
	denied                     // the settings do not want it
	barred                     // it cannot be recorded: see why
	halted                     // of the census only: idle or recorded, and stopped by a signal or a debugger

	numStates
)

var stateNames = [numStates]string{"idle", "attaching", "recorded", "denied", "unsupported", "stopped"}

// stillBeats is how many beats in a row must find a JVM stopped before the agent says so: goprof itself stops threads,
// for a shorter time.
const stillBeats = 2

type guest struct {
	Candidate
	state guestState
	said  map[string]bool // causes that were told
	retry time.Time       // of barred: try again; zero: never
	tries int

	// How much CPU time the JVM uses. read is the last reading of its CPU clock.
	read     time.Duration
	window   time.Time     // the time since which use is counted
	atWindow time.Duration // the CPU clock then
	leave    time.Time     // do not attach before: there was no memory for the JVM
	still    int           // beats in a row that found the JVM stopped

	record *record
}

// record is a guest's recording. The fields above end belong to the goroutine of Agent.Run.
type record struct {
	batches *batches
	control Control // nil until it has begun
	cut     time.Time
	share   float64
	fixed   bool       // it cannot be governed
	counted lookCounts // of the last reading
	due     float64    // samples that were due since the budget was last held, whatever the share
	stop    context.CancelFunc

	beside  []*record          // those of events; never changed
	event   session.AskedEvent // what one of these is of
	hits    int64              // of the event's probes, since the budget was last held
	dear    bool               // the event was too dear when it was looked at last
	dropped bool               // it was so twice in a row, and is not recorded
	drops   int                // how often it was dropped
	again   time.Time          // when it is tried again; zero while it begins; then when it has begun
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

// event is what a recording's goroutine tells Run.
type event struct {
	pid     int
	record  *record
	jvm     *Candidate // it was attached to, and this is what it says
	control Control    // it has begun
	beside  *record    // control and err are of this event's recording
	ended   bool
	unlike  bool // the settings do not want it, by what it says
	exec    bool // it has become another program, or ended
	err     error
	killed  string  // for want of memory: what to say of that
	cost    expense // of attaching
}
