package diff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"goprof/output/recording"
	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// simulated is a recording by a model.
type simulated struct {
	samples []profile.Sample
	timed   bool
	starts  bool // each recording is of a different JVM start
}

func (s *simulated) Info() recording.Info {
	i := recording.Info{Name: "simulated", Timed: s.timed}
	if !s.starts {
		i.Meta.PID, i.JVMStart = 1, time.Unix(1, 0) // recordings of one JVM
	}
	return i
}

func (s *simulated) Each(visit func(*profile.Sample) error) error {
	for i := range s.samples {
		if err := visit(&s.samples[i]); err != nil {
			return err
		}
	}
	return nil
}

// program is a call tree whose leaves have shares.
type program struct {
	stacks []*profile.Stack
	shares []float64
}

// slowed is one method's share of the program's time. A change makes this method slower.
const slowed = 0.20

// newProgram makes a program of 120 stacks with up to 12 frames. The shares are as uneven as those of real programs
// (1/rank).
func newProgram() *program {
	rng := rand.New(rand.NewPCG(7, 7))
	p := &program{}
	fn := func(name string) profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: name}, Kind: profile.C2}
	}
	main, slow := fn("Main.run"), fn("Shop.price")
	handlers := make([]profile.Frame, 10)
	for i := range handlers {
		handlers[i] = fn(fmt.Sprintf("Handler%d.handle", i))
	}
	sum := 0.0
	for i := range 120 {
		frames := []profile.Frame{fn(fmt.Sprintf("Work%d.step", i%70))}
		for d := range rng.IntN(9) {
			frames = append(frames, fn(fmt.Sprintf("Layer%d.call%d", d, rng.IntN(4))))
		}
		p.stacks = append(p.stacks, &profile.Stack{Frames: append(frames, handlers[i%10], main)})
		p.shares = append(p.shares, 1/float64(i+3))
		sum += p.shares[i]
	}
	for i := range p.shares {
		p.shares[i] *= (1 - slowed) / sum
	}
	for i := range 4 {
		leaf := fn(fmt.Sprintf("Money.part%d", i))
		p.stacks = append(p.stacks, &profile.Stack{Frames: []profile.Frame{leaf, slow, handlers[0], main}})
		p.shares = append(p.shares, slowed/4)
	}
	return p
}

// recursive returns the program with a quarter of its time in a recursion of 20 equal levels, under the second handler.
func (p *program) recursive() *program {
	q := &program{stacks: slices.Clone(p.stacks)}
	for _, share := range p.shares {
		q.shares = append(q.shares, 0.75*share)
	}
	callers := slices.Clone(p.stacks[1].Frames[len(p.stacks[1].Frames)-2:])
	render := profile.Frame{Func: &profile.Func{Name: "Page.render"}, Kind: profile.C2}
	for level := range 20 {
		frames := append(slices.Repeat([]profile.Frame{render}, level+1), callers...)
		q.stacks = append(q.stacks, &profile.Stack{Frames: frames})
		q.shares = append(q.shares, 0.25/20)
	}
	return q
}

// ofSlowed reports whether a stack contains the slowed method.
func ofSlowed(stack int) bool { return stack >= 120 && stack < 124 }

// slower gives the stacks of the slowed method more time. extra is a share of the program's former time.
func (p *program) slower(extra float64) *program {
	q := &program{stacks: p.stacks}
	for i, share := range p.shares {
		if ofSlowed(i) {
			share += extra / 4
		}
		q.shares = append(q.shares, share/(1+extra))
	}
	return q
}

func (p *program) draw(rng *rand.Rand) int {
	at := rng.Float64()
	for i, share := range p.shares {
		if at -= share; at < 0 {
			return i
		}
	}
	return 0
}

// handlerOf returns the handler of a stack. The slowed stacks belong to the first one, and a recursion to the second.
func handlerOf(stack int) int {
	switch {
	case ofSlowed(stack):
		return 0
	case stack >= 120:
		return 1
	}
	return stack % 10
}

// within draws another stack of the same handler, as within a job.
func (p *program) within(rng *rand.Rand, of int) int {
	for {
		if i := p.draw(rng); handlerOf(i) == handlerOf(of) {
			return i
		}
	}
}

// drifted returns the program while other work slows some handlers more than others. The logarithm of a handler's time
// has this standard deviation.
func (p *program) drifted(rng *rand.Rand, deviation float64) *program {
	var times [10]float64
	for i := range times {
		times[i] = math.Exp(deviation * rng.NormFloat64())
	}
	q, sum := &program{stacks: p.stacks}, 0.0
	for i, share := range p.shares {
		q.shares = append(q.shares, share*times[handlerOf(i)])
		sum += q.shares[i]
	}
	for i := range q.shares {
		q.shares[i] /= sum
	}
	return q
}

// model sets how samples depend on each other. With a mean of 0, each sample is drawn independently. Otherwise a thread
// stays with a stack for a random time, of mean samples on average. burst is how uneven the times are (1: exponential).
type model struct {
	name    string
	threads int
	mean    float64
	heavy   float64 // the share of stays that last ten times as long
	wall    bool
	timed   bool
	jobs    bool // a thread stays with a handler, and each sample draws a stack under it
	drift   float64
	deep    bool // the program has a recursion: many items have nearly the same samples
	beyond  bool // beyond the test's assumptions: its rate is only printed
}

// driftOfTen is the assumed drift of a recording of 10 s (drift.go): drift averages out over its twice 5 s.
const driftOfTen = driftLogit / math.Sqrt2

var models = []model{
	{name: "independent samples", threads: 4, timed: true},
	{name: "independent samples, drift as assumed", threads: 4, timed: true, drift: driftOfTen},
	{name: "independent samples, twice the drift", threads: 4, timed: true, drift: 2 * driftOfTen, beyond: true},
	{name: "independent samples, recursion", threads: 4, timed: true, deep: true},
	{name: "independent samples, drift, recursion", threads: 4, timed: true, deep: true, drift: driftOfTen},
	{name: "jobs of 5 samples, recursion", threads: 4, mean: 5, timed: true, jobs: true, deep: true},
	{name: "bursts of 5 samples", threads: 4, mean: 5, timed: true},
	{name: "bursts of 20 samples, some of 200", threads: 4, mean: 20, heavy: 0.05, timed: true},
	{name: "bursts of 100 samples", threads: 8, mean: 100, timed: true},
	{name: "one thread, phases of 300 samples", threads: 1, mean: 300, timed: true},
	{name: "jobs of 5 samples, varied", threads: 4, mean: 5, timed: true, jobs: true},
	{name: "jobs of 30 samples, varied", threads: 4, mean: 30, timed: true, jobs: true},
	{name: "jobs of 100 samples, varied", threads: 8, mean: 100, timed: true, jobs: true},
	{name: "wall mode, 40 threads that stand", threads: 40, mean: 60, heavy: 0.1, wall: true, timed: true},
	{name: "without times, independent", threads: 4},
}

// record makes a recording of n samples at 1,000 Hz for all threads together.
func (m model) record(p *program, n int, rng *rand.Rand) *simulated {
	s := &simulated{timed: m.timed}
	if m.drift > 0 {
		p = p.drifted(rng, m.drift)
	}
	stack, left := make([]int, m.threads), make([]float64, m.threads)
	for i := range n {
		t := i % m.threads
		if !m.wall {
			t = rng.IntN(m.threads)
		}
		if left[t]--; left[t] <= 0 {
			stack[t], left[t] = p.draw(rng), m.mean*rng.ExpFloat64()
			if rng.Float64() < m.heavy {
				left[t] *= 10
			}
		}
		if m.jobs {
			stack[t] = p.within(rng, stack[t])
		}
		sample := profile.Sample{Stack: p.stacks[stack[t]], Thread: profile.Thread{TID: t + 1}, Wall: m.wall,
			State: profile.Parked}
		if m.timed {
			sample.At.Ticks = int64(i) * int64(time.Millisecond)
		}
		s.samples = append(s.samples, sample)
	}
	return s
}

func compare(t testing.TB, before, after recording.Source, o Options) *Result {
	t.Helper()
	c := New()
	for side, src := range []recording.Source{before, after} {
		if err := c.AddSource(Side(side), src, Reading{}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Compare(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// finds reports whether a result names the slowed method.
func finds(r *Result) bool {
	for _, ch := range r.Changes {
		if ch.Name == "Shop.price" && ch.Of == OfTotal && ch.Significant {
			return true
		}
	}
	return false
}

// TestRates prints how often a comparison is wrong, in both directions. The samples depend on each other as the models
// say. With more pairs (docs/evidence/diff.md has the results):
//
//	GOPROF_DIFF_PAIRS=1000 go test ./output/diff -run TestRates -v -timeout 1h
func TestRates(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.TakesLong)
	pairs, some := 4, jvmtest.Drawn(t, len(models)/2, models)
	if text := os.Getenv("GOPROF_DIFF_PAIRS"); text != "" {
		pairs, _ = strconv.Atoi(text)
		some = models
	}
	const samples = 10_000
	t.Logf("%d pairs, %d samples each; called changed: pairs of the same program; found: a method of %.0f %% that was "+
		"made slower by 5 %% of all time, or by 5 points", pairs, samples, 100*slowed)
	for _, m := range some {
		t.Run(m.name, func(t *testing.T) {
			same, rng := newProgram(), rand.New(rand.NewPCG(1, 2))
			if m.deep {
				same = same.recursive()
			}
			called, found, foundPoints := 0, 0, 0
			inflation, alone := 0.0, 0
			fiveMore, fivePoints := same.slower(0.05), same.slower((slowed+0.05)/(1-slowed-0.05)*(1-slowed)-slowed)
			for range pairs {
				before := m.record(same, samples, rng)
				r := compare(t, before, m.record(same, samples, rng), Options{By: "method"})
				if r.Significant > 0 {
					called++
				}
				inflation += r.Inflation / float64(pairs)
				for i := range r.evidence {
					if r.evidence[i].p < 0.05 {
						alone++
						break
					}
				}
				if finds(compare(t, before, m.record(fiveMore, samples, rng), Options{By: "method"})) {
					found++
				}
				if finds(compare(t, before, m.record(fivePoints, samples, rng), Options{By: "method"})) {
					foundPoints++
				}
			}
			t.Logf("%-36s called changed %4d of %d; found %4d (5 %% of all time), %4d (5 points); median inflation %.2f; "+
				"without correction %d",
				m.name, called, pairs, found, foundPoints, inflation, alone)
			if allowed := int(math.Ceil(Risk*float64(pairs))) + 1; called > allowed && !m.beyond {
				t.Errorf("%d of %d pairs of the same program are called changed", called, pairs)
			}
			if m.mean == 0 && m.timed && !m.deep && foundPoints < pairs*90/100 {
				t.Errorf("only %d of %d changes of five points are found", foundPoints, pairs)
			}
		})
	}
}

// TestFivePoints: the meaning of "slower" in the log is right.
func TestFivePoints(t *testing.T) {
	share := func(p *program) (sum float64) {
		for _, s := range p.shares[120:] {
			sum += s
		}
		return sum
	}
	p := newProgram()
	if got := share(p); math.Abs(got-slowed) > 1e-9 {
		t.Errorf("%v", got)
	}
	if got := share(p.slower(0.05)); math.Abs(got-0.25/1.05) > 1e-9 {
		t.Errorf("%v", got)
	}
	if got := share(p.slower((slowed+0.05)/(1-slowed-0.05)*(1-slowed) - slowed)); math.Abs(got-0.25) > 1e-9 {
		t.Errorf("%v", got)
	}
}

// TestLongJobs: only the longest blocks show what lasts longer than a block, and there are few of them.
func TestLongJobs(t *testing.T) {
	p, rng := newProgram(), rand.New(rand.NewPCG(5, 6))
	for _, m := range models {
		independent := m.mean == 0
		if !m.timed || m.drift > 0 || !independent && m.name != "jobs of 100 samples, varied" {
			continue
		}
		const pairs = 4
		df, items := 0.0, 0
		for range pairs {
			r := compare(t, m.record(p, 10_000, rng), m.record(p, 10_000, rng), Options{By: "method"})
			for i := range r.evidence {
				if share := r.evidence[i].pooled(); share > 0.1 && share < 0.9 {
					df += r.evidence[i].df
					items++
				}
			}
		}
		df /= float64(items)
		const longest = 2 * (blocks>>3 - 1) // of both sides
		if independent && df < blocks || !independent && df > 2*longest {
			t.Errorf("%s: noise is known with %.0f degrees of freedom", m.name, df)
		}
	}
}

// TestMissed: if samples stay alike for exponential times, blocks of x such times show as much variance as the formula
// says.
func TestMissed(t *testing.T) {
	for _, x := range []float64{0.01, 0.1, 0.64, 1.5} {
		told := func(x float64) float64 { return 1 - x*(1-math.Exp(-1/x)) }
		half, whole := missed(told(x) / told(2*x))
		if math.Abs(half*told(2*x)-1) > 1e-6 || math.Abs(whole*told(x)-1) > 1e-6 {
			t.Errorf("%v: %v, %v", x, half, whole)
		}
	}
	if half, whole := missed(0.9); half > 1.01 || whole > 1.01 {
		t.Errorf("of nothing that lasts: %v, %v", half, whole)
	}
	if _, whole := missed(3); whole > 5 {
		t.Errorf("it has no bound: %v", whole)
	}
}
