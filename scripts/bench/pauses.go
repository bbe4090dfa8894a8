//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// way is a profiler at a rate; the one without a profiler is the baseline.
type way struct {
	profiler
	hz int
}

func (w way) String() string {
	if w.profiler == nil {
		return "nobody looks"
	}
	return fmt.Sprintf("%s, %d Hz", w.name(), w.hz)
}

// ways are all profilers at all rates, and the baseline.
func (b *bench) ways(profilers ...profiler) []way {
	all := []way{{}}
	for _, hz := range b.rates {
		for _, p := range profilers {
			all = append(all, way{p, hz})
		}
	}
	return all
}

// pauseTrial is one target and all ways to look at it.
type pauseTrial struct {
	what   string
	target *program
	ways   []way
	rounds map[way][]*pauses
	base   []gaps
}

// pausesSection measures the pause as the target sees it.
func (b *bench) pausesSection() error {
	loop, stop := cLoop{b.dir}, ourLook{}
	c, err := startSpinC(b.dir)
	if err != nil {
		return err
	}
	defer c.end()
	trials := []*pauseTrial{{what: "A C thread that reads its clock", target: c, ways: b.ways(loop, stop)}}
	if b.java != "" {
		j, err := startSpinJava(b.dir, b.java)
		if err != nil {
			return err
		}
		defer j.end()
		trials = append(trials, &pauseTrial{what: "A Java thread that reads its clock", target: j,
			ways: b.ways(append([]profiler{loop, stop}, b.records()...)...)})
	}
	for _, t := range trials {
		t.rounds = map[way][]*pauses{}
	}
	for round := range b.rounds {
		b.progress("pauses: round %d of %d", round+1, b.rounds)
		for _, t := range trials {
			if err := t.round(b); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(b.out, "## Pauses, as the thread sees them")
	for _, t := range trials {
		t.print(b.out)
	}
	return nil
}

// round is one window of each way, in an order of its own. The other trial's thread rests meanwhile.
func (t *pauseTrial) round(b *bench) error {
	if err := t.target.rest(false); err != nil {
		return err
	}
	defer t.target.rest(true)
	var base gaps
	met := map[way]*pauses{}
	for _, i := range rand.Perm(len(t.ways)) {
		w := t.ways[i]
		window := b.window
		if w.hz > 0 && w.hz < 1000 {
			window *= 2 // or there are few stops in it
		}
		var g gaps
		r, err := b.during(t.target, w, window, func() (err error) {
			g, err = t.target.gaps(window)
			return err
		})
		if err != nil {
			return err
		}
		if w.profiler == nil {
			base = g
			continue
		}
		met[w] = &pauses{with: g, scale: window.Seconds() / b.window.Seconds(),
			stops: r.samples * window.Seconds() / r.wall.Seconds()}
	}
	t.base = append(t.base, base)
	for w, p := range met {
		p.without = base
		t.rounds[w] = append(t.rounds[w], p)
	}
	return nil
}

// mostLead is how long a profiler may need to begin. A window that it was too late for is repeated, with
// twice the time before it.
const mostLead = time.Minute

// during measures while a profiler runs.
func (b *bench) during(p *program, w way, window time.Duration, measure func() error) (result, error) {
	if w.profiler == nil {
		return result{}, measure()
	}
	for lead := b.lead; lead <= mostLead; lead *= 2 {
		end, err := w.begin(p, w.hz, lead+window+window/8)
		if err != nil {
			return result{}, err
		}
		time.Sleep(lead)
		measured := measure()
		r, err := end()
		if late := r.startup >= lead || err == errNoSamples; !late {
			return r, errors.Join(measured, err)
		} else if measured != nil {
			return result{}, measured
		}
		b.repeated++
	}
	return result{}, fmt.Errorf("%v: it does not start within %v", w, mostLead)
}

// yardstick is the C loop at the same rate.
func (t *pauseTrial) yardstick(w way) way {
	for _, y := range t.ways {
		if _, ok := y.profiler.(cLoop); ok && y.hz == w.hz {
			return y
		}
	}
	return w
}

func (t *pauseTrial) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s, %d bytes of its stack; %d rounds. us: median over the rounds [quartiles]; 'all': of all "+
		"rounds together.\n", t.what, t.target.bytes, len(t.base))
	fmt.Fprintf(out, "'ratio' is to the C loop of the same round. "+
		"'lost' is what a stop cost the thread in all, in us.\n\n")
	fmt.Fprintf(out, "%-30s %20s %20s %20s %9s %9s %20s %18s %18s %9s\n", "", "p50", "p90", "p99", "p50 all", "p99 all",
		"lost", "ratio p50", "ratio p99", "p99 all")
	for _, w := range t.ways {
		if w.profiler == nil {
			t.printBase(out, w)
			continue
		}
		y := t.yardstick(w)
		of := func(f func(p *pauses) float64) spread { return spreadOf(each(t.rounds[w], f)) }
		p50, p99 := quantileOf(0.5), quantileOf(0.99)
		all, allC := pool(t.rounds[w]), pool(t.rounds[y])
		fmt.Fprintf(out, "%-30s %20v %20v %20v %9.1f %9.1f %20v", w, of(p50), of(quantileOf(0.9)), of(p99),
			all.quantile(0.5)/1e3, all.quantile(0.99)/1e3, of(func(p *pauses) float64 { return p.lost() / 1e3 }))
		if y != w {
			fmt.Fprintf(out, " %18s %18s %9.2f", ratios(t.rounds[w], t.rounds[y], p50), ratios(t.rounds[w], t.rounds[y], p99),
				all.quantile(0.99)/allC.quantile(0.99))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\nGaps of so many us for each 1,000 stops, the baseline's subtracted:\n%-30s %s\n", "",
		histogramHead())
	for _, w := range t.ways[1:] {
		fmt.Fprintf(out, "%-30s %s\n", w, pool(t.rounds[w]).histogram())
	}
}

func (t *pauseTrial) printBase(out io.Writer, w way) {
	n := each(t.base, func(g gaps) float64 { return float64(len(g)) })
	var at [3][]float64
	for _, g := range t.base {
		for i, q := range []float64{0.5, 0.9, 0.99} {
			if len(g) > 0 {
				at[i] = append(at[i], float64(g[min(int(q*float64(len(g))), len(g)-1)])/1e3)
			}
		}
	}
	fmt.Fprintf(out, "%-30s %20v %20v %20v   its own gaps, %.0f in a window\n", w, spreadOf(at[0]), spreadOf(at[1]),
		spreadOf(at[2]), spreadOf(n).mid)
}

// quantileOf is in us.
func quantileOf(q float64) func(*pauses) float64 {
	return func(p *pauses) float64 { return p.quantile(q) / 1e3 }
}

func each[T any](rounds []T, f func(T) float64) (values []float64) {
	for _, r := range rounds {
		values = append(values, f(r))
	}
	return values
}

// ratios compares two ways round by round.
func ratios(ours, theirs []*pauses, f func(*pauses) float64) string {
	var values []float64
	for i := range ours {
		if d := f(theirs[i]); d > 0 {
			values = append(values, f(ours[i])/d)
		}
	}
	s := spreadOf(values)
	return fmt.Sprintf("%.2f [%.2f %.2f]", s.mid, s.low, s.high)
}

func (s spread) String() string { return fmt.Sprintf("%.1f [%.1f %.1f]", s.mid, s.low, s.high) }
