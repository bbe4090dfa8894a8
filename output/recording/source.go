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
	// stack are valid only during the call. Funcs and names are valid for ever. A second call of Each starts from the
	// beginning. The first error of visit ends Each.
	Each(visit func(*profile.Sample) error) error
}

// Stacks says which stacks the visited samples have.
type Stacks uint8

const (
	AllStacks Stacks = iota
	// LaterStacks: a sample may have only a StackNumber. Sample.Read reads its stack; visit returns an error of Read as it
	// is. Most stacks occur again, and a receiver that remembers the number of a stack need not read the stack again.
	LaterStacks
	NoStacks // visit does not look at stacks: there may be none
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

// readFirst returns a visit of samples with stacks, for a source whose samples may not have them yet.
func readFirst(visit func(*profile.Sample) error) func(*profile.Sample) error {
	return func(s *profile.Sample) error {
		if err := s.Read(); err != nil {
			return err
		}
		return visit(s)
	}
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
	// Timed says that samples have their times. In a file without times, no sample has one.
	Timed bool
	// Threads and States say that samples have their threads, and what these did.
	Threads, States bool
	// Weights are what the samples can be counted in. They are empty if that is not known. Meta.Weight is the usual one
	// of them.
	Weights []profile.Weight
	// Asked says that the user has named Meta.Weight (Options.Weight): nothing else may be counted.
	Asked bool
	// JVMStart is when the JVM began. It is zero if the recording does not tell.
	JVMStart time.Time
	// Event is the event that samples are of, in a recording that holds several: "jdk.ExecutionSample".
	Event string
	// Kind is the event of the samples, if all are of one. It has no Name for CPU time and for wall-clock modes.
	Kind profile.EventKind
	// Parts are the sorts of samples of a recording that has several; the first one is the usual one. All says that the
	// samples are of all of them, and not of one: Part says of which.
	Parts []Part
	All   bool
	// Others are events with stacks that are in no part, and how many there are.
	Others []Part
	// Earlier are the names that a thread had before the one that its samples have, the oldest first.
	Earlier map[profile.Thread][]string
	// Summary is the account of the run. It is nil if the file has none.
	Summary *profile.Summary
	// Notes say what a user should know although the file can be read: that its end is missing. They may hold text of
	// the file.
	Notes []string
}

// JVM distinguishes starts of JVMs: two recordings with the same text are of one start. It is empty if that is not
// known.
func (i *Info) JVM() string {
	if i.JVMStart.IsZero() || i.Meta.PID == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d %d", i.Meta.Host, i.Meta.PID, i.JVMStart.UnixMilli())
}

// Counts reports whether the number of samples is known. If not, a sample is a stack with its time or bytes, and
// stands for any number of looks.
func (i *Info) Counts() bool {
	return len(i.Weights) == 0 || slices.Contains(i.Weights, profile.Samples)
}

// CountsOnly reports whether samples have nothing but a number: samples of an event without an amount do.
func (i *Info) CountsOnly() bool {
	return i.Meta.Mode != profile.ModeCPU && i.Meta.Mode != "" && len(i.Weights) == 1 && i.Weights[0] == profile.Samples
}

// Mark is a fact about a moment, or a span of time: a collection, a safepoint, a pause.
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

// Marks visits the marks of a source, if it has any.
func Marks(src Source, visit func(Mark) error) error {
	if m, ok := src.(Marked); ok {
		return m.Marks(visit)
	}
	return nil
}
