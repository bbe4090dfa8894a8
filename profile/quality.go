package profile

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Quality is how reliable the shares of a recording are, judged by its own account.
type Quality string

const (
	Good Quality = "good"
	Fair Quality = "fair" // missing samples could move shares by some percent
	Poor Quality = "poor" // by a tenth, or more
)

// Missing samples may all be of one kind, so a share may be wrong by as much as is missing. CPU time without a sample
// weighs less: most of it belongs to threads that had not used enough for a sample.
const (
	fairMissing, poorMissing       = 0.02, 0.10
	fairNotSampled, poorNotSampled = 0.15, 0.40
)

// Nearly half of the guesses are wrong (see GuessedMuch). Half of poorGuessed is a tenth of all samples.
const poorGuessed = 0.20

// For each short sleep that is seen, one to three are missing (docs/decisions/0004).
const fairSleeps, poorSleeps = 0.01, 0.05

// Chance alone moves a share: with n samples, a share of a half is wrong by less than 1/sqrt(n) in 19 of 20 recordings.
// With less than fairSamples that is more than five points, with less than poorSamples more than ten.
const fairSamples, poorSamples = 400, 100

// For allocations: if the ends of buffers would assign this part of the bytes to other classes, the stacks of each
// class may be equally wrong. If more than half of the buffers could not be read, the read ones may be of another kind.
const (
	fairApart  = 0.05
	fairUnread = 0.5
)

// Doubt is a reason why a recording is not more reliable.
type Doubt struct {
	Why  string
	Cure string // what the next recording should do differently; empty if nothing is known to help
}

// Judge returns how reliable the shares are, and why not more.
func (s *Summary) Judge() (q Quality, doubts []Doubt) {
	q = Good
	if s.Attempted == 0 && s.Hindered == nil {
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
	s.judgeHolds(worse)
	missing(s.Lost, s.Attempted-s.MadeUp, fairMissing, poorMissing, "of the samples are lost: "+Plainly(mostOf(s.LostBy)),
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
		"of the CPU time has no sample: "+s.whyNotSampled(), s.cureNotSampled())
	missing(s.LeafGuessedMost, s.Samples, GuessedMuch, poorGuessed,
		"of the samples stand in one compiled method, where it is a guess which inlined method was running: they count "+
			"for the compiled one", "start the JVM with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints")
	if s.Contents != nil {
		if why := s.Contents.doubt(); why != "" {
			worse(Fair, why, "")
		}
	}
	if n := s.Worth(); s.Samples > 0 && n < fairSamples {
		than := Fair
		if n < poorSamples {
			than = Poor
		}
		what := "there are few samples"
		if n < s.Samples {
			what = fmt.Sprintf("the samples are worth as much as %d that count once each", n)
		}
		worse(than, fmt.Sprintf("%s: by chance alone a share may be off by %.0f points", what,
			100/math.Sqrt(float64(n))), s.cureFew())
	}
	return q, doubts
}

// doubt returns why the shares of allocations may be wrong. It is empty if nothing is known.
func (c *Contents) doubt() string {
	const ends = "a program that repeats itself may walk in step with them"
	unread := c.unread()
	switch {
	case c.Why != "":
		return "shares rest on where buffers end, and " + ends + ": " + c.Why
	case c.Buffers == 0:
		why := "no thread left a buffer"
		if unread > 0 {
			why = "no buffer could be read: " + mostOf(c.Unread)
		}
		return "shares rest on where buffers end, and " + ends + ": " + why
	case float64(unread) > fairUnread*float64(unread+c.Buffers):
		return fmt.Sprintf("%.0f %% of the buffers that were to be read could not be: %s",
			100*float64(unread)/float64(unread+c.Buffers), mostOf(c.Unread))
	case c.InStep && c.Apart >= fairApart:
		return fmt.Sprintf("the program moves in step with its buffers, whose ends alone would be %.0f %% off: bytes by "+
			"class are right, but some of the stacks of a class may be met too seldom", 100*c.Apart)
	}
	return ""
}

// A look that is left out is made later, with the CPU time that its thread has used by then. So only the times of such
// looks are not random.
const fairLeftOut, poorLeftOut = 0.1, 0.5

// judgeHolds judges stops that took too long, or were not begun because they might have.
func (s *Summary) judgeHolds(worse func(than Quality, why, cure string)) {
	h := s.Hindered
	if h == nil {
		return
	}
	if why := s.HeldTooLong(); why != "" {
		worse(Poor, why, h.Cure)
	}
	share := float64(h.LeftOut) / float64(max(h.LeftOut+s.Attempted, 1))
	why := fmt.Sprintf("%.0f %% of the looks were put off or left out, as a thread might have been held for too long: %s",
		100*share, h.Why)
	switch {
	case share >= poorLeftOut:
		worse(Poor, why, h.Cure)
	case share >= fairLeftOut:
		worse(Fair, why, h.Cure)
	}
}

// HeldTooLong says that threads were held for longer than the bound, and why. It is empty if none was.
func (s *Summary) HeldTooLong() string {
	if s.Hindered == nil || s.Hindered.Over == 0 {
		return ""
	}
	return fmt.Sprintf("threads were held for longer than %v, the longest for %v, %d in all: %s", s.Pauses.Bound,
		s.Pauses.Max.Round(time.Millisecond), s.Hindered.Over, s.Hindered.Why)
}

// mostOf returns the most frequent name.
func mostOf(by map[string]int64) string { return append(ByCount(by), Other.String())[0] }

// plain replaces a reason with plain words, if the reason's name is a term of goprof's code.
var plain = map[string]string{
	StackCut.String():         "they are longer than what is copied",
	Continuation.String():     "their frames are in the heap of a virtual thread",
	NotStopped.String():       "their threads were looked at without a stop",
	ThreadGone.String():       "the threads ended first",
	NotPermitted.String():     "the kernel did not permit it",
	StopTimeout.String():      "the threads had no CPU to stop on",
	StopMissed.String():       "their threads stopped late, and goprof let them go",
	ReadLate.String():         "goprof, or a thread of the program that was changing its mappings, had no CPU",
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
	Unadmitted.String():       "goprof might have had no CPU to let their threads go in time",
	Other.String():            "other causes",
	BadDebugInfo.String():     "debug information that cannot be read",
	UnreadableMemory.String(): "memory that cannot be read",
}

// Plainly returns a Reason's name for users, without terms of goprof's code.
func Plainly(reason string) string {
	if text, ok := plain[reason]; ok {
		return text
	}
	return reason
}

// cureLost returns how to lose fewer samples, for the most frequent reason.
func (s *Summary) cureLost() string {
	if len(s.Events) > 0 {
		return "--every larger"
	}
	switch mostOf(s.LostBy) {
	case Unadmitted.String():
		if s.Hindered != nil {
			return s.Hindered.Cure
		}
	case Stale.String(), QueueFull.String(), RingFull.String(), Throttled.String():
		if s.LateCure != "" {
			return s.LateCure + ": " + s.LateWhy
		}
		if s.BySwitches() {
			return "--min longer: goprof could not keep up"
		}
		return "-r lower: goprof could not keep up"
	case ThreadGone.String(), StopTimeout.String(), StopMissed.String():
		return s.cureStops(cureLonger)
	case ReadLate.String():
		return s.cureStops(cureFewer)
	case ProcessGone.String(): // the process ended during these looks: nothing helps
		return ""
	case AlreadyTraced.String():
		return s.cureStops("end the debugger that traces the program")
	}
	return cureLonger
}

// cureCut returns how to cut fewer stacks, for the most frequent reason.
func (s *Summary) cureCut() string {
	most := mostOf(s.TruncatedBy)
	switch {
	case most == TooDeep.String():
		return "--depth higher"
	case most == NotStopped.String() && s.Hindered != nil:
		return s.Hindered.Cure
	case most == NotStopped.String() && s.Looks != nil && s.Looks.NonBlocking:
		return "leave out --nonblocking"
	case s.BySwitches():
		return "--engine ptrace: 20 looks a second, with whole stacks"
	case most == NotStopped.String():
		return "--native-once"
	case s.Meta.Engine == EnginePerf && len(s.Events) == 0:
		return "--engine ptrace"
	}
	return ""
}

// BySwitches reports whether each wait was taken from the kernel's context switches. Then there is no rate.
func (s *Summary) BySwitches() bool { return s.Meta.Mode == ModeOffCPU && s.Meta.Engine == EnginePerf }

// whyNotSampled returns the main cause of CPU time without a sample.
func (s *Summary) whyNotSampled() string {
	t := &s.Times
	lost := time.Duration(max(s.Lost-s.MadeUp, 0)) * s.Meta.Interval
	rest := t.NotSampled - t.Unwatched - t.Small - lost
	switch max(t.Exited, t.Unwatched, t.Small, lost, rest) {
	case t.Exited:
		return "threads ended before they were seen"
	case t.Unwatched:
		return "goprof was stopped, or had no CPU, for seconds"
	case lost:
		return "the samples that were due for it are lost"
	case t.Small:
		return "threads used less each than a sample stands for"
	}
	return "threads had used it since their last sample"
}

// cureNotSampled returns the cure for CPU time without a sample.
func (s *Summary) cureNotSampled() string {
	t := &s.Times
	switch {
	case t.Unwatched > t.NotSampled/2:
		if s.LateCure != "" {
			return s.LateCure + ": " + s.LateWhy
		}
		return cureFewer
	case t.Exited > t.NotSampled:
		return "-r higher"
	}
	return "-d longer, or -r higher"
}

// cureFew returns how to get more samples.
func (s *Summary) cureFew() string {
	switch {
	case len(s.Events) > 0:
		return "-d longer, or --every smaller"
	case s.BySwitches():
		return cureLonger
	}
	return "-d longer, or -r higher"
}

// cureLonger is the cure if more samples of the same kind help, cureFewer if CPUs are short.
const (
	cureLonger = "-d longer"
	cureFewer  = "fewer programs beside the JVM"
)

// cureStops names the perf engine, which stops no thread, if it may be used. Otherwise it returns the given cure.
func (s *Summary) cureStops(or string) string {
	if s.NoPerf || s.Meta.Engine == EnginePerf || s.Meta.Mode != "" && s.Meta.Mode != ModeCPU {
		return or
	}
	if or == cureLonger || or == "" {
		return "--engine perf, which stops no thread"
	}
	return or + ", or --engine perf"
}

// SetQuality stores the result of Judge.
func (s *Summary) SetQuality() {
	q, doubts := s.Judge()
	s.Quality, s.Doubts, s.Cures = q, nil, nil
	for _, d := range doubts {
		s.Doubts, s.Cures = append(s.Doubts, d.Why), append(s.Cures, d.Cure)
	}
}
