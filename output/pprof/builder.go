package pprof

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"

	pb "github.com/google/pprof/profile"

	"goprof/profile"
)

// maxSamples bounds how many different stacks with labels a profile has. Each takes about 1 KB.
const maxSamples = 1 << 19

// Builder sums samples up. It is not safe for concurrent use.
type Builder struct {
	// Overflow is how many samples had no room, and are under a stack that says so.
	Overflow int64
	// Second is what Sample.Time holds; Samples is what the recording's mode says.
	Second profile.Weight
	// NoCount says that how many samples there are is not known: they have only their second value.
	NoCount bool

	out       *pb.Profile
	functions map[profile.Func]*pb.Function
	byPtr     map[*profile.Func]*pb.Function
	locations map[string]*pb.Location
	samples   map[string]*pb.Sample
	mappings  map[string]*pb.Mapping
	full      *pb.Sample // for all that have no room
	room      int
	line      []byte // of a location, then of a sample: what it is known by
	key       []byte
	stack     []*pb.Location

	// What was added lately, found without a look at its names. byPtr keeps the Funcs.
	seen   map[seenKey]*pb.Sample
	prints profile.Fingerprinter
}

// seenKey is a stack with its labels.
type seenKey struct {
	stack  profile.Fingerprint
	labels Labels
}

// NewBuilder makes an empty profile.
func NewBuilder() *Builder {
	return &Builder{
		out:       &pb.Profile{},
		functions: make(map[profile.Func]*pb.Function),
		byPtr:     make(map[*profile.Func]*pb.Function),
		locations: make(map[string]*pb.Location),
		samples:   make(map[string]*pb.Sample),
		mappings:  make(map[string]*pb.Mapping),
		room:      maxSamples,
		seen:      make(map[seenKey]*pb.Sample),
		prints:    profile.NewFingerprinter(true),
	}
}

// AddMapping tells an image. Native frames of images that are not told get a mapping without addresses.
func (b *Builder) AddMapping(m Mapping) {
	if b.mappings[m.File] != nil {
		return
	}
	p := b.mapping(m.File)
	p.BuildID, p.Start, p.Limit, p.Offset = m.BuildID, m.Start, m.Limit, m.Offset
}

func (b *Builder) mapping(file string) *pb.Mapping {
	m := b.mappings[file]
	if m == nil {
		// All Has: a viewer need not look for symbols.
		m = &pb.Mapping{ID: uint64(len(b.out.Mapping)) + 1, File: file, HasFunctions: true, HasFilenames: true,
			HasLineNumbers: true, HasInlineFrames: true}
		b.out.Mapping = append(b.out.Mapping, m)
		b.mappings[file] = m
	}
	return m
}

// Add counts a sample. It keeps the Funcs of its stack, nothing else.
func (b *Builder) Add(s *Sample) {
	key := seenKey{b.prints.Of(s.Stack), s.Labels}
	sum := b.seen[key]
	if sum == nil {
		if len(b.byPtr)+maxNew > maxSamples || len(b.seen) >= maxSamples {
			clear(b.byPtr)
			clear(b.seen)
		}
		sum = b.find(s)
		b.seen[key] = sum
	} else if sum == b.full {
		b.Overflow += s.Count
	}
	sum.Value[0] += s.Count
	sum.Value[1] += int64(s.Time)
}

// maxNew is more than one stack's functions.
const maxNew = 1 << 17

// find is the sum of a stack with its labels.
func (b *Builder) find(s *Sample) *pb.Sample {
	b.stack = b.stack[:0]
	if !b.frames(s.Stack) {
		b.Overflow += s.Count
		return b.full
	}
	b.key = b.key[:0]
	for _, l := range b.stack {
		b.key = binary.AppendUvarint(b.key, l.ID)
	}
	b.key = fmt.Appendf(b.key, "\x00%s\x00%d\x00%s\x00%s", s.Labels.Thread, s.Labels.TID, s.Labels.Virtual, s.Labels.State)
	sum := b.samples[string(b.key)]
	if sum == nil {
		sum = b.sample(s)
	}
	return sum
}

var fullStack = &profile.Stack{Frames: []profile.Frame{
	{Func: &profile.Func{Name: "[profile full]"}, Kind: profile.Gap, BCI: -1},
}}

// sample makes the sum of a stack with its labels, or finds the one for all that have no room.
func (b *Builder) sample(s *Sample) *pb.Sample {
	labels := s.Labels
	if len(b.samples) >= b.room {
		b.Overflow += s.Count
		b.key, labels = append(b.key[:0], "full"...), Labels{}
		if b.full != nil {
			return b.full
		}
		b.stack = b.stack[:0]
		b.frames(fullStack)
	}
	sum := &pb.Sample{Location: append([]*pb.Location(nil), b.stack...), Value: make([]int64, 2)}
	sum.Label = make(map[string][]string)
	texts := map[string]string{labelThread: labels.Thread, labelVirtual: labels.Virtual, labelState: labels.State}
	for name, value := range texts {
		if value != "" {
			sum.Label[name] = []string{value}
		}
	}
	if labels.TID != 0 {
		sum.NumLabel = map[string][]int64{labelTID: {int64(labels.TID)}}
	}
	if len(b.samples) >= b.room {
		b.full = sum
	}
	b.samples[string(b.key)] = sum
	b.out.Sample = append(b.out.Sample, sum)
	return sum
}

// frames makes locations of a stack's frames: a physical frame with all that is inlined into it, from the leaf on. Of
// inlined methods whose frame is missing, one location is made, too. It returns false if there is no room for one.
func (b *Builder) frames(s *profile.Stack) bool {
	if s == nil {
		return true
	}
	for from := 0; from < len(s.Frames); {
		to := from
		for to < len(s.Frames)-1 && s.Frames[to].Kind == profile.Inlined {
			to++
		}
		l := b.location(s.Frames[from : to+1])
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

// isFull tells that no new sample has room, so that nothing is made for one.
func (b *Builder) isFull() bool { return b.full != nil }

// truncatedBy is the frame that stands where a root is missing, as collapsed files have it.
func truncatedBy(why profile.Reason) string { return "[truncated: " + why.String() + "]" }

// location is that of a physical frame, nil if it is new and there is no room.
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
	address := uint64(0)
	if !physical.Kind.Java() && physical.Func.Module != "" {
		if b.isFull() && b.mappings[physical.Func.Module] == nil {
			return nil
		}
		if m := b.mapping(physical.Func.Module); physical.PC >= m.Start && physical.PC < m.Limit {
			address = physical.PC
		}
	}
	b.line = binary.AppendUvarint(b.line, address)
	l := b.locations[string(b.line)]
	if l != nil || b.isFull() {
		return l
	}
	l = &pb.Location{ID: uint64(len(b.out.Location)) + 1, Address: address}
	if !physical.Kind.Java() && physical.Func.Module != "" {
		l.Mapping = b.mapping(physical.Func.Module)
	}
	for i := range frames {
		l.Line = append(l.Line, pb.Line{Function: b.function(frames[i].Func), Line: int64(max(frames[i].Line, 0))})
	}
	b.out.Location = append(b.out.Location, l)
	b.locations[string(b.line)] = l
	return l
}

// function is the one of a name, nil if it is new and there is no room.
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

// secondValue is what samples have beside their count: Sample.Time holds it.
func (b *Builder) secondValue(m *profile.Meta) (what, unit string) {
	switch w := cmp.Or(b.Second, m.Weight); {
	case w == profile.Bytes:
		return "alloc_space", "bytes"
	case b.Second == profile.CPUTime:
		return "cpu", "nanoseconds"
	case w == profile.WallTime || m.Mode != "" && m.Mode != profile.ModeCPU:
		return "wall", "nanoseconds"
	}
	return "cpu", "nanoseconds"
}

// Write writes the profile, compressed. The builder may go on.
func (b *Builder) Write(to io.Writer, meta profile.Meta) error {
	p := b.out
	what, unit := b.secondValue(&meta)
	p.SampleType = []*pb.ValueType{{Type: "samples", Unit: "count"}, {Type: what, Unit: unit}}
	p.DefaultSampleType = what
	if meta.Weight == profile.Samples {
		p.DefaultSampleType = "samples"
	}
	p.PeriodType = &pb.ValueType{Type: what, Unit: "nanoseconds"}
	p.Period = int64(meta.Interval)
	p.DurationNanos = int64(meta.Duration)
	if !meta.Start.IsZero() {
		p.TimeNanos = meta.Start.UnixNano()
	}
	p.Comments = comments(&meta)
	if b.NoCount {
		p = withoutCount(p)
	}
	return p.Write(to)
}

// withoutCount is a profile without its first value.
func withoutCount(p *pb.Profile) *pb.Profile {
	out := &pb.Profile{SampleType: p.SampleType[1:], DefaultSampleType: p.SampleType[1].Type,
		Sample: make([]*pb.Sample, len(p.Sample)), Mapping: p.Mapping, Location: p.Location, Function: p.Function,
		Comments: p.Comments, TimeNanos: p.TimeNanos, DurationNanos: p.DurationNanos,
		PeriodType: p.PeriodType, Period: p.Period}
	for i, s := range p.Sample {
		one := *s
		one.Value = s.Value[1:]
		out.Sample[i] = &one
	}
	return out
}
