package profile

import "time"

// The values of Meta.Mode and Meta.Engine.
const (
	ModeCPU    = "cpu"     // threads that use CPU time
	ModeWall   = "wall"    // all threads, whatever they do
	ModeOffCPU = "off-cpu" // threads that wait
	ModeTTSP   = "ttsp"    // threads that a safepoint waits for

	EnginePtrace = "ptrace" // stops a thread for the moment of a look
	EnginePerf   = "perf"   // lets the kernel take samples
)

// Meta is the origin of a profile. It never has the target's arguments or environment, which may contain passwords.
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
	Interval  time.Duration `json:"interval_ns"`          // between two looks at a thread, as requested
	Weight    Weight        `json:"weight"`               // what stacks are counted in
	// Part is the name of this part of the recording, as in --event. It is empty if the recording has one part, unless
	// that part is of waits.
	Part string `json:"part,omitempty"`
}

// Rate returns how often per second a thread should have been looked at.
func (m *Meta) Rate() float64 {
	if m.Interval <= 0 {
		return 0
	}
	return float64(time.Second) / float64(m.Interval)
}

// Pauses is how long threads of the target were stopped.
type Pauses struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
	Total time.Duration `json:"total_ns"`
	Bound time.Duration `json:"bound_ns,omitempty"` // the longest pause, unless goprof has no CPU in time
}

// Hindered is what kept goprof from a CPU, so that a thread was held for too long or not stopped at all.
type Hindered struct {
	LeftOut int64  `json:"left_out"`         // stops that were not begun because they might have lasted too long
	Over    int64  `json:"held_over_bound"`  // threads that were held for longer than the bound
	Why     string `json:"why"`              // the most frequent reason
	Cure    string `json:"remedy,omitempty"` // for that reason
}

// Summary is the account of a recording, which users see at its end.
type Summary struct {
	NoPerf      bool    `json:"-"` // perf cannot take samples of CPU time here, so no cure proposes it
	Meta        Meta    `json:"recording"`
	Of          string  `json:"account_of,omitempty"`      // the file with the samples, without its folder
	Rate        float64 `json:"rate_hz"`                   // as requested
	RateReached float64 `json:"rate_reached_hz"`           // actually reached
	RateLowered float64 `json:"rate_lowered_hz,omitempty"` // reduced to this, because pauses cost too much
	// Skipped ticks had passed before goprof got to them. They are never made up for.
	Skipped   int64         `json:"skipped_ticks,omitempty"`
	Gap       time.Duration `json:"longest_gap_ns,omitempty"` // between two such ticks
	Attempted int64         `json:"attempted"`                // = whole + truncated + lost
	Samples   int64         `json:"samples"`                  // = whole + truncated
	// Effective is how many samples that count once have as much information, if samples count for several: the square of
	// their sum divided by the sum of their squares. 0: each counts once.
	Effective int64 `json:"effective_samples,omitempty"`
	// MadeUp samples are part of Samples. They stand for lost ones: a sample of the same thread also counts for them.
	MadeUp      int64            `json:"made_up,omitempty"`
	Whole       int64            `json:"whole"`
	Truncated   int64            `json:"truncated"`
	Lost        int64            `json:"lost"`
	TruncatedBy map[string]int64 `json:"truncated_by"`
	LostBy      map[string]int64 `json:"lost_by"`
	// The samples whose running inlined method is likely, or is a guess. For all others it is certain.
	LeafLikely  int64 `json:"leaf_likely"`
	LeafGuessed int64 `json:"leaf_guessed"`
	// LeafGuessedMost is the largest number of guessed leaves in one compiled method.
	LeafGuessedMost int64 `json:"leaf_guessed_most,omitempty"`
	Waiting         int64 `json:"waiting,omitempty"` // looks at threads that waited for a CPU, not in Attempted
	// Asleep counts samples of threads that had entered a system call right before they stopped.
	Asleep int64 `json:"asleep,omitempty"`
	// ShortSleeps counts samples in a virtual machine of threads whose sleep ends within 4 ms, or has just ended.
	ShortSleeps int64  `json:"short_sleeps,omitempty"`
	Overflow    int64  `json:"overflow"` // samples with only the callers of their stack, for want of room
	Threads     int    `json:"threads"`  // threads with at least one sample
	Pauses      Pauses `json:"pauses"`
	// Hindered is nil if goprof had a CPU for the end of each stop.
	Hindered *Hindered `json:"hindered,omitempty"`
	Times    Times     `json:"cpu_time"`
	Looks    *Looks    `json:"looks,omitempty"` // in wall-clock modes
	// Virtual are virtual threads without a carrier, in wall-clock modes. It is nil if there were none.
	Virtual *VirtualLooks `json:"virtual_threads,omitempty"`
	// Allocated is what the JVM's threads allocated during the recording. It is nil if the JVM does not show it.
	Allocated  *Allocated    `json:"allocated,omitempty"`
	Switches   *Switches     `json:"switches,omitempty"`       // in mode off-cpu by context switches
	Wakers     Wakers        `json:"wakers,omitempty"`         // what ended the waits, the known wakers first
	Safepoints *Safepoints   `json:"safepoints,omitempty"`     // in mode ttsp
	Silent     int           `json:"silent_threads,omitempty"` // threads whose memory did not answer
	OwnCPU     time.Duration `json:"own_cpu_ns"`               // what goprof itself used
	Notes      []Note        `json:"notes,omitempty"`
	Quality    Quality       `json:"quality,omitempty"` // see Judge
	Events     []EventCount  `json:"events,omitempty"`  // in a recording of events
	// Contents is how the bytes of classes are known, in a recording of allocations.
	Contents *Contents `json:"contents,omitempty"`
	// Unfreed is for a recording of memory that is not freed.
	Unfreed *Unfreed `json:"unfreed,omitempty"`
	// IO is for a recording of calls that read and write.
	IO    *IO    `json:"io,omitempty"`
	Links *Links `json:"links,omitempty"` // if the program publishes which spans its threads work for
	// Leans: goprof could not visit CPUs, and stopped threads from other CPUs.
	Leans     bool     `json:"leans,omitempty"`
	LeansWhy  string   `json:"-"`                // which right or CPU goprof lacks for visits
	LeansCure string   `json:"-"`                // the command that corrects it
	LateWhy   string   `json:"-"`                // why goprof has no better priority than others
	LateCure  string   `json:"-"`                // the command that corrects it
	Doubts    []string `json:"doubts,omitempty"` // why the quality is not good
	Cures     []string `json:"cures,omitempty"`  // the remedy of each doubt; empty if none is known
	// Chosen: --thread or --exclude-thread has chosen the threads.
	Chosen bool `json:"chosen_threads,omitempty"`
	// Hottest are the methods with the most samples, the largest first. States are the states of threads, in wall-clock
	// modes.
	Hottest []Part `json:"hottest,omitempty"`
	States  []Part `json:"states,omitempty"`
	// Parts are the accounts of the other parts of a recording. Their OwnCPU is 0: the first part's OwnCPU is for all
	// parts.
	Parts []Summary `json:"parts,omitempty"`
}

// Worth returns how many samples that count once have as much information as all samples.
func (s *Summary) Worth() int64 {
	if s.Effective > 0 {
		return s.Effective
	}
	return s.Samples
}

// AllSamples returns the number of samples in all parts.
func (s *Summary) AllSamples() int64 {
	n := s.Samples
	for i := range s.Parts {
		n += s.Parts[i].Samples
	}
	return n
}

// Part is a part of the samples, with its share of all samples, 0 to 1.
type Part struct {
	Name  string  `json:"name"`            // possibly with text of the target
	State string  `json:"state,omitempty"` // in wall-clock modes: the threads' state there
	Share float64 `json:"share"`
}

// Looks counts how a wall-clock recording has looked at threads.
type Looks struct {
	Unstopped int64 `json:"unstopped"` // threads at rest, without a stop
	Stopped   int64 `json:"stopped"`   // threads that ran, and with --native-once also threads that came to rest
	Repeated  int64 `json:"repeated"`  // threads that had not moved: the last look counted again
	Moved     int64 `json:"moved"`     // void looks: the thread ran during the look. Most were repeated
	// Asleep: of Stopped, threads that had fallen asleep in the microseconds before.
	Asleep  int64         `json:"asleep"`
	Running int64         `json:"running"` // threads that ran and were not stopped: --nonblocking, off-cpu
	Time    time.Duration `json:"time_ns"` // the time that all stacks stand for
	AtRest  int64         `json:"at_rest"` // of Stopped, threads at rest, for --native-once
	Others  int64         `json:"others"`  // in a state that was not asked for: no samples
	// Looks at idle threads of the JVM itself, and the number of these threads: no samples.
	Idle        int64 `json:"idle,omitempty"`
	IdleThreads int   `json:"idle_threads,omitempty"`
	NonBlocking bool  `json:"nonblocking,omitempty"` // no thread was to be stopped
}

// VirtualLooks is the account of virtual threads without a carrier. These threads are drawn by lot from the heap, and
// each look stands for several of them.
type VirtualLooks struct {
	Threads float64 `json:"threads"` // mean number of threads over the time
	Most    int64   `json:"most"`    // at one draw
	Draws   int64   `json:"draws"`
	Looks   int64   `json:"looks"` // looks that are samples
	// Error bounds the chance error of a share of one half, in 19 of 20 recordings. 0: each draw visited all threads.
	Error float64 `json:"error,omitempty"`
	// Unread counts looks without a result, and lists that could not be read, by reason.
	Unread map[string]int64 `json:"unread,omitempty"`
	// Untracked is how many threads the JVM counts but has in no list (-Djdk.trackAllThreads=false). They are not in
	// Threads.
	Untracked int64         `json:"untracked,omitempty"`
	CPU       time.Duration `json:"cpu_ns"` // used by goprof for the draws
}

// Allocated is how much threads have allocated during the recording, by HotSpot's counter for each Java thread: not
// sampled, but exact. What a thread allocates in the second before its end is missing.
type Allocated struct {
	Bytes   int64         `json:"bytes"`             // of all threads
	Threads []ThreadBytes `json:"threads,omitempty"` // those that allocated the most, the largest first
	Full    bool          `json:"full,omitempty"`    // there were more threads than are counted
	Time    time.Duration `json:"-"`                 // the counted time: at most to the process's end
}

type ThreadBytes struct {
	Thread string `json:"thread"` // its label, "[name tid=N]": text of the target
	Bytes  int64  `json:"bytes"`
}

// Safepoints is how long the VM waited for its threads to reach safepoints.
type Safepoints struct {
	Count   int64         `json:"count"`             // number of safepoints
	Took    time.Duration `json:"took_ns"`           // total time until all threads had reached them
	Exact   bool          `json:"exact"`             // Count and Took are the JVM's own numbers
	Seen    int64         `json:"seen"`              // safepoints with at least one look in time
	SeenFor time.Duration `json:"seen_ns"`           // how long the VM waited for those
	Longest time.Duration `json:"longest_ns"`        // of those
	Unknown int64         `json:"too_new,omitempty"` // looks that were not possible: the thread had just begun
	// Operations are the operations that needed safepoints, by HotSpot's names. They are empty if libjvm.so has no
	// symbols.
	Operations map[string]int64 `json:"operations,omitempty"`
}

// Switches is the account of a recording by context switches.
type Switches struct {
	Waits    int64         `json:"waits"`               // in the profile, or lost
	Short    int64         `json:"short"`               // shorter than --min
	ShortFor time.Duration `json:"short_ns"`            // total length of Short
	Thinned  int64         `json:"thinned,omitempty"`   // too many, so that they do not count: others stand for them
	Limit    time.Duration `json:"limit_ns,omitempty"`  // greatest length of those
	Dropped  int64         `json:"dropped,omitempty"`   // records for which the kernel had no room
	Missed   time.Duration `json:"missed_ns,omitempty"` // the time, after such losses, whose waits are not counted
}

// Note is what a user should know about a recording or a dump that worked.
type Note struct {
	Name   string `json:"name"`             // a fixed name: "library-replaced", OutOfMemory
	Text   string `json:"text"`             // possibly with text of the target
	Remedy string `json:"remedy,omitempty"` // a command
}

// OutOfMemory is the name of the note that the kernel has killed the process because memory was short.
const OutOfMemory = "out-of-memory"

// Times divides the CPU time of the process. Process = Sampled + NotSampled + Exited.
type Times struct {
	Process    time.Duration `json:"process_ns"`     // used during the recording
	Sampled    time.Duration `json:"sampled_ns"`     // the part with stacks
	NotSampled time.Duration `json:"not_sampled_ns"` // the part without stacks
	Exited     time.Duration `json:"exited_ns"`      // the part of threads that had ended before a sample
	// Unwatched and Small are parts of NotSampled. Unwatched was used while goprof was stopped or had no CPU for long.
	// Small was used by threads that used less CPU time than one sample stands for.
	Unwatched time.Duration `json:"unwatched_ns,omitempty"`
	Small     time.Duration `json:"below_a_sample_ns,omitempty"`
}

// Summary fills in all that a profile itself knows. The recorder must add the rate reached, the number of threads, the
// pauses, goprof's own CPU time and the notes.
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
