package profile

import (
	"cmp"
	"fmt"
	"math"
)

// Quality is how far the shares of a recording can be believed, judged by its own account.
type Quality string

const (
	Good Quality = "good"
	Fair Quality = "fair" // what is missing could move shares by some percent
	Poor Quality = "poor" // by a tenth, or more
)

// Missing samples may all be of one kind, so a share may be off by as much as is missing. CPU time that no sample
// carries weighs less: most of it belongs to threads that had not used enough for a sample.
const (
	fairMissing, poorMissing       = 0.02, 0.10
	fairNotSampled, poorNotSampled = 0.15, 0.40
)

// For each short sleep that is seen, one to three are missing (docs/decisions/0004).
const fairSleeps, poorSleeps = 0.01, 0.05

// Chance alone moves a share: of n samples a half is off by less than 1/sqrt(n) in 19 of 20 recordings. With less than
// fairSamples that is more than five points, with less than poorSamples more than ten.
const fairSamples, poorSamples = 400, 100

// Doubt is one reason why a recording cannot be believed further.
type Doubt struct {
	Why  string
	Cure string // what the next recording should do differently, empty if nothing is known to help
}

// Judge says how far the shares can be believed, and why not further.
func (s *Summary) Judge() (q Quality, doubts []Doubt) {
	q = Good
	if s.Attempted == 0 {
		return q, nil // a recording without samples has no shares
	}
	worse := func(than Quality, why, cure string) {
		if than == Poor || q == Good {
			q = than
		}
		doubts = append(doubts, Doubt{why, cure})
	}
	missing := func(part, of int64, fair, poor float64, why, cure string) {
		if part <= 0 || of <= 0 {
			return
		}
		share := float64(part) / float64(of)
		why = fmt.Sprintf("%.1f %% %s", 100*share, why)
		switch {
		case share >= poor:
			worse(Poor, why, cure)
		case share >= fair:
			worse(Fair, why, cure)
		}
	}
	missing(s.Lost, s.Attempted, fairMissing, poorMissing, "of the samples are lost: "+Plainly(mostOf(s.LostBy)),
		s.cureLost())
	missing(s.Truncated, s.Samples, fairMissing, poorMissing,
		"of the stacks are cut, and their callers are missing: "+Plainly(mostOf(s.TruncatedBy)), s.cureCut())
	missing(s.Overflow, s.Samples, fairMissing, poorMissing,
		"of the samples are not kept to their leaf: the profile is full",
		"--hide-internal, or --thread to choose threads")
	if s.Leans {
		worse(Fair, "calls that block may have more samples than is true: "+
			cmp.Or(s.LeansWhy, "goprof could not visit the CPUs of the program"), s.cureStops(s.LeansCure))
	}
	missing(s.Asleep, s.Samples, fairMissing, poorMissing,
		"of the samples may stand in a call that had not begun when the thread was chosen", s.cureStops(s.LeansCure))
	missing(s.ShortSleeps, s.Samples, fairSleeps, poorSleeps,
		"of the samples are in sleeps of less than some milliseconds: in a virtual machine such sleeps may take "+
			"several times the CPU time that their samples show", "")
	missing(int64(s.Times.NotSampled+s.Times.Exited), int64(s.Times.Process), fairNotSampled, poorNotSampled,
		"of the CPU time has no sample", s.cureNotSampled())
	if s.Samples > 0 && s.Samples < fairSamples {
		than := Fair
		if s.Samples < poorSamples {
			than = Poor
		}
		worse(than, fmt.Sprintf("there are few samples: by chance alone a share may be off by %.0f points",
			100/math.Sqrt(float64(s.Samples))), s.cureFew())
	}
	return q, doubts
}

// mostOf is the name of what happened most often.
func mostOf(by map[string]int64) (name string) {
	most := int64(0)
	for what, n := range by {
		if n > most || n == most && what < name {
			name, most = what, n
		}
	}
	if name == "" {
		return Other.String()
	}
	return name
}

// plain says in plain words what a reason means if its name is goprof's own term.
var plain = map[string]string{
	StackCut.String():         "they are longer than what is copied",
	Continuation.String():     "their frames are in the heap of a virtual thread",
	NotStopped.String():       "their threads were looked at without a stop",
	ThreadGone.String():       "the threads ended first",
	NotPermitted.String():     "the kernel did not permit it",
	StopTimeout.String():      "the threads had no CPU to stop on",
	AlreadyTraced.String():    "another process traces the threads",
	Stale.String():            "goprof could not keep up",
	QueueFull.String():        "goprof could not keep up",
	Moved.String():            "the threads ran on meanwhile",
	ProcessGone.String():      "the process ended",
	RingFull.String():         "the kernel had no room for them",
	Throttled.String():        "the kernel found them too many",
	NoRegisters.String():      "the kernel could not tell the registers",
	NoUnwindInfo.String():     "native code without unwind information",
	CodeChanged.String():      "the code was replaced meanwhile",
	Deoptimizing.String():     "the JVM was rebuilding the frame",
	Other.String():            "other causes",
	BadDebugInfo.String():     "debug information that cannot be read",
	UnreadableMemory.String(): "memory that cannot be read",
}

// Plainly is a Reason's name for users, without terms of goprof's code.
func Plainly(reason string) string {
	if text, ok := plain[reason]; ok {
		return text
	}
	return reason
}

// cureLost is what loses fewer samples, by the reason that lost most.
func (s *Summary) cureLost() string {
	if len(s.Events) > 0 {
		return "--every larger"
	}
	switch mostOf(s.LostBy) {
	case Stale.String(), QueueFull.String(), RingFull.String(), Throttled.String():
		if s.BySwitches() {
			return "--min longer: goprof could not keep up"
		}
		return "-r lower: goprof could not keep up"
	case ThreadGone.String(), StopTimeout.String():
		return s.cureStops(cureLonger)
	case AlreadyTraced.String():
		return "end the debugger that traces the program, or --engine perf"
	}
	return cureLonger
}

// cureCut is what cuts fewer stacks, by the reason that cut most.
func (s *Summary) cureCut() string {
	most := mostOf(s.TruncatedBy)
	switch {
	case most == TooDeep.String():
		return "--depth higher"
	case most == NotStopped.String() && s.Pauses.Count == 0:
		return "leave out --nonblocking"
	case most == NotStopped.String():
		return "--native-once"
	case s.BySwitches():
		return "--mode off-cpu: 20 looks a second, with whole stacks"
	case s.Meta.Engine == EnginePerf && len(s.Events) == 0:
		return "--engine ptrace"
	}
	return ""
}

// BySwitches reports whether each wait was taken from the kernel's context switches, so that there is no rate.
func (s *Summary) BySwitches() bool { return s.Meta.Mode == ModeOffCPU && s.Meta.Engine == EnginePerf }

// cureNotSampled is the cure where CPU time has no sample. Threads that used less than one interval have none yet, and
// threads that end soon never get one.
func (s *Summary) cureNotSampled() string {
	if s.Times.Exited > s.Times.NotSampled {
		return "-r higher: threads ended before they were seen"
	}
	return "-d longer, or -r higher"
}

// cureFew is what brings more samples.
func (s *Summary) cureFew() string {
	switch {
	case len(s.Events) > 0:
		return "-d longer, or --every smaller"
	case s.BySwitches():
		return cureLonger
	}
	return "-d longer, or -r higher"
}

// cureLonger is the cure where more samples of the same kind help.
const cureLonger = "-d longer"

// cureStops names the perf engine, which stops no thread, if it may be used. Otherwise it is the given cure.
func (s *Summary) cureStops(or string) string {
	if s.Meta.Engine == EnginePerf || s.Meta.Mode != "" && s.Meta.Mode != ModeCPU {
		return or
	}
	if or == cureLonger || or == "" {
		return "--engine perf, which stops no thread"
	}
	return or + ", or --engine perf"
}

// SetQuality stores what Judge says.
func (s *Summary) SetQuality() {
	q, doubts := s.Judge()
	s.Quality, s.Doubts, s.Cures = q, nil, nil
	for _, d := range doubts {
		s.Doubts, s.Cures = append(s.Doubts, d.Why), append(s.Cures, d.Cure)
	}
}
