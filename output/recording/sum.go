package recording

import (
	"fmt"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

// SumOptions are how samples are summed up.
type SumOptions struct {
	Threads bool // stacks stand under their threads
	States  bool // a sample of wall-clock time gets a leaf with its state if its stack does not tell the state
}

// Bounds of a sum. A larger page or table would help no reader.
const (
	maxNodes = 2 << 20
	maxTotal = 1 << 53 // numbers of JavaScript are exact up to here
)

// Sum makes one profile of all samples, counted in the recording's Meta.Weight. Its memory is bounded: samples
// without room are counted in Profile.Overflow.
func Sum(src Source, o SumOptions) (*profile.Profile, error) {
	i := src.Info()
	if o.Threads && !i.Threads {
		return nil, &Lacks{Problem: "it does not say which threads its stacks are of", Remedy: "goprof record --threads"}
	}
	s := summer{p: profile.NewSize(maxNodes), o: o, weight: i.Meta.Weight, roots: make(map[profile.Thread]string),
		leaves: make(map[profile.State]*profile.Func), places: make(map[placeKey]profile.Place)}
	s.p.Meta = i.Meta
	if err := src.Each(s.add); err != nil {
		return nil, err
	}
	switch {
	case s.p.Counts.Samples() == 0:
		return nil, Empty(src)
	case s.total == 0:
		return nil, &Lacks{Problem: fmt.Sprintf("it does not say %s", weightWords[s.weight]), Remedy: "--weight samples"}
	}
	// A collapsed file has these as stacks.
	if a := i.Summary; a != nil && i.Format == JFR && s.weight == profile.CPUTime {
		s.addRest(profile.NotSampled, a.Times.NotSampled)
		s.addRest(profile.ExitedThreads, a.Times.Exited)
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
	roots  map[profile.Thread]string
	leaves map[profile.State]*profile.Func
	stack  profile.Stack

	// places are where stacks were added lately. They are found there without a look at their frames.
	places map[placeKey]profile.Place
}

// placeKey is a stack under the root of a thread.
type placeKey struct {
	root   string
	number uint64
	leaf   profile.State // that it got
	leaves bool          // it got one
}

func (s *summer) add(of *profile.Sample) error {
	n := Weigh(of, s.weight)
	if n < 0 || n > maxTotal-s.total {
		return &output.BadFile{Problem: "the counts are too large together", TooMuch: true}
	}
	s.total += n
	root, stack := "", of.Stack
	if s.o.Threads && of.Thread != (profile.Thread{}) { // "[not sampled]" belongs to no thread
		root = s.root(&of.Thread)
	}
	key := placeKey{root: root, number: of.StackNumber}
	if s.o.States && of.LacksLeaf() {
		stack = s.withState(of)
		key.leaf, key.leaves = of.State, true
	}
	spent := time.Duration(0)
	if s.weight != profile.Samples {
		spent = time.Duration(n)
	}
	if at, known := s.places[key]; known {
		s.p.Again(at, of.Looks(), spent)
		return nil
	}
	at := s.p.AddAt(root, stack, of.Looks(), spent)
	if key.number != 0 {
		if len(s.places) >= maxPlaces {
			clear(s.places)
		}
		s.places[key] = at
	}
	return nil
}

// maxPlaces bounds how many stacks are noted, of some 60 bytes each.
const maxPlaces = 1 << 17

// Weigh is the weight of a sample.
func Weigh(s *profile.Sample, w profile.Weight) int64 {
	switch w {
	case profile.CPUTime:
		return int64(s.CPU)
	case profile.WallTime:
		return int64(s.Span)
	case profile.Bytes:
		return s.Bytes
	}
	return s.Looks()
}

func (s *summer) addRest(why string, d time.Duration) {
	if d > 0 {
		s.p.SetTime(why, d)
	}
}

func (s *summer) root(t *profile.Thread) string {
	label, ok := s.roots[*t]
	if !ok {
		if len(s.roots) >= maxVerdicts {
			clear(s.roots)
		}
		label = naming.ThreadLabel(t)
		s.roots[*t] = label
	}
	return label
}

func (s *summer) withState(of *profile.Sample) *profile.Stack {
	fn := s.leaves[of.State]
	if fn == nil {
		fn = &profile.Func{Name: of.State.Label("")}
		s.leaves[of.State] = fn
	}
	frames := append(s.stack.Frames[:0], profile.Frame{Func: fn, Kind: profile.StateFrame, BCI: -1})
	s.stack = profile.Stack{Frames: append(frames, of.Stack.Frames...), Truncated: of.Stack.Truncated}
	return &s.stack
}
