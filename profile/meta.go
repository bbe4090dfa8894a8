package profile

import "time"

// What Meta.Mode and Meta.Engine say.
const (
	ModeCPU    = "cpu"     // threads that use CPU time
	ModeWall   = "wall"    // all threads, whatever they do
	ModeOffCPU = "off-cpu" // threads that wait
	ModeTTSP   = "ttsp"    // threads that keep a safepoint waiting

	EnginePtrace = "ptrace" // stops a thread for the moment of a look
	EnginePerf   = "perf"   // lets the kernel take samples
)

// Meta is where a profile comes from. It never holds arguments or environment of the
// target: they hold passwords.
type Meta struct {
	Version   string        `json:"goprof"`               // of goprof
	Host      string        `json:"host,omitempty"`       //
	PID       int           `json:"pid"`                  //
	MainClass string        `json:"main_class,omitempty"` // or jar, without arguments
	JVM       string        `json:"jvm,omitempty"`        // version and vendor
	Collector string        `json:"collector,omitempty"`  //
	Mode      string        `json:"mode"`                 // ModeCPU ...
	Engine    string        `json:"engine,omitempty"`     // EnginePtrace, EnginePerf
	Start     time.Time     `json:"start"`                //
	Duration  time.Duration `json:"duration_ns"`          //
	Interval  time.Duration `json:"interval_ns"`          // between two looks at a thread, as asked
	Weight    Weight        `json:"weight"`               // what stacks are counted in
	// Part is the name of this part of the recording, as --event has it. It is empty if the recording has one part, unless
	// that part is of waits.
	Part string `json:"part,omitempty"`
}

// Rate is how often in a second a thread should have been looked at.
func (m *Meta) Rate() float64 {
	if m.Interval <= 0 {
		return 0
	}
	return float64(time.Second) / float64(m.Interval)
}

// Pauses is how long threads of the target stood still.
type Pauses struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
	Total time.Duration `json:"total_ns"`
	Bound time.Duration `json:"bound_ns,omitempty"` // that goprof keeps, unless it has no CPU in time
}

// Hindered says what kept goprof from a CPU, so that a thread was held for too long or not stopped at all.
type Hindered struct {
	LeftOut int64  `json:"left_out"`         // stops that were not begun, as they might have lasted too long
	Over    int64  `json:"held_over_bound"`  // threads that were held for longer than the bound
	Why     string `json:"why"`              // what happened most often
	Cure    string `json:"remedy,omitempty"` // of that
}

// Summary is the account of a recording, which the user gets at its end.
type Summary struct {
	NoPerf      bool    `json:"-"` // perf cannot take samples of CPU time here, so no cure names it
	Meta        Meta    `json:"recording"`
	Of          string  `json:"account_of,omitempty"`      // the file with the samples, without its folder
	Rate        float64 `json:"rate_hz"`                   // as asked
	RateReached float64 `json:"rate_reached_hz"`           // as it came out
	RateLowered float64 `json:"rate_lowered_hz,omitempty"` // what it was lowered to, because pauses cost too much
	// moments to sample that had passed before goprof got to them; never made up for
	Skipped   int64         `json:"skipped_ticks,omitempty"`
	Gap       time.Duration `json:"longest_gap_ns,omitempty"` // between two such moments
	Attempted int64         `json:"attempted"`                // = whole + truncated + lost
	Samples   int64         `json:"samples"`                  // = whole + truncated
	// Effective is how many samples that count once are worth as much, if samples count for several: the square of their
	// sum over the sum of their squares. 0: each counts once.
	Effective int64 `json:"effective_samples,omitempty"`
	// MadeUp samples, among Samples, stand for lost ones: a sample of the same thread counts for them, too.
	MadeUp      int64            `json:"made_up,omitempty"`
	Whole       int64            `json:"whole"`
	Truncated   int64            `json:"truncated"`
	Lost        int64            `json:"lost"`
	TruncatedBy map[string]int64 `json:"truncated_by"`
	LostBy      map[string]int64 `json:"lost_by"`
	// Samples for which it is likely, or a guess, which inlined method was running. For all others it is certain.
	LeafLikely  int64 `json:"leaf_likely"`
	LeafGuessed int64 `json:"leaf_guessed"`
	// LeafGuessedMost is the largest number of guessed leaves in one compiled method.
	LeafGuessedMost int64 `json:"leaf_guessed_most,omitempty"`
	Waiting         int64 `json:"waiting,omitempty"` // looks at threads that waited for a CPU, not among those attempted
	// samples of threads that had entered a system call right before they stopped
	Asleep int64 `json:"asleep,omitempty"`
	// samples of threads in a sleep that ends within 4 ms, or just has, in a virtual machine
	ShortSleeps int64  `json:"short_sleeps,omitempty"`
	Overflow    int64  `json:"overflow"` // samples of whose stack only the callers were kept, for want of room
	Threads     int    `json:"threads"`  // that gave at least one sample
	Pauses      Pauses `json:"pauses"`
	// Hindered is nil if goprof had a CPU for the end of each stop.
	Hindered *Hindered `json:"hindered,omitempty"`
	Times    Times     `json:"cpu_time"`
	Looks    *Looks    `json:"looks,omitempty"` // in wall-clock modes
	// Virtual are virtual threads that no carrier ran, in wall-clock modes; nil if there were none.
	Virtual *VirtualLooks `json:"virtual_threads,omitempty"`
	// Allocated is what the JVM's threads allocated meanwhile; nil where its structures do not tell.
	Allocated  *Allocated    `json:"allocated,omitempty"`
	Switches   *Switches     `json:"switches,omitempty"`       // in mode off-cpu by context switches
	Wakers     Wakers        `json:"wakers,omitempty"`         // what ended the waits, the known ones first
	Safepoints *Safepoints   `json:"safepoints,omitempty"`     // in mode ttsp
	Silent     int           `json:"silent_threads,omitempty"` // whose memory did not answer
	OwnCPU     time.Duration `json:"own_cpu_ns"`               // what goprof itself used
	Notes      []Note        `json:"notes,omitempty"`
	Quality    Quality       `json:"quality,omitempty"` // see Judge
	Events     []EventCount  `json:"events,omitempty"`  // of a recording of an event
	// Contents is how the bytes of classes are known, of a recording of allocations.
	Contents *Contents `json:"contents,omitempty"`
	// Unfreed is of a recording of memory that is not given back.
	Unfreed *Unfreed `json:"unfreed,omitempty"`
	// IO is of a recording of calls that read and write.
	IO    *IO    `json:"io,omitempty"`
	Links *Links `json:"links,omitempty"` // where the program publishes for which span a thread works
	// Leans says that goprof could not visit CPUs, and stopped threads from other CPUs.
	Leans     bool     `json:"leans,omitempty"`
	LeansWhy  string   `json:"-"`                // which right or CPU goprof lacks for that
	LeansCure string   `json:"-"`                // and the command that mends it
	LateWhy   string   `json:"-"`                // why goprof does not come before others
	LateCure  string   `json:"-"`                // and the command that mends it
	Doubts    []string `json:"doubts,omitempty"` // why it is not good
	Cures     []string `json:"cures,omitempty"`  // of each doubt, what mends it; empty where nothing is known
	// Chosen says that --thread or --exclude-thread has chosen the threads.
	Chosen bool `json:"chosen_threads,omitempty"`
	// Hottest are the methods with most samples, the largest first, and States what threads did in wall-clock modes.
	Hottest []Part `json:"hottest,omitempty"`
	States  []Part `json:"states,omitempty"`
	// Parts are the accounts of the further parts of a recording. Their OwnCPU is 0: that of the first part is for all.
	Parts []Summary `json:"parts,omitempty"`
}

// Worth is how many samples that count once are worth as much as all samples.
func (s *Summary) Worth() int64 {
	if s.Effective > 0 {
		return s.Effective
	}
	return s.Samples
}

// AllSamples is how many samples all parts have.
func (s *Summary) AllSamples() int64 {
	n := s.Samples
	for i := range s.Parts {
		n += s.Parts[i].Samples
	}
	return n
}

// Part is a part of a recording and its share of all samples, 0 to 1.
type Part struct {
	Name  string  `json:"name"`            // may hold text of the target
	State string  `json:"state,omitempty"` // in wall-clock modes: what the threads did there
	Share float64 `json:"share"`
}

// Looks counts the ways in which a wall-clock recording has looked at threads.
type Looks struct {
	Unstopped int64 `json:"unstopped"` // threads that stood still, without a stop
	Stopped   int64 `json:"stopped"`   // threads that ran, and with --native-once those that came to rest
	Repeated  int64 `json:"repeated"`  // threads that had not moved since: the last look counted again
	Moved     int64 `json:"moved"`     // void looks: the thread ran meanwhile. Most were repeated
	// of the stopped ones, threads that had gone to sleep in the microseconds before
	Asleep  int64         `json:"asleep"`
	Running int64         `json:"running"` // threads that ran and were not stopped: --nonblocking, off-cpu
	Time    time.Duration `json:"time_ns"` // that all stacks stand for
	AtRest  int64         `json:"at_rest"` // of those stopped, threads at rest, for --native-once
	Others  int64         `json:"others"`  // found in a state that was not asked for: no samples
	// Looks at the JVM's own threads while these had nothing to do, and how many threads that were: no samples.
	Idle        int64 `json:"idle,omitempty"`
	IdleThreads int   `json:"idle_threads,omitempty"`
	NonBlocking bool  `json:"nonblocking,omitempty"` // no thread was to be stopped
}

// VirtualLooks is the account of virtual threads that no carrier ran. They are drawn by lot from the heap, and each look
// stands for several of them.
type VirtualLooks struct {
	Threads float64 `json:"threads"` // how many there were, on average over the time
	Most    int64   `json:"most"`    // at a draw
	Draws   int64   `json:"draws"`
	Looks   int64   `json:"looks"` // that are samples
	// Error bounds the chance error of a share of one half, in 19 of 20 recordings. 0: each draw met all threads.
	Error float64 `json:"error,omitempty"`
	// Unread counts looks that showed nothing, and lists that could not be read, by the reason.
	Unread map[string]int64 `json:"unread,omitempty"`
	// Untracked is how many the JVM counts and has in no list (-Djdk.trackAllThreads=false): they are not in Threads.
	Untracked int64         `json:"untracked,omitempty"`
	CPU       time.Duration `json:"cpu_ns"` // that goprof used for all this
}

// Allocated is how much threads have allocated while they were recorded, as HotSpot counts it for each Java thread: not
// sampled, but exact. Bytes that a thread allocates in the second before its end are missing.
type Allocated struct {
	Bytes   int64         `json:"bytes"`             // by all of them
	Threads []ThreadBytes `json:"threads,omitempty"` // those that allocated most, the largest first
	Full    bool          `json:"full,omitempty"`    // there were more threads than are counted
	Time    time.Duration `json:"-"`                 // for how long it was counted: at most to the process's end
}

// ThreadBytes is what one thread has allocated.
type ThreadBytes struct {
	Thread string `json:"thread"` // its label, "[name tid=N]": text of the target
	Bytes  int64  `json:"bytes"`
}

// Safepoints is how long the VM waited for its threads to come to a safepoint.
type Safepoints struct {
	Count   int64         `json:"count"`             // how often it asked for one
	Took    time.Duration `json:"took_ns"`           // until all had come, all times together
	Exact   bool          `json:"exact"`             // both are the JVM's own numbers
	Seen    int64         `json:"seen"`              // safepoints for which some look was in time
	SeenFor time.Duration `json:"seen_ns"`           // and how long the VM waited for those
	Longest time.Duration `json:"longest_ns"`        // of those
	Unknown int64         `json:"too_new,omitempty"` // looks that could not be: the thread had just begun
	// Operations are what the safepoints were for, by HotSpot's names. They are empty if libjvm.so has no symbols.
	Operations map[string]int64 `json:"operations,omitempty"`
}

// Switches is the account of a recording by context switches.
type Switches struct {
	Waits    int64         `json:"waits"`              // that are in the profile, or lost
	Short    int64         `json:"short"`              // that were shorter than --min
	ShortFor time.Duration `json:"short_ns"`           // how long those took together
	Thinned  int64         `json:"thinned,omitempty"`  // too many, so they do not count: others stand for them
	Limit    time.Duration `json:"limit_ns,omitempty"` // how long those were at most
	Dropped  int64         `json:"dropped,omitempty"`  // records for which the kernel had no room
}

// Note is something that a user should know of a recording or a dump that worked.
type Note struct {
	Name   string `json:"name"`             // a stable word for it: "library-replaced", OutOfMemory
	Text   string `json:"text"`             // may hold text of the target
	Remedy string `json:"remedy,omitempty"` // a command
}

// OutOfMemory is the name of the note that the kernel has killed the process for want of memory.
const OutOfMemory = "out-of-memory"

// Times is where the CPU time of the process went. Process = Sampled + NotSampled + Exited.
type Times struct {
	Process    time.Duration `json:"process_ns"`     // what it used meanwhile
	Sampled    time.Duration `json:"sampled_ns"`     // of this, stacks were seen
	NotSampled time.Duration `json:"not_sampled_ns"` // of this, none was
	Exited     time.Duration `json:"exited_ns"`      // threads had ended before one was
	// Unwatched and Small are parts of NotSampled: the time used while goprof was stopped or had no CPU for long, and the
	// time of threads that used less than a sample stands for.
	Unwatched time.Duration `json:"unwatched_ns,omitempty"`
	Small     time.Duration `json:"below_a_sample_ns,omitempty"`
}

// Summary fills in all that a profile knows of itself. The rate reached, the number of
// threads, the pauses, goprof's own CPU and the notes are the recorder's to add.
func (p *Profile) Summary() Summary {
	c := &p.Counts
	return Summary{
		Meta:        p.Meta,
		Rate:        p.Meta.Rate(),
		Attempted:   c.Attempted,
		Samples:     c.Samples(),
		Whole:       c.Whole,
		Truncated:   c.TruncatedSum(),
		Lost:        c.LostSum(),
		TruncatedBy: byName(&c.Truncated),
		LostBy:      byName(&c.Lost),
		LeafLikely:  p.Sure[Likely],
		LeafGuessed: p.Sure[Guessed],

		LeafGuessedMost: p.guesses.Most(),
		Overflow:        p.Overflow,
	}
}
