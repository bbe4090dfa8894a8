package recording

import (
	"fmt"
	"slices"
	"time"

	"goprof/profile"
)

// Source is a recording that is read sample by sample.
type Source interface {
	// Info returns what is known about the recording before its samples are read.
	Info() Info
	// Each calls visit for every sample, in the file's order, which need not be by time. A sample and its stack are valid
	// only during the call. Funcs and names stay valid. A second call of Each starts from the beginning. The first error
	// of visit ends Each.
	Each(visit func(*profile.Sample) error) error
}

// Stacks is which stacks the visited samples have.
type Stacks uint8

const (
	AllStacks Stacks = iota
	// LaterStacks: a sample may have only a StackNumber. Sample.Read reads its stack. If Read fails, visit returns that
	// error unchanged. Most stacks occur repeatedly, so a receiver that remembers the numbers of stacks need not read a
	// stack twice.
	LaterStacks
	NoStacks // visit does not look at stacks: they may be missing
)

// Lazy is a Source that can read the stacks of samples later, or not at all.
type Lazy interface {
	Source
	// Visit is Each, with the stacks that the caller needs.
	Visit(stacks Stacks, visit func(*profile.Sample) error) error
}

// Visit visits the samples of a source. If the source is not Lazy, all samples have their stacks.
func Visit(src Source, stacks Stacks, visit func(*profile.Sample) error) error {
	if lazy, ok := src.(Lazy); ok {
		return lazy.Visit(stacks, visit)
	}
	return src.Each(visit)
}

// readFirst returns a visit function that gets samples with stacks, for a source whose samples may not have them yet.
func readFirst(visit func(*profile.Sample) error) func(*profile.Sample) error {
	return func(s *profile.Sample) error {
		if err := s.Read(); err != nil {
			return err
		}
		return visit(s)
	}
}

// Formats of files, recognised by content.
const (
	JFR       = "jfr"
	Pprof     = "pprof"
	Collapsed = "collapsed"
)

type Info struct {
	Name   string // of the file, without folders
	Format string // JFR, Pprof, Collapsed
	Meta   profile.Meta
	// Timed: all samples have times. Otherwise no sample has one.
	Timed bool
	// Threads: samples have their threads. States: they have the states of these threads.
	Threads, States bool
	// Weights are the possible weights of samples. They are empty if that is not known. Meta.Weight is the default.
	Weights []profile.Weight
	// Asked: the user has chosen Meta.Weight (Options.Weight), so samples may have no other weight.
	Asked bool
	// JVMStart is when the JVM started. It is zero if the recording does not have it.
	JVMStart time.Time
	// Event is the event of the samples, if the recording has samples of several events: "jdk.ExecutionSample".
	Event string
	// Kind is the event of the samples, if all are of one event. It has no Name for CPU time and for wall-clock modes.
	Kind profile.EventKind
	// Parts are the kinds of samples of a recording with several kinds. The first part is the default. All: the samples
	// are of all parts, and not of one. The method Part returns a sample's part.
	Parts []Part
	All   bool
	// Others are events with stacks that are in no part, with their numbers.
	Others []Part
	// Earlier are a thread's earlier names, before the one in its samples, the oldest first.
	Earlier map[profile.Thread][]string
	// Summary is the account of the recording. It is nil if the file has none.
	Summary *profile.Summary
	// Notes say what a user should know about a file that can still be read, such as a missing end. They may contain text
	// from the file.
	Notes []string
}

// JVM identifies a start of a JVM: two recordings with the same text are of one start. It is empty if that is not
// known.
func (i *Info) JVM() string {
	if i.JVMStart.IsZero() || i.Meta.PID == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d %d", i.Meta.Host, i.Meta.PID, i.JVMStart.UnixMilli())
}

// Counts reports whether the number of samples is known. Otherwise, a sample is a stack with its time or bytes, and
// stands for any number of looks.
func (i *Info) Counts() bool {
	return len(i.Weights) == 0 || slices.Contains(i.Weights, profile.Samples)
}

// CountsOnly reports whether samples only have a count, as for an event without an amount.
func (i *Info) CountsOnly() bool {
	return i.Meta.Mode != profile.ModeCPU && i.Meta.Mode != "" && len(i.Weights) == 1 && i.Weights[0] == profile.Samples
}

// Mark is a fact about a time or a span of time: a collection, a safepoint, a pause.
type Mark struct {
	Kind string // a stable word: "gc", "safepoint", "pause"
	Text string // may hold text of the target
	At   profile.Instant
	For  time.Duration // 0 for a single time
}

// Marked is a Source that has marks.
type Marked interface {
	Source
	// Marks calls visit for each, in the order of the file.
	Marks(visit func(Mark) error) error
}

// Marks visits the marks of a source, if it has any.
func Marks(src Source, visit func(Mark) error) error {
	if m, ok := src.(Marked); ok {
		return m.Marks(visit)
	}
	return nil
}
