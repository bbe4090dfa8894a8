package batch

import (
	"slices"
	"sort"
	"time"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/profile/resource"
)

// GatherOptions set what a Gatherer keeps. The zero value has the defaults.
type GatherOptions struct {
	// Pools merges threads whose names only differ by a number. Their numbers are lost.
	Pools bool
	// MaxSamples bounds the different stacks of a batch, MaxFrames their frames, of 64 bytes each, and MaxPoints the looks
	// that keep their own time, of 40 bytes each. 0 is the default.
	MaxSamples, MaxFrames, MaxPoints int
}

const (
	usualSamples = 1 << 15
	usualFrames  = 1 << 18
	usualPoints  = 1 << 17
)

// Gatherer sums up samples to a Batch. It is not safe for concurrent use.
type Gatherer struct {
	o       GatherOptions
	prints  profile.Fingerprinter
	threads map[profile.Thread]int32
	pools   map[string]string
	at      map[gatherKey]int
	linked  map[profile.Fingerprint]*profile.Stack // of samples with a Link: spans share stacks
	samples []Sum
	frames  int
	points  int
	full    int // index of the sample for all looks without room, -1 if there is none
	before  int // number of samples in the last batch
}

// mostAhead bounds the memory that a Gatherer allocates in advance, as a number of samples.
const mostAhead = 256

// gatherKey is a stack of a thread in a state.
type gatherKey struct {
	stack  profile.Fingerprint
	thread int32
	state  uint8 // the state plus one; 0 if it is not known
	wall   bool
	link   profile.Link
}

func NewGatherer(o GatherOptions) *Gatherer {
	if o.MaxSamples <= 0 {
		o.MaxSamples = usualSamples
	}
	if o.MaxFrames <= 0 {
		o.MaxFrames = usualFrames
	}
	if o.MaxPoints <= 0 {
		o.MaxPoints = usualPoints
	}
	g := &Gatherer{o: o, prints: profile.NewFingerprinter()}
	g.clear()
	return g
}

func (g *Gatherer) clear() {
	g.threads, g.pools, g.at = make(map[profile.Thread]int32), make(map[string]string), make(map[gatherKey]int)
	g.before = len(g.samples)
	g.samples, g.frames, g.points, g.full = nil, 0, 0, -1
	g.linked = make(map[profile.Fingerprint]*profile.Stack)
}

// Empty reports whether nothing was added since the last Take.
func (g *Gatherer) Empty() bool { return len(g.samples) == 0 }

// Add counts a sample. It keeps the Funcs of the stack and the names, but nothing else.
func (g *Gatherer) Add(s *profile.Sample) {
	thread := s.Thread
	if g.o.Pools {
		thread = g.pool(thread)
	}
	number, known := g.threads[thread]
	if !known {
		number = int32(len(g.threads))
		if len(g.threads) < g.o.MaxSamples {
			g.threads[thread] = number
		}
	}
	key := gatherKey{stack: g.prints.Of(s.Stack), thread: number, wall: s.Wall, link: s.Link}
	if !s.NoState {
		key.state = uint8(s.State) + 1
	}
	i, known := g.at[key]
	if !known {
		i = g.sample(s, &thread, key)
	}
	g.point(&g.samples[i], s)
}

// pool returns the one thread for all threads whose names only differ by a number.
func (g *Gatherer) pool(t profile.Thread) profile.Thread {
	t.TID, t.JavaID = 0, 0
	t.Name, t.JavaName = g.poolName(t.Name), g.poolName(t.JavaName)
	return t
}

func (g *Gatherer) poolName(name string) string {
	pooled, known := g.pools[name]
	if !known {
		pooled = naming.Pool(name)
		if len(g.pools) < g.o.MaxSamples {
			g.pools[name] = pooled
		}
	}
	return pooled
}

// sample makes a sample. If there is no room, it returns the sample for all looks without room.
func (g *Gatherer) sample(s *profile.Sample, t *profile.Thread, key gatherKey) int {
	stack := g.linked[key.stack]
	depth := 0
	if stack == nil && s.Stack != nil {
		depth = len(s.Stack.Frames)
	}
	if len(g.samples) >= g.o.MaxSamples || g.frames+depth > g.o.MaxFrames {
		return g.fullSample(s.Wall)
	}
	g.frames += depth
	if stack == nil {
		stack = cloned(s.Stack)
		if s.Link.Known() {
			g.linked[key.stack] = stack
		}
	}
	if g.samples == nil { // most likely as many as in the previous batch
		g.samples = make([]Sum, 0, min(g.before, mostAhead))
	}
	g.samples = append(g.samples, Sum{Thread: *t, Stack: stack, State: s.State, NoState: s.NoState, Wall: s.Wall,
		About: s.About, Link: s.Link})
	g.at[key] = len(g.samples) - 1
	return len(g.samples) - 1
}

func cloned(of *profile.Stack) *profile.Stack {
	stack := &profile.Stack{}
	if of != nil {
		*stack = *of
		stack.Frames = slices.Clone(of.Frames)
	}
	return stack
}

var fullStack = &profile.Stack{Frames: []profile.Frame{
	{Func: &profile.Func{Name: "[profile full]"}, Kind: profile.Gap, BCI: -1},
}}

func (g *Gatherer) fullSample(wall bool) int {
	if g.full < 0 {
		g.full = len(g.samples)
		g.samples = append(g.samples, Sum{Stack: fullStack, NoState: true, Wall: wall})
	}
	return g.full
}

// point counts a look of a sample. If there is no room for the look's time, the look is added to the previous one.
func (g *Gatherer) point(to *Sum, s *profile.Sample) {
	p := Point{At: s.At.Wall, Looks: s.Looks(), CPU: s.CPU, Span: s.Span, Bytes: s.Bytes}
	if n := len(to.Points); n > 0 && (p.At == 0 && to.Points[n-1].At == 0 || g.points >= g.o.MaxPoints) {
		last := &to.Points[n-1]
		last.Looks += p.Looks
		last.CPU += p.CPU
		last.Span += p.Span
		last.Bytes += p.Bytes
		return
	}
	g.points++
	to.Points = append(to.Points, p)
}

// Take returns a batch of everything that was added since the last Take.
func (g *Gatherer) Take(whose resource.Attributes, m profile.Meta, from, to time.Time) *Batch {
	b := &Batch{Resource: whose, Meta: m, From: from, To: to, Samples: g.samples}
	for i := range b.Samples {
		points := b.Samples[i].Points
		sort.SliceStable(points, func(i, j int) bool { return points[i].At < points[j].At })
	}
	g.clear()
	return b
}
