//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
)

// slowdownSection measures what a piece of work costs its thread in CPU time, with a profiler and without.
// Each pair is four windows, the inner two of the other kind than the outer two, so that a drift of the machine
// cancels out.
func (b *bench) slowdownSection() error {
	p, err := startJava(b.dir, b.java, "Work")
	if err != nil {
		return err
	}
	defer p.end()
	if _, err := p.window(b.warm); err != nil {
		return err
	}
	all := ways(b.beside()...)[1:]
	differences := map[way][]float64{}
	var pieces []float64
	cost := func(w way) (float64, error) {
		var n []int64
		_, err := b.during(p, w, b.slowWindow, func() (err error) {
			n, err = p.window(b.slowWindow)
			return err
		})
		if err != nil {
			return 0, err
		}
		if len(n) != 2 || n[0] == 0 {
			return 0, fmt.Errorf("no piece of work was done: %v", n)
		}
		return float64(n[1]) / float64(n[0]), nil
	}
	for round := range b.pairs {
		b.progress("slowdown: round %d of %d", round+1, b.pairs)
		for _, i := range rand.Perm(len(all)) {
			w, base := all[i], way{}
			order := []way{base, w, w, base}
			if rand.IntN(2) == 1 {
				order = []way{w, base, base, w}
			}
			sum := map[way]float64{}
			for _, x := range order {
				c, err := cost(x)
				if err != nil {
					return err
				}
				sum[x] += c
			}
			differences[w] = append(differences[w], 100*(sum[w]/sum[base]-1))
			pieces = append(pieces, sum[base]/2)
		}
	}
	fmt.Fprintf(b.out, "\n## Slowdown: CPU time of the thread for each piece of work\n\n"+
		"Two busy threads, pieces of %.2f ms; %d pairs of 2 x %v with a profiler and without.\n"+
		"%%: Hodges-Lehmann estimate [95 %% confidence]; median [quartiles] of the pairs.\n\n", spreadOf(pieces).mid/1e6, b.pairs, b.slowWindow)
	for _, w := range all {
		e, s := shift(differences[w]), spreadOf(differences[w])
		fmt.Fprintf(b.out, "%-30s %6.2f [%5.2f %5.2f]   %6.2f [%5.2f %5.2f]\n", w, e.at, e.low, e.high, s.mid, s.low, s.high)
	}
	return nil
}

// beside are all profilers of a JVM that are at hand.
func (b *bench) beside() []profiler {
	all := append([]profiler{cLoops{b.dir}, noWalk{}}, b.records()...)
	if b.async != "" {
		all = append(all, asyncProfiler{b.async, b.dir})
	}
	if b.jfr {
		all = append(all, jfr{b.java, b.dir})
	}
	return all
}
