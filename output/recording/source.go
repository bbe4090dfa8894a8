package recording

import (
	"fmt"
	"slices"
	"time"

	"goprof/profile"
)

// Source is a recording that is read sample by sample.
type Source interface {
	// Info is what is known of the recording before its samples are read.
	Info() Info
	// Each calls visit for every sample, in the order of the file, which need not be that of time. A sample and its
	// stack are valid only during the call, Funcs and names for ever. It may be called again, and begins anew then. The
	// first error of visit ends it.
	Each(visit func(*profile.Sample) error) error
}

// Formats of files, by their content.
const (
	JFR       = "jfr"
	Pprof     = "pprof"
	Collapsed = "collapsed"
)

// Info is what is known of a recording.
type Info struct {
	Name   string // of the file, without folders
	Format string // JFR, Pprof, Collapsed
	Meta   profile.Meta
	// Timed says that samples have their times. Those of a file without times have none at all.
	Timed bool
	// Threads and States say that samples have their threads, and what these did.
	Threads, States bool
	// Weights are what the samples can be counted in; none where that is not known. Meta.Weight is the usual one of
	// them.
	Weights []profile.Weight
	// Asked says that the user has named Meta.Weight (Options.Weight): nothing else may be counted.
	Asked bool
	// JVMStart is when the JVM began, zero where the recording does not say it.
	JVMStart time.Time
	// Event is what a sample is, of recordings that hold several kinds: "jdk.ExecutionSample".
	Event string
	// Summary is the account of the run, nil where the file has none.
	Summary *profile.Summary
	// Notes say what a user should know although the file is read: that its end is missing. They may hold text of the
	// file.
	Notes []string
}

// JVM tells starts of JVMs apart: two recordings with the same text are of one. Empty if that is not known.
func (i *Info) JVM() string {
	if i.JVMStart.IsZero() || i.Meta.PID == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d %d", i.Meta.Host, i.Meta.PID, i.JVMStart.UnixMilli())
}

// Counts reports whether the samples have numbers. Where they do not, a sample is a stack with its time or bytes, and
// stands for any number of looks.
func (i *Info) Counts() bool {
	return len(i.Weights) == 0 || slices.Contains(i.Weights, profile.Samples)
}

// CountsOnly reports whether samples only have a number: those of an event without an amount.
func (i *Info) CountsOnly() bool {
	return i.Meta.Mode != profile.ModeCPU && i.Meta.Mode != "" && len(i.Weights) == 1 && i.Weights[0] == profile.Samples
}

// Mark is something that is known of a moment, or of a span of time: a collection, a safepoint, a pause.
type Mark struct {
	Kind string // a stable word: "gc", "safepoint", "pause"
	Text string // may hold text of the target
	At   profile.Instant
	For  time.Duration // 0 for a moment
}

// Marked is a Source that has marks.
type Marked interface {
	Source
	// Marks calls visit for each, in the order of the file.
	Marks(visit func(Mark) error) error
}
