package recording

import (
	"fmt"
	"slices"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

type SumOptions struct {
	Threads bool // stacks are under their threads
	Lines   bool // a method's lines are separate: pkg.Class.method:12
	States  bool // a sample of wall-clock time gets a leaf with its state if its stack has none
}

// Bounds of a sum. No reader could use a larger page or table.
const (
	maxNodes = 2 << 20
	maxTotal = 1 << 53 // JavaScript's numbers are exact up to here
)

// Sum makes one profile of all samples, counted in the recording's Meta.Weight. Its memory is bounded: samples without
// room are counted in Profile.Overflow.
func Sum(src Source, o SumOptions) (*profile.Profile, error) {
	i := src.Info()
	if o.Threads && !i.Threads {
		return nil, &Lacks{Problem: "it does not say which threads its stacks are of", Remedy: "goprof record --threads"}
	}
	s := summer{p: profile.NewSize(maxNodes), o: o, weight: i.Meta.Weight, roots: make(map[profile.Thread]root),
		leaves: make(map[profile.State]*profile.Func), indexed: i.Format == JFR}
	s.p.Meta = i.Meta
	if err := Visit(src, LaterStacks, s.add); err != nil {
		return nil, err
	}
	switch {
	case s.p.Counts.Samples() == 0:
		return nil, Empty(src)
	case s.total == 0:
		return nil, &Lacks{Problem: fmt.Sprintf("it does not say %s", weightWords[s.weight]), Remedy: "--weight samples"}
	}
	// In a collapsed file, these are stacks.
	if a := i.Summary; a != nil && i.Format == JFR && s.weight == profile.CPUTime {
		if d := a.Times.NotSampled; d > 0 {
			s.p.SetTime(profile.NotSampled, d)
		}
		if d := a.Times.Exited; d > 0 {
			s.p.SetTime(profile.ExitedThreads, d)
		}
	}
	return s.p, nil
}

// TreeOf is Sum as a tree of labels. A collapsed file without filters is read as it is.
func TreeOf(src Source, o SumOptions) (*output.Tree, error) {
	if f, ok := src.(*File); ok && f.Tree() != nil && (!o.Threads || f.Info().Threads) {
		return f.Tree(), nil
	}
	p, err := Sum(src, o)
	if err != nil {
		return nil, err
	}
	return output.TreeOf(p), nil
}

type summer struct {
	p      *profile.Profile
	o      SumOptions
	weight profile.Weight
	total  int64
	roots  map[profile.Thread]root
	rooted uint64 // number of roots so far
	leaves map[profile.State]*profile.Func
	stack  profile.Stack

	// places are the places of added stacks, by number, root and state: the frames of such a stack need not be read again.
	places profile.ByStack[profile.Place]
	lines  map[methodLine]*profile.Func
	// indexed: frames have bytecode indexes. A frame without one may be anywhere in its method, because its line is only
	// the method's first.
	indexed bool
}

type methodLine struct {
	of   *profile.Func
	line int32
}

// maxLines bounds the kept Funcs of lines. Further ones are made again, and are equal by name.
const maxLines = 1 << 20

// root is the outermost frames of a thread's stacks. Equal numbers stand for the same frames.
type root struct {
	label  string
	number uint64
}

// add adds a sample to the profile. It returns an error if a sum would overflow.
func (s *summer) add(of *profile.Sample) error {
	n := Weigh(of, s.weight)
	if n < 0 || n > maxTotal-s.total {
		return &output.BadFile{Problem: tooLarge, TooMuch: true}
	}
	s.total += n
	spent := time.Duration(0)
	if s.weight != profile.Samples {
		spent = time.Duration(n)
	}
	under := root{}
	if s.o.Threads && of.Thread != (profile.Thread{}) { // "[not sampled]" belongs to no thread
		under = s.root(&of.Thread)
	}
	context := under.number<<8 | of.StateKey()
	if at, known := s.places.Get(of.StackNumber, context); known {
		s.p.Again(at, of.Looks(), spent)
		return nil
	}
	if err := of.Read(); err != nil {
		return err
	}
	stack := of.Stack
	if s.o.Lines {
		stack = s.withLines(stack)
	}
	if s.o.States && of.LacksLeaf() {
		stack = s.withState(of, stack)
	}
	s.places.Put(of.StackNumber, context, s.p.AddAt(under.label, stack, of.Looks(), spent))
	return nil
}

func Weigh(s *profile.Sample, w profile.Weight) int64 {
	return w.Of(s.Looks(), s.CPU, s.Span, s.Bytes)
}

func (s *summer) root(t *profile.Thread) root {
	return profile.Cached(s.roots, maxVerdicts, *t, func() root {
		s.rooted++
		return root{naming.ThreadLabel(t), s.rooted}
	})
}

// withLines returns a stack in which the names of methods include their lines.
func (s *summer) withLines(of *profile.Stack) *profile.Stack {
	stack := *of
	stack.Frames = slices.Clone(of.Frames)
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if f.Func == nil || f.Line <= 0 || s.indexed && f.BCI < 0 {
			continue
		}
		key := methodLine{f.Func, f.Line}
		fn := s.lines[key]
		if fn == nil {
			if s.lines == nil || len(s.lines) >= maxLines {
				s.lines = map[methodLine]*profile.Func{}
			}
			named := *f.Func
			named.Name = fmt.Sprintf("%s:%d", named.Name, f.Line)
			fn = &named
			s.lines[key] = fn
		}
		f.Func = fn
	}
	return &stack
}

func (s *summer) withState(of *profile.Sample, under *profile.Stack) *profile.Stack {
	fn := s.leaves[of.State]
	if fn == nil {
		fn = &profile.Func{Name: of.State.Label("")}
		s.leaves[of.State] = fn
	}
	frames := append(s.stack.Frames[:0], profile.Frame{Func: fn, Kind: profile.StateFrame, BCI: -1})
	s.stack = profile.Stack{Frames: append(frames, under.Frames...), Truncated: under.Truncated}
	return &s.stack
}
