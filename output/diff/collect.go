package diff

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"goprof/output"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/profile/naming"
)

// Comparison collects the recordings of two sides, and then compares the sides.
type Comparison struct {
	tree  tree
	sides [sides]side
}

// side holds the facts about the recordings of one side, except their stacks.
type side struct {
	total int64
	looks int64
	// guessed is how much of total counts for a compiled method because the inlined method is a guess.
	guessed int64
	span    time.Duration
	weight  profile.Weight
	runs    []run
	timed   bool // all its recordings have times
	cells   map[cell]int64
}

// run is one recording of a side.
type run struct {
	name  string
	jvm   string // which JVM it is of; empty if that is not known
	total int64
}

// MaxRuns bounds the recordings of a side.
const MaxRuns = 64

// cell is a node in a block of time. The upper half of its bits is the block. Each recording has blocks of its own; a
// recording without times has only one.
type cell uint64

func cellOf(block, node int32) cell { return cell(block)<<32 | cell(node) }

// ErrNoSamples is returned if a recording, or its chosen part, has no samples.
var ErrNoSamples = errors.New("there are no samples in it")

var errTooMuch = fmt.Errorf("both together have more than %d frames, or too many different stacks in each moment",
	maxNodes)

func New() *Comparison { return &Comparison{tree: newTree()} }

// assumedLook is the assumed time between two samples if the recording does not have its number of samples. It is
// goprof's default interval.
const assumedLook = 10 * time.Millisecond

// begin begins a recording, and returns its first block.
func (s *side) begin(r run, timed bool) (block int32) {
	if s.cells == nil {
		s.cells, s.timed = make(map[cell]int64), true
	}
	s.timed = s.timed && timed
	s.runs = append(s.runs, r)
	return int32(len(s.runs)-1) * blocks
}

// assumedLooks returns how many samples a recording has. If the recording does not have that number, one sample is
// assumed for each interval.
func assumedLooks(w profile.Weight, total, looks int64, interval time.Duration) int64 {
	switch {
	case w == profile.Samples && looks <= 0:
		return total
	case looks <= 0:
		return max(total/int64(cmp.Or(interval, assumedLook)), 1)
	}
	return looks
}

// finish computes for each side what the comparison needs.
func (c *Comparison) finish() {
	for s := range sides {
		if c.sides[s].timed {
			c.withoutChance(s)
		} else {
			c.independently(s)
		}
	}
}

// independently treats all looks as independent, for recordings without times.
func (c *Comparison) independently(of Side) {
	look := c.look(of)
	for n := range c.tree.nodes {
		nd := &c.tree.nodes[n]
		nd.squares[of] = float64(nd.self[of]) * look
	}
}

// Reading sets how a source is read.
type Reading struct {
	recording.SumOptions
	HideInternal bool // frames that only pass calls on are merged: naming.Folder
	AllFrames    bool // otherwise, the frames with which a thread begins are merged
}

// AddSource adds one recording to a side, with its times if it has any. It reads the source twice: the first time to
// find the recording's length.
func (c *Comparison) AddSource(to Side, src recording.Source, o Reading) error {
	s, i := &c.sides[to], src.Info()
	s.weight = i.Meta.Weight
	a := adder{c: c, to: to, o: o, labels: make(map[frame]int32), roots: make(map[profile.Thread]int32),
		standing: make(map[threadID]stay)}
	if err := recording.Visit(src, recording.NoStacks, a.measure); err != nil {
		return err
	}
	if a.timed = i.Timed && a.last > a.first; a.timed {
		s.span += time.Duration(a.last - a.first)
	}
	a.firstBlock = s.begin(run{name: i.Name, jvm: i.JVM()}, a.timed)
	if err := recording.Visit(src, recording.LaterStacks, a.add); err != nil {
		return err
	}
	for _, st := range a.standing {
		a.end(st)
	}
	if a.total == 0 {
		return ErrNoSamples
	}
	s.runs[len(s.runs)-1].total = a.total
	s.looks += assumedLooks(s.weight, a.total, a.effective(&i), i.Meta.Interval)
	return nil
}

// effective returns how many independent looks have as much information as the recording's (profile.Summary.Effective).
// It is 0 if that is not known.
func (a *adder) effective(i *recording.Info) int64 {
	switch {
	case i.Summary != nil && i.Summary.Effective > 0:
		return i.Summary.Effective
	case i.Format == recording.Collapsed:
		return 0 // its stacks do not count looks
	case a.timed && (i.Meta.Mode == profile.ModeCPU || i.Meta.Mode == "") && a.looks > 0:
		return max(int64(float64(a.looks)*float64(a.looks)/a.lookSquares), 1)
	}
	return a.looks
}

// mostByChance bounds the probability that a thread is found in the same stack again by chance.
const mostByChance = 0.5

// withoutChance corrects the lengths of standings (see stay) for chance. A stack with the share p is found again at the
// next look with probability p, even if looks are independent. Chance alone makes the mean square of a run's length
// (1+p)/(1-p) times its mean. withoutChance uses the share of the stack in all threads. In a single thread the share
// may be larger. Then the noise comes out too large, never too small.
func (c *Comparison) withoutChance(to Side) {
	s, look := &c.sides[to], c.look(to)
	for n := range c.tree.nodes {
		nd := &c.tree.nodes[n]
		p := min(float64(nd.self[to])/float64(s.total), mostByChance)
		least := float64(nd.self[to]) * look
		nd.squares[to] = max(nd.squares[to]-least*((1+p)/(1-p)-1), least)
	}
}

// adder adds one source's samples.
type adder struct {
	c           *Comparison
	to          Side
	o           Reading
	seen        bool
	timed       bool
	firstBlock  int32
	first, last int64
	total       int64
	looks       int64
	lookSquares float64 // of the looks of each sample
	labels      map[frame]int32
	roots       map[profile.Thread]int32
	nodes       profile.ByStack[leafPlace]
	stack       profile.Stack // a copy of a sample's stack, which is changed
	folder      naming.Folder
	standing    map[threadID]stay
}

// leafPlace is the node in which a sample's stack ends. If its leaf is a guess, guessedIn is the node of the compiled
// method; otherwise it is 0.
type leafPlace struct{ node, guessedIn int32 }

type frame struct {
	fn   *profile.Func
	kind profile.Kind
}

type threadID struct {
	tid int
	id  int64
}

// stay is a run of looks that found one thread in the same stack, because the thread waits or is in a long call.
// Together these looks have no more information than one look. In all formats with times, the samples of a thread are
// ordered by time.
type stay struct {
	node   int32
	weight int64
}

// maxStandings bounds the threads whose standings are followed. Looks at further threads count one by one. It also
// bounds how many functions and threads are remembered.
const maxStandings = 1 << 20

func moment(s *profile.Sample) int64 {
	if s.At.Ticks != 0 {
		return s.At.Ticks
	}
	return s.At.Wall
}

func (a *adder) measure(s *profile.Sample) error {
	t := moment(s)
	if !a.seen {
		a.first, a.last, a.seen = t, t, true
	}
	a.first, a.last = min(a.first, t), max(a.last, t)
	return nil
}

func (a *adder) add(s *profile.Sample) error {
	side := &a.c.sides[a.to]
	weight := recording.Weigh(s, side.weight)
	if weight <= 0 {
		return nil
	}
	if weight > maxTotal-side.total {
		return &output.BadFile{Problem: "the counts are too large together", TooMuch: true}
	}
	at, err := a.node(s)
	if err != nil {
		return err
	}
	side.total += weight
	a.total += weight
	looks := s.Looks()
	a.looks += looks
	a.lookSquares += float64(looks) * float64(looks)
	a.c.tree.nodes[at.node].self[a.to] += weight
	if at.guessedIn != 0 {
		a.c.tree.nodes[at.guessedIn].guessed[a.to] += weight
		side.guessed += weight
	}
	block := a.firstBlock
	if a.timed {
		a.addLook(s, stay{at.node, weight})
		block += a.block(moment(s))
	}
	key := cellOf(block, at.node)
	if _, ok := side.cells[key]; !ok && len(side.cells) >= maxCells {
		return errTooMuch
	}
	side.cells[key] += weight
	return nil
}

// block returns the block of a given time. It subtracts unsigned numbers, because a file may hold any times.
func (a *adder) block(at int64) int32 {
	of := float64(uint64(at)-uint64(a.first)) / float64(uint64(a.last)-uint64(a.first))
	return int32(min(max(of*blocks, 0), blocks-1))
}

// node returns the node at which a sample's stack ends in the tree.
func (a *adder) node(s *profile.Sample) (leafPlace, error) {
	root := a.root(s)
	context := uint64(root)<<8 | s.StateKey()
	if at, known := a.nodes.Get(s.StackNumber, context); known {
		return at, nil
	}
	if err := s.Read(); err != nil {
		return leafPlace{}, err
	}
	at, ok := a.descend(s, root)
	if !ok {
		return leafPlace{}, errTooMuch
	}
	a.nodes.Put(s.StackNumber, context, at)
	return at, nil
}

// root returns the label of a sample's thread, or noLabel if threads do not count.
func (a *adder) root(s *profile.Sample) int32 {
	if !a.o.Threads {
		return noLabel
	}
	return profile.Cached(a.roots, maxStandings, s.Thread, func() int32 {
		return a.c.tree.label(output.ParseLabel(naming.ThreadLabel(&s.Thread)))
	})
}

const noLabel = -1

// descend returns the node of a sample's stack, and makes missing nodes. It returns false if there is no room. The
// stack has the threads, states and reasons that a collapsed file would have. A guessed leaf counts for its compiled
// method.
func (a *adder) descend(s *profile.Sample, root int32) (leafPlace, bool) {
	way := descent{tree: &a.c.tree}
	if root != noLabel {
		way.down(root)
	}
	stack, guessedIn, in := s.Stack, s.Stack.Guessed(), int32(0)
	if a.o.HideInternal || !a.o.AllFrames || guessedIn != nil {
		a.stack = *stack
		a.stack.Frames = append(a.stack.Frames[:0:0], stack.Frames...)
		stack = &a.stack
		stack.Settle()
	}
	switch {
	case a.o.HideInternal:
		a.folder.Stack(stack)
	case !a.o.AllFrames:
		a.folder.Entry(stack)
	}
	if stack.Truncated != profile.Whole {
		way.down(a.c.tree.label(output.ParseLabel("[truncated: " + stack.Truncated.String() + "]")))
	}
	for i := len(stack.Frames) - 1; i >= 0; i-- {
		f := &stack.Frames[i]
		way.down(a.label(f))
		if f.Kind == profile.Inlined {
			a.c.tree.nodes[way.at].inlined = true
		} else if f.Kind.Java() && guessedIn != nil {
			in = way.at // finally, the topmost one
		}
	}
	if a.o.States && s.LacksLeaf() {
		way.down(a.c.tree.label(output.ParseLabel(s.State.Label(""))))
	}
	if way.at == 0 && !way.full {
		way.down(a.c.tree.label(output.ParseLabel("[no frame]")))
	}
	return leafPlace{way.at, in}, !way.full
}

// descent goes down the tree, and makes missing nodes.
type descent struct {
	tree *tree
	at   int32
	full bool
}

func (d *descent) down(label int32) {
	if d.full {
		return
	}
	next := d.tree.child(d.at, label)
	if next == 0 {
		d.full = true
		return
	}
	d.at = next
}

func (a *adder) label(f *profile.Frame) int32 {
	return profile.Cached(a.labels, maxStandings, frame{f.Func, f.Kind}, func() int32 {
		return a.c.tree.label(output.ParseLabel(output.Label(f.Func, f.Kind)))
	})
}

// addLook adds a look to the standing of its thread, or ends that standing and begins a new one.
func (a *adder) addLook(s *profile.Sample, now stay) {
	who := threadID{s.Thread.TID, s.Thread.JavaID}
	last, ok := a.standing[who]
	if ok && last.node == now.node {
		now.weight += last.weight
	} else if ok {
		a.end(last)
	}
	if !ok && len(a.standing) >= maxStandings {
		a.end(now)
		return
	}
	a.standing[who] = now
}

func (a *adder) end(st stay) {
	a.c.tree.nodes[st.node].squares[a.to] += float64(st.weight) * float64(st.weight)
}
