package pprof

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"unsafe"

	pb "github.com/google/pprof/profile"

	"goprof/profile"
	"goprof/profile/batch"
)

// maxSamples bounds the different stacks with labels in a profile. Each takes about 1 KB.
const maxSamples = 1 << 19

// Options set the values of samples.
type Options struct {
	// Weight is the recording's weight. The second value of samples is bytes or a time.
	Weight profile.Weight
	// Asked: the user has chosen Weight, such as CPU time in a recording of wall-clock time.
	Asked bool
	// States: samples have the states of threads.
	States bool
	// NoCount: the number of samples is not known, so they have only their second value.
	NoCount bool
	// CountOnly: samples have no second value.
	CountOnly bool
	// What and Unit name what the samples of an event count, in place of the usual names. With CountOnly they name the
	// count itself.
	What, Unit string
	// Parts are the kinds of samples in a recording with several parts. Part returns the index of a sample's kind: each
	// kind has its own values. Without Parts all samples are of one kind.
	Parts []profile.EventKind
	Part  func(*profile.Sample) int
}

// Builder sums up samples. It is not safe for concurrent use.
type Builder struct {
	// Overflow is the number of samples without room. Their stack says so.
	Overflow int64

	o         Options
	wall      bool // some sample was of a wall-clock mode
	out       *pb.Profile
	functions map[profile.Func]*pb.Function
	byPtr     map[*profile.Func]*pb.Function
	locations map[string]*pb.Location
	recent    []recentFrame
	asked     int // number of frames looked up there
	samples   map[string]*pb.Sample
	mappings  map[image]*pb.Mapping
	full      *pb.Sample // for all samples without room
	room      int
	line      []byte // the key of a location, and later of a sample
	key       []byte
	stack     []*pb.Location

	// These find what was added recently without comparing names: by a stack's number, or else by its fingerprint. byPtr
	// keeps the Funcs.
	numbered profile.ByStack[*pb.Sample]
	seen     map[seenKey]*pb.Sample
	contexts map[context]uint64
	lately   profile.ByThread[recentContext]
	met      uint64 // number of contexts
	prints   profile.Fingerprinter
}

type image struct{ file, build string }

// context is what all samples of a sum have in common besides their stack.
type context struct {
	thread profile.Thread
	state  uint8 // the state plus one; 0 if it is not known
	link   profile.Link
}

// recentContext is the last context of a thread, with its number.
type recentContext struct {
	state  uint8
	link   profile.Link
	number uint64
}

type seenKey struct {
	stack   profile.Fingerprint
	context uint64
}

// recentFrame is an entry of the cache in front of locations, for frames without inlined ones. at is nil if it is
// empty.
type recentFrame struct {
	physical
	at *pb.Location
}

// physical is a frame without inlined ones.
type physical struct {
	fn   *profile.Func
	line int32
	java bool
}

// The sizes of the cache: few until manyFrames frames were looked up, because most batches of an agent are small.
const fewRecent, mostRecent, manyFrames = 1 << 7, 1 << 11, 1 << 12

// hash returns where in the cache the frame may be. A Func is identified by its address.
func (p *physical) hash() uint64 {
	h := uint64(uintptr(unsafe.Pointer(p.fn)))>>4 ^ uint64(uint32(p.line))<<32
	return h * 0x9e3779b97f4a7c15 >> 32
}

// NewBuilder returns an empty profile.
func NewBuilder(o Options) *Builder {
	return &Builder{
		o:         o,
		out:       &pb.Profile{},
		functions: make(map[profile.Func]*pb.Function),
		byPtr:     make(map[*profile.Func]*pb.Function),
		locations: make(map[string]*pb.Location),
		samples:   make(map[string]*pb.Sample),
		mappings:  make(map[image]*pb.Mapping),
		room:      maxSamples,
		seen:      make(map[seenKey]*pb.Sample),
		contexts:  make(map[context]uint64),
		recent:    make([]recentFrame, fewRecent),
		prints:    profile.NewFingerprinter(),
	}
}

// mapping returns the Mapping of an image. It has no addresses, and neither have the locations of its code: names and
// lines are known.
func (b *Builder) mapping(of image) *pb.Mapping {
	m := b.mappings[of]
	if m == nil {
		// All Has fields are true, so that a viewer does not look for symbols.
		m = &pb.Mapping{ID: uint64(len(b.out.Mapping)) + 1, File: of.file, BuildID: of.build, HasFunctions: true,
			HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
		b.out.Mapping = append(b.out.Mapping, m)
		b.mappings[of] = m
	}
	return m
}

// Add counts a sample. It keeps the Funcs of the stack and the names, and nothing else. An error comes from reading the
// stack of a sample that does not have it yet.
func (b *Builder) Add(s *profile.Sample) error {
	b.wall = b.wall || s.Wall
	sum, err := b.sum(s)
	if err != nil {
		return err
	}
	if sum == b.full {
		b.Overflow += s.Looks()
	}
	at := 0
	if b.o.Part != nil {
		at = 2 * b.o.Part(s)
	}
	sum.Value[at] += s.Looks()
	sum.Value[at+1] += b.second(s)
	return nil
}

func (b *Builder) second(s *profile.Sample) int64 {
	weight := b.o.Weight
	if b.o.Part != nil {
		weight = b.o.Parts[b.o.Part(s)].Unit
	}
	switch {
	case weight == profile.Bytes:
		return s.Bytes
	case s.Wall && !(b.o.Asked && b.o.Weight == profile.CPUTime):
		return int64(s.Span)
	}
	return int64(s.CPU)
}

func (b *Builder) sum(s *profile.Sample) (*pb.Sample, error) {
	if len(b.byPtr)+maxNew > maxSamples || max(len(b.seen), len(b.contexts)) >= maxSamples {
		clear(b.byPtr)
		clear(b.seen)
		clear(b.contexts)
	}
	in := b.context(s)
	if sum, known := b.numbered.Get(s.StackNumber, in); known {
		return sum, nil
	}
	if err := s.Read(); err != nil {
		return nil, err
	}
	if s.StackNumber != 0 {
		sum := b.find(s)
		b.numbered.Put(s.StackNumber, in, sum)
		return sum, nil
	}
	key := seenKey{b.prints.Of(s.Stack), in}
	sum := b.seen[key]
	if sum == nil {
		sum = b.find(s)
		b.seen[key] = sum
	}
	return sum, nil
}

// context returns the number of a sample's context, which is unique.
func (b *Builder) context(s *profile.Sample) uint64 {
	in := context{thread: s.Thread, link: s.Link}
	if b.o.States && !s.NoState {
		in.state = uint8(s.State) + 1
	}
	if recent, ok := b.lately.Get(&s.Thread); ok && recent.state == in.state && recent.link == in.link {
		return recent.number
	}
	n, known := b.contexts[in]
	if !known {
		b.met++
		n = b.met
		b.contexts[in] = n
	}
	b.lately.Put(&s.Thread, recentContext{in.state, in.link, n})
	return n
}

// maxNew is more than one stack's functions.
const maxNew = 1 << 17

// find returns the sum of a stack with its labels.
func (b *Builder) find(s *profile.Sample) *pb.Sample {
	b.stack = b.stack[:0]
	if !b.frames(s.Stack) {
		return b.full
	}
	l := b.labels(s)
	b.key = b.key[:0]
	for _, at := range b.stack {
		b.key = binary.AppendUvarint(b.key, at.ID)
	}
	b.key = fmt.Appendf(b.key, "\x00%s\x00%d\x00%s\x00%s\x00", l.thread, l.tid, l.virtual, l.state)
	b.key = append(append(b.key, l.link.Trace[:]...), l.link.Span[:]...)
	sum := b.samples[string(b.key)]
	if sum == nil {
		sum = b.sample(&l)
	}
	return sum
}

var fullStack = &profile.Stack{Frames: []profile.Frame{
	{Func: &profile.Func{Name: "[profile full]"}, Kind: profile.Gap, BCI: -1},
}}

// sample makes the sum of a stack with its labels. If there is no room, it returns the sum of all samples without room.
func (b *Builder) sample(l *labels) *pb.Sample {
	isFull := len(b.samples) >= b.room
	if isFull {
		if b.full != nil {
			return b.full
		}
		b.key, l = append(b.key[:0], "full"...), &labels{}
		b.stack = b.stack[:0]
		b.frames(fullStack)
	}
	sum := &pb.Sample{Location: slices.Clone(b.stack), Value: make([]int64, 2*max(len(b.o.Parts), 1))}
	sum.Label, sum.NumLabel = l.written()
	if isFull {
		b.full = sum
	}
	b.samples[string(b.key)] = sum
	b.out.Sample = append(b.out.Sample, sum)
	return sum
}

// frames makes locations from a stack's frames, leaf first: one for each physical frame together with the methods
// inlined into it. Inlined methods without their physical frame get a location, too. It returns false if there is no
// room for a location.
func (b *Builder) frames(s *profile.Stack) bool {
	if s == nil {
		return true
	}
	for from := 0; from < len(s.Frames); {
		to := from
		for to < len(s.Frames)-1 && s.Frames[to].Kind == profile.Inlined {
			to++
		}
		l := b.found(s.Frames[from : to+1])
		if l == nil {
			return false
		}
		b.stack = append(b.stack, l)
		from = to + 1
	}
	if s.Truncated != profile.Whole {
		why := profile.Frame{Func: &profile.Func{Name: truncatedBy(s.Truncated)}, Kind: profile.Gap}
		l := b.location([]profile.Frame{why})
		if l == nil {
			return false
		}
		b.stack = append(b.stack, l)
	}
	return true
}

// isFull reports whether there is no room for new samples. Then the caller need not make labels.
func (b *Builder) isFull() bool { return b.full != nil }

// truncatedBy returns the frame in place of a missing root, as in collapsed files.
func truncatedBy(why profile.Reason) string { return "[truncated: " + why.String() + "]" }

// found is location with a cache: stacks have millions of frames.
func (b *Builder) found(frames []profile.Frame) *pb.Location {
	if len(frames) > 1 {
		return b.location(frames)
	}
	key := physical{frames[0].Func, frames[0].Line, frames[0].Kind.Java()}
	if b.asked++; b.asked == manyFrames {
		b.recent = make([]recentFrame, mostRecent)
	}
	recent := &b.recent[key.hash()%uint64(len(b.recent))]
	if recent.at == nil || recent.physical != key {
		*recent = recentFrame{key, b.location(frames)}
	}
	return recent.at
}

// location returns the Location of a physical frame. It is nil if it is new and there is no room.
func (b *Builder) location(frames []profile.Frame) *pb.Location {
	physical := &frames[len(frames)-1]
	b.line = b.line[:0]
	for i := range frames {
		fn := b.function(frames[i].Func)
		if fn == nil {
			return nil
		}
		b.line = binary.AppendUvarint(b.line, fn.ID)
		b.line = binary.AppendVarint(b.line, int64(frames[i].Line))
	}
	in := image{physical.Func.Module, physical.Func.Build}
	native := !physical.Kind.Java() && in.file != ""
	if native {
		if b.isFull() && b.mappings[in] == nil {
			return nil
		}
		b.line = binary.AppendUvarint(b.line, b.mapping(in).ID)
	}
	l := b.locations[string(b.line)]
	if l != nil || b.isFull() {
		return l
	}
	l = &pb.Location{ID: uint64(len(b.out.Location)) + 1}
	if native {
		l.Mapping = b.mapping(in)
	}
	for i := range frames {
		l.Line = append(l.Line, pb.Line{Function: b.function(frames[i].Func), Line: int64(max(frames[i].Line, 0))})
	}
	b.out.Location = append(b.out.Location, l)
	b.locations[string(b.line)] = l
	return l
}

// function returns the Function of a name. It is nil if it is new and there is no room.
func (b *Builder) function(fn *profile.Func) *pb.Function {
	if f := b.byPtr[fn]; f != nil {
		return f
	}
	f := b.functions[*fn]
	if f == nil && b.isFull() {
		return nil
	}
	if f == nil {
		f = &pb.Function{ID: uint64(len(b.out.Function)) + 1, Name: fn.Name, SystemName: fn.Name, Filename: fn.File}
		b.out.Function = append(b.out.Function, f)
		b.functions[*fn] = f
	}
	b.byPtr[fn] = f
	return f
}

// secondValue returns the type and unit of the samples' second value.
func (b *Builder) secondValue(m *profile.Meta) (what, unit string) {
	switch {
	case b.o.What != "" && !b.o.CountOnly:
		return b.o.What, b.o.Unit
	case b.o.Weight == profile.Bytes:
		return "alloc_space", "bytes"
	case b.o.Weight == profile.CPUTime && (b.o.Asked || !b.wall):
		return "cpu", "nanoseconds"
	case b.wall || b.o.Weight == profile.WallTime || m.Mode != "" && m.Mode != profile.ModeCPU:
		return "wall", "nanoseconds"
	}
	return "cpu", "nanoseconds"
}

// Write writes the compressed profile. The builder can still be used.
func (b *Builder) Write(to io.Writer, meta profile.Meta) error {
	p := b.out
	p.SampleType = b.types(&meta)
	count, main := p.SampleType[0], p.SampleType[1]
	p.DefaultSampleType = main.Type
	if meta.Weight == profile.Samples {
		p.DefaultSampleType = count.Type
	}
	p.PeriodType = &pb.ValueType{Type: main.Type, Unit: "nanoseconds"}
	if b.o.Weight == profile.Bytes { // as in Go's heap profiles
		p.PeriodType = &pb.ValueType{Type: "space", Unit: "bytes"}
	}
	p.Period = int64(meta.Interval)
	p.DurationNanos = int64(meta.Duration)
	if !meta.Start.IsZero() {
		p.TimeNanos = meta.Start.UnixNano()
	}
	p.Comments = comments(&meta)
	if keep := b.keeps(); len(keep) < len(p.SampleType) {
		p = withOnly(p, keep)
		if b.o.CountOnly {
			p.PeriodType = p.SampleType[0]
		}
	}
	return write(to, p)
}

func (b *Builder) types(meta *profile.Meta) (types []*pb.ValueType) {
	what, unit := b.secondValue(meta)
	count := "samples"
	if b.o.CountOnly && b.o.What != "" {
		count = b.o.What
	}
	if len(b.o.Parts) == 0 {
		return []*pb.ValueType{{Type: count, Unit: "count"}, {Type: what, Unit: unit}}
	}
	for _, kind := range b.o.Parts {
		count, what, unit := "samples", "cpu", "nanoseconds"
		if kind.Name != "" {
			count = batch.SamplesOf(kind)
			what, unit = batch.EventValue(kind)
		}
		if isCounted(&kind) {
			count = what
		}
		types = append(types, &pb.ValueType{Type: count, Unit: "count"}, &pb.ValueType{Type: what, Unit: unit})
	}
	return types
}

// isCounted reports whether samples of an event have only a count.
func isCounted(kind *profile.EventKind) bool { return kind.Name != "" && kind.Unit == profile.Samples }

func (b *Builder) keeps() (keep []int) {
	if len(b.o.Parts) == 0 {
		if !b.o.NoCount {
			keep = append(keep, 0)
		}
		if !b.o.CountOnly {
			keep = append(keep, 1)
		}
	}
	for i := range b.o.Parts {
		if keep = append(keep, 2*i); !isCounted(&b.o.Parts[i]) {
			keep = append(keep, 2*i+1)
		}
	}
	return keep
}

// withOnly returns a profile with only some of its values.
func withOnly(p *pb.Profile, keep []int) *pb.Profile {
	out := &pb.Profile{Sample: make([]*pb.Sample, len(p.Sample)), Mapping: p.Mapping, Location: p.Location,
		Function: p.Function, Comments: p.Comments, TimeNanos: p.TimeNanos, DurationNanos: p.DurationNanos,
		PeriodType: p.PeriodType, Period: p.Period}
	for _, i := range keep {
		out.SampleType = append(out.SampleType, p.SampleType[i])
		if p.SampleType[i].Type == p.DefaultSampleType {
			out.DefaultSampleType = p.DefaultSampleType
		}
	}
	out.DefaultSampleType = cmp.Or(out.DefaultSampleType, out.SampleType[0].Type)
	for i, s := range p.Sample {
		one := *s
		one.Value = nil
		for _, k := range keep {
			one.Value = append(one.Value, s.Value[k])
		}
		out.Sample[i] = &one
	}
	return out
}
