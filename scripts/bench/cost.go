//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"
)

// crowds are numbers of threads that sleep.
var crowds = []int{1, 100, 1000, 10000}

// idleSection measures what threads cost that sleep: one program, with so many of them.
func (b *bench) idleSection() error {
	programs := map[int]*program{}
	for _, n := range b.crowds {
		p, err := start(filepath.Join(b.dir, "idle"), strconv.Itoa(n))
		if err != nil {
			return err
		}
		defer p.end()
		if err := p.ready(); err != nil {
			return err
		}
		programs[n] = p
	}
	const hz = 100
	perSecond, perThread := map[int][]float64{}, map[int][]float64{}
	for round := range b.rounds {
		b.progress("idle threads: round %d of %d", round+1, b.rounds)
		alone := 0.0
		for i, at := range append([]int{0}, plus1(rand.Perm(len(b.crowds)-1))...) { // the first is subtracted from the others
			n := b.crowds[at]
			cpu, err := scanCost(programs[n], hz, b.window)
			if err != nil {
				return err
			}
			perSecond[n] = append(perSecond[n], cpu.Seconds()*1e3)
			if i == 0 {
				alone = cpu.Seconds()
				continue
			}
			perThread[n] = append(perThread[n], (cpu.Seconds()-alone)*1e6/float64(n))
		}
	}
	fmt.Fprintf(b.out, "\n## Threads that sleep: the sampling thread's CPU time at %d Hz\n\n%10s %34s %34s\n", hz,
		"threads", "ms a second", "us a second for each thread")
	for _, n := range b.crowds {
		fmt.Fprintf(b.out, "%10d %34v %34v\n", n, spreadOf(perSecond[n]), spreadOf(perThread[n]))
	}
	return nil
}

func plus1(v []int) []int {
	for i := range v {
		v[i]++
	}
	return v
}

// scanCost is the CPU time of a second.
func scanCost(p *program, hz int, d time.Duration) (time.Duration, error) {
	end, err := noWalk{}.begin(p, hz, d)
	if err != nil {
		return 0, err
	}
	r, err := end()
	return time.Duration(float64(r.cpu) / d.Seconds()), err
}

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
	fast := []profiler{cLoop{b.dir}, ourLook{}}
	rate, cpu := map[string][]float64{}, map[string][]float64{}
	rounds := (b.rounds + 2) / 3 // each is long
	for round := range rounds {
		b.progress("rate: round %d of %d", round+1, rounds)
		for _, i := range rand.Perm(len(fast)) {
			r, err := runAlone(p, fast[i], 0, b.window)
			if err != nil {
				return err
			}
			name := fast[i].name()
			rate[name] = append(rate[name], r.samples/r.wall.Seconds())
			cpu[name] = append(cpu[name], r.cpu.Seconds()*1e6/max(r.samples, 1))
		}
		for _, rec := range b.records() {
			const hz = 10_000
			r, err := runAlone(p, rec, hz, b.window)
			if err != nil {
				return err
			}
			rate[rec.name()] = append(rate[rec.name()], r.samples/r.wall.Seconds())
			// What it costs to begin is no cost of a sample: it is in both of these.
			for _, hz := range b.rates {
				short, err := runAlone(p, rec, hz, b.window)
				if err != nil {
					return err
				}
				long, err := runAlone(p, rec, hz, 4*b.window)
				if err != nil {
					return err
				}
				name := way{rec, hz}.String()
				cpu[name] = append(cpu[name], (long.cpu-short.cpu).Seconds()*1e6/max(long.samples-short.samples, 1))
			}
		}
	}
	fmt.Fprintf(b.out, "\n## Samples a second, as fast as it goes (goprof record: 10,000 asked); %d rounds\n\n", rounds)
	for _, f := range append(fast, b.records()...) {
		s := spreadOf(rate[f.name()])
		fmt.Fprintf(b.out, "%-30s %8.0f [%.0f %.0f]\n", f.name(), s.mid, s.low, s.high)
	}
	fmt.Fprintf(b.out, "\n## CPU time of a sample, in us, with the walk where there is one\n\n")
	for _, f := range fast {
		fmt.Fprintf(b.out, "%-30s %v\n", f.name()+", as fast as it goes", spreadOf(cpu[f.name()]))
	}
	for _, rec := range b.records() {
		for _, hz := range b.rates {
			w := way{rec, hz}
			fmt.Fprintf(b.out, "%-30s %v\n", w, spreadOf(cpu[w.String()]))
		}
	}
	return nil
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
