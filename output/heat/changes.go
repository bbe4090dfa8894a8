package heat

import (
	"cmp"
	"errors"
	"math"
	"sort"
	"time"

	"goprof/output"
	"goprof/output/diff"
	"goprof/output/recording"
	"goprof/profile"
)

const (
	// maxBins bounds the times at which a recording may change.
	maxBins = 1024
	// leastShare is the least share of all samples that a method must have to count. At most maxCounted methods count.
	leastShare = 0.005
	maxCounted = 3000
	// Each side of a change must have at least leastBins and leastLooks.
	leastBins  = 4
	leastLooks = 100
	leastSide  = 48 // and this fraction of the recording
	// leastScore: at least one method's shares before and after a time must differ by this many standard deviations.
	// Otherwise package diff does not compare the two sides. Chance alone rarely gives it.
	leastScore = 4.5
	// The usual jumps of a method's share are measured between neighbouring windows of this fraction of the recording.
	usualWindow = 24
	// threeQuarters is a number of standard deviations: three quarters of the jumps between windows are smaller. A few
	// lasting changes do not affect it, but work that comes and goes does.
	threeQuarters = 1.15
	// A share makes a step if it jumps by leastStep or more, by leastScore deviations of its usual jumps, and by mostOf of
	// the change. A thread that leaves one long call for another makes such a step.
	leastStep = 0.25
	// maxTests bounds how often the recording is read. testsOfTime bounds how many times of change are tried in one span.
	maxTests    = 48
	testsOfTime = 6
	// A time of change is chosen among many, so its two sides differ more than at a time that was fixed beforehand. One
	// span has some twenty times that are independent of each other, and there are several such spans.
	riskOfOne = diff.Risk / 50
	// leastChange is the least change of a share that is listed. In wall-clock time, one thread of a hundred is one
	// percent.
	leastChange     = 0.03
	leastWallChange = 0.01
)

// Moment is a time at which shares change, and then stay until the next Moment.
type Moment struct {
	At      time.Time
	From    time.Duration // since the recording's start
	Changes []diff.Change // the largest first
}

// changeSearch looks for times of change. A time is the number of a bin, and means the bin's beginning.
type changeSearch struct {
	src    recording.Source
	start  int64   // ns since 1970
	width  float64 // ns, of a bin
	total  []float64
	names  []string    // of methods
	counts [][]float64 // by method, in itself and in what it calls: looks before each bin
	usual  []float64   // by method: the variance of its share in one bin, from its jumps
	least  float64
	tests  int
}

// split is a span, and the time in it at which its shares differ most.
type split struct {
	from, at, to int
	score        float64
}

// Changes finds the times at which a recording changes. It reports none that noise may have caused.
func Changes(src recording.Source) (found []Moment, length time.Duration, err error) {
	info := src.Info()
	if !info.Timed {
		return nil, 0, ErrNoTimes
	}
	h, err := read(src, &info, false)
	if err != nil {
		return nil, 0, err
	}
	s := newSearch(src, h)
	at, err := s.within(0, len(s.total)-1)
	for i := 0; i < len(at) && err == nil; i++ {
		from, to := 0, len(s.total)-1
		if i > 0 {
			from = at[i-1]
		}
		if i < len(at)-1 {
			to = at[i+1]
		}
		// The neighbouring times of change were not known at first. Now another time may be better.
		var changes []diff.Change
		if best := s.best(from, to); best.score > 0 {
			if changes, err = s.compare(from, best.at, to); len(changes) > 0 {
				at[i] = best.at
			}
		}
		if len(changes) == 0 && err == nil {
			changes, err = s.compare(from, at[i], to)
		}
		if len(changes) > 0 {
			wall := s.wall(at[i])
			found = append(found, Moment{time.Unix(0, wall), time.Duration(wall - h.grid.start), changes})
		}
	}
	return found, time.Duration(h.grid.length), err
}

func newSearch(src recording.Source, h *heat) *changeSearch {
	bins := min(h.grid.cells(), maxBins)
	s := &changeSearch{src: src, start: h.grid.start,
		width: float64(h.grid.cell) * float64(h.grid.cells()) / float64(bins),
		total: make([]float64, bins+1), least: leastChange}
	if h.unit.weight == profile.WallTime {
		s.least = leastWallChange
	}
	m := newMethods(&h.stacks.tree)
	s.names = m.names
	s.counts = make([][]float64, m.count)
	for i := range s.counts {
		s.counts[i] = make([]float64, bins+1)
	}
	looks := float64(h.samples) / float64(max(h.stacks.tree.Total, 1)) // per unit of weight
	for _, e := range h.list {
		for cell := e.cell; cell < e.cell+e.cells; cell++ {
			bin, n := min(int(cell)*bins/h.grid.cells()+1, bins), float64(e.weight)*looks/float64(e.cells)
			s.total[bin] += n
			m.each(e.node, func(method int) { s.counts[method][bin] += n })
		}
	}
	for _, sums := range append(s.counts, s.total) {
		for bin := 1; bin < len(sums); bin++ {
			sums[bin] += sums[bin-1]
		}
	}
	for _, sums := range s.counts {
		s.usual = append(s.usual, s.jumps(sums))
	}
	return s
}

// jumps measures how a share differs between neighbouring windows, and returns this as the variance of one bin. Work
// that comes in bursts varies more than independent samples.
func (s *changeSearch) jumps(sums []float64) float64 {
	window := s.window()
	var list []float64
	for at := window; at+window < len(sums); at++ {
		if min(s.total[at]-s.total[at-window], s.total[at+window]-s.total[at]) > 0 {
			list = append(list, math.Abs(s.jump(sums, at-window, at, at+window)))
		}
	}
	if len(list) == 0 {
		return 0
	}
	sort.Float64s(list)
	deviation := list[len(list)*3/4] / threeQuarters
	return deviation * deviation * float64(window) / 2
}

func (s *changeSearch) window() int { return max((len(s.total)-1)/usualWindow, leastBins) }

// methods are the names whose shares are followed: methods of all kinds of code, and states. Native functions in stacks
// with Java are left out, because they change whenever a method is compiled.
type methods struct {
	tree  *output.Tree
	java  []bool // by node: the stack has a Java method
	of    []int  // by label: a method's number, or a negative number
	count int
	names []string // by method
	met   []int    // by method: the number of the last stack that has it
	turn  int
}

func newMethods(tree *output.Tree) *methods {
	m := &methods{tree: tree, java: make([]bool, len(tree.Nodes)), of: make([]int, len(tree.Labels))}
	for n := 1; n < len(tree.Nodes); n++ {
		m.java[n] = m.java[tree.Nodes[n].Parent] || tree.Labels[tree.Nodes[n].Name].Kind.Java()
	}
	known := map[string]int{}
	var names []string
	for l := range tree.Labels {
		name := tree.Labels[l].Text
		if _, met := known[name]; !met {
			known[name] = len(names)
			names = append(names, name)
		}
		m.of[l] = known[name]
	}
	m.met = make([]int, len(names))
	sums := make([]int64, len(names))
	for n := range tree.Nodes {
		if self := tree.Nodes[n].Self; self > 0 {
			m.each(int32(n), func(method int) { sums[method] += self })
		}
	}
	numbers := make([]int, len(names))
	for i, sum := range sums {
		numbers[i] = -1
		if float64(sum) >= leastShare*float64(tree.Total) && m.count < maxCounted {
			numbers[i] = m.count
			m.names = append(m.names, names[i])
			m.count++
		}
	}
	for l := range m.of {
		m.of[l] = numbers[m.of[l]]
	}
	return m
}

// each visits the methods of a stack, each method once.
func (m *methods) each(node int32, visit func(method int)) {
	m.turn++
	java := m.java[node]
	for ; node != 0; node = m.tree.Nodes[node].Parent {
		name := m.tree.Nodes[node].Name
		kind := m.tree.Labels[name].Kind
		if java && !kind.Java() && kind != output.LabelState {
			continue
		}
		if method := m.of[name]; method >= 0 && m.met[method] != m.turn {
			m.met[method] = m.turn
			visit(method)
		}
	}
}

func (s *changeSearch) wall(bin int) int64 { return addTime(s.start, int64(float64(bin)*s.width)) }

// within finds the times of change in a span: first one of them, and then those before and after it.
func (s *changeSearch) within(from, to int) ([]int, error) {
	for _, c := range s.candidates(from, to) {
		if s.tests >= maxTests {
			break
		}
		s.tests++
		changes, err := s.compare(c.from, c.at, c.to)
		if err != nil {
			return nil, err
		}
		if len(changes) == 0 {
			continue
		}
		before, err := s.within(from, c.at)
		if err != nil {
			return nil, err
		}
		after, err := s.within(c.at, to)
		return append(append(before, c.at), after...), err
	}
	return nil, nil
}

// candidates returns the times that are worth a test, the likeliest first. A share that changes and changes back is
// hidden in a long span. So shorter spans within it are searched, too (seeded intervals: Kovács and others, Biometrika
// 2023).
func (s *changeSearch) candidates(from, to int) (list []split) {
	for n, shortest := to-from, (to-from)/16; n >= max(shortest, 2*leastBins); n /= 2 {
		for at := from; at+n <= to; at += n / 2 {
			if c := s.best(at, at+n); c.score >= leastScore {
				list = append(list, c)
			}
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].score > list[j].score })
	return list[:min(len(list), testsOfTime)]
}

// best returns the time at which some method's shares differ most between the two sides.
func (s *changeSearch) best(from, to int) (c split) {
	c = split{from: from, to: to}
	side := max(leastBins, (len(s.total)-1)/leastSide)
	for at := from + side; at <= to-side; at++ {
		before, after := s.total[at]-s.total[from], s.total[to]-s.total[at]
		if min(before, after) < leastLooks {
			continue
		}
		bins := 1/float64(at-from) + 1/float64(to-at)
		for method, sums := range s.counts {
			x, y := sums[at]-sums[from], sums[to]-sums[at]
			share, change := (x+y)/(before+after), y/after-x/before
			variance := max(share*(1-share)*(1/before+1/after), s.usual[method]*bins)
			if variance > 0 {
				if score := math.Abs(change) / math.Sqrt(variance); score > c.score {
					c.at, c.score = at, score
				}
			}
		}
	}
	return c
}

// steps returns the methods whose share makes a step at the time at. It compares the spans up to the neighbouring
// times.
func (s *changeSearch) steps(from, at, to int) map[string]bool {
	width := min(s.window(), at-from, to-at)
	found := map[string]bool{}
	for method, sums := range s.counts {
		jump, change := s.jump(sums, at-width, at, at+width), s.jump(sums, from, at, to)
		usual := math.Sqrt(s.usual[method] * 2 / float64(width))
		if math.Abs(jump) >= max(leastStep, leastScore*usual, mostOf*math.Abs(change)) {
			found[s.names[method]] = true
		}
	}
	return found
}

// jump returns the method's share between at and to, less its share between from and at.
func (s *changeSearch) jump(sums []float64, from, at, to int) float64 {
	before, after := s.total[at]-s.total[from], s.total[to]-s.total[at]
	if min(before, after) <= 0 {
		return 0
	}
	return (sums[to]-sums[at])/after - (sums[at]-sums[from])/before
}

// compare returns the changes from before a time to after it, the largest first.
func (s *changeSearch) compare(from, at, to int) ([]diff.Change, error) {
	c := diff.New()
	o := diff.Reading{SumOptions: recording.SumOptions{States: true}}
	for side, times := range [...][2]int{diff.Before: {from, at}, diff.After: {at, to}} {
		w := &window{s.src, s.wall(times[0]), s.wall(times[1])}
		if times[1] == len(s.total)-1 {
			w.to = math.MaxInt64
		}
		if err := c.AddSource(diff.Side(side), w, o); errors.Is(err, diff.ErrNoSamples) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	r, err := c.Compare(diff.Options{By: "method", MinChange: s.least, Steps: s.steps(from, at, to)})
	if err != nil {
		return nil, err
	}
	return told(r.Changes), nil
}

// told returns the changes of paths that noise does not explain, the largest first. The path's method must also have
// changed: a path alone changes whenever a method is compiled again.
func told(all []diff.Change) (found []diff.Change) {
	methods := map[string]float64{}
	for _, ch := range all {
		if ch.P <= riskOfOne && ch.Of != diff.OfPath && math.Abs(ch.Change) > math.Abs(methods[ch.Name]) {
			methods[ch.Name] = ch.Change
		}
	}
	for _, ch := range all {
		if by := methods[cmp.Or(ch.Own, ch.Name)] * ch.Change; ch.Of == diff.OfPath && ch.P <= riskOfOne && by > 0 {
			found = append(found, ch)
		}
	}
	sort.Slice(found, func(i, j int) bool { return math.Abs(found[i].Change) > math.Abs(found[j].Change) })
	return found
}

// window is the part of a recording between two times.
type window struct {
	recording.Source
	from, to int64
}

// Info returns the same JVM for both sides of a change.
func (w *window) Info() recording.Info {
	i := w.Source.Info()
	if i.JVM() == "" {
		i.Meta.PID, i.JVMStart = 1, time.Unix(1, 0)
	}
	i.Summary = nil // it describes the whole recording
	return i
}

func (w *window) Each(visit func(*profile.Sample) error) error {
	return w.Visit(recording.AllStacks, visit)
}

func (w *window) Visit(stacks recording.Stacks, visit func(*profile.Sample) error) error {
	return recording.Visit(w.Source, stacks, func(s *profile.Sample) error {
		if s.At.Wall < w.from || s.At.Wall >= w.to {
			return nil
		}
		return visit(s)
	})
}
