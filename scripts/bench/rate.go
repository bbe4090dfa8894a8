//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// rates is what the rounds of the section for rates have measured. A way of 0 Hz is as fast as it goes.
type rates struct {
	rate map[way][]float64 // samples a second
	cpu  map[way][]float64 // CPU time of a sample, in us
}

// asFastAs is the rate of goprof that stands for as fast as it goes.
const asFastAs = 10_000

// rateSection measures how fast it can go, and the CPU time of a sample.
func (b *bench) rateSection() error {
	p, err := startSpinJava(b.dir, b.java)
	if err != nil {
		return err
	}
	defer p.end()
	if err := p.rest(false); err != nil {
		return err
	}
	r := rates{rate: map[way][]float64{}, cpu: map[way][]float64{}}
	rounds := (b.rounds + 2) / 3 // each is long
	for round := range rounds {
		b.progress("rate: round %d of %d", round+1, rounds)
		if err := r.round(b, p); err != nil {
			return err
		}
	}
	r.print(b, rounds)
	return nil
}

// fastest are the ways that go as fast as they can.
func (b *bench) fastest() []way {
	all := []way{{cLoop{b.dir}, 0}, {ourLook{}, 0}}
	for _, rec := range b.records() {
		all = append(all, way{rec, asFastAs})
	}
	return all
}

// yardsticks are the C loops of the section for rates. goprof has real-time priority where that is permitted.
func (b *bench) yardsticks() []profiler {
	all := []profiler{cLoop{b.dir}}
	if os.Geteuid() == 0 {
		all = append(all, urgentLoop{b.dir})
	}
	return all
}

func (b *bench) steady() []way { return b.ways(append(b.yardsticks(), b.records()...)...)[1:] }

// round measures each way once, in an order of its own.
func (r *rates) round(b *bench, p *program) error {
	fastest, steady := b.fastest(), b.steady()
	for _, i := range rand.Perm(len(fastest) + len(steady)) {
		var err error
		if i < len(fastest) {
			err = r.goFast(b, p, fastest[i])
		} else {
			err = r.goSteady(b, p, steady[i-len(fastest)])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *rates) goFast(b *bench, p *program, w way) error {
	got, err := runAlone(p, w.profiler, w.hz, b.window)
	if err != nil {
		return err
	}
	r.rate[w] = append(r.rate[w], got.samples/got.wall.Seconds())
	if w.hz == 0 {
		r.cpu[w] = append(r.cpu[w], got.cpu.Seconds()*1e6/max(got.samples, 1))
	}
	return nil
}

// goSteady measures at a rate. The loops look at each tick of the clock, and goprof at each tick of the CPU time that
// the program has used.
func (r *rates) goSteady(b *bench, p *program, w way) error {
	u, err := b.usedAt(p, w.profiler.(process), w.hz)
	if err != nil {
		return err
	}
	ticks := u.wall
	if _, ours := w.profiler.(record); ours {
		ticks = u.theirs
	}
	r.cpu[w] = append(r.cpu[w], u.ours.Seconds()*1e6/(ticks.Seconds()*float64(w.hz)))
	return nil
}

func (r *rates) print(b *bench, rounds int) {
	fmt.Fprintf(b.out, "\n## Samples a second, as fast as it goes (goprof record: %d asked); %d rounds\n\n", asFastAs,
		rounds)
	for _, w := range b.fastest() {
		s := spreadOf(r.rate[w])
		fmt.Fprintf(b.out, "%-36s %8.0f [%.0f %.0f]\n", w.name(), s.mid, s.low, s.high)
	}
	fmt.Fprintf(b.out, "\n## CPU time of a sample, in us, with the walk where there is one; %d rounds\n\n"+
		"The ratios are to the C loops at the same rate, of the same round.\n\n%-36s %20s", rounds, "", "us")
	for _, y := range b.yardsticks() {
		fmt.Fprintf(b.out, " %28s", "to "+y.name())
	}
	fmt.Fprintln(b.out)
	for _, w := range b.fastest() {
		if w.hz == 0 {
			fmt.Fprintf(b.out, "%-36s %20v\n", w.name()+", as fast as it goes", spreadOf(r.cpu[w]))
		}
	}
	for _, w := range b.steady() {
		r.printCost(b, w)
	}
}

// printCost prints what a sample costs at a rate; of goprof beside the C loops.
func (r *rates) printCost(b *bench, w way) {
	fmt.Fprintf(b.out, "%-36s %20v", w, spreadOf(r.cpu[w]))
	if _, ours := w.profiler.(record); ours {
		for _, y := range b.yardsticks() {
			fmt.Fprintf(b.out, " %28s", ratiosOf(r.cpu[w], r.cpu[way{y, w.hz}]))
		}
	}
	fmt.Fprintln(b.out)
}

// ratiosOf is how many times theirs ours are, round by round. A round in which theirs is nothing has no ratio.
func ratiosOf(ours, theirs []float64) string {
	var values []float64
	for i := range ours {
		if theirs[i] > 0 {
			values = append(values, ours[i]/theirs[i])
		}
	}
	s := spreadOf(values)
	return fmt.Sprintf("%.2f [%.2f %.2f]", s.mid, s.low, s.high)
}

// runAlone lets a profiler run for so long, and no longer.
func runAlone(p *program, with profiler, hz int, d time.Duration) (result, error) {
	end, err := with.begin(p, hz, d)
	if err != nil {
		return result{}, err
	}
	r, err := end()
	if err == errNoSamples {
		return result{wall: d}, nil
	}
	return r, err
}
