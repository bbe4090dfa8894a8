//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
)

// slowdownSection measures what a piece of work costs its thread in CPU time, with a profiler and without.
// Windows with one stand between two without, which show how the machine drifts.
func (b *bench) slowdownSection() error {
	p, err := startJava(b.dir, b.java, "Work")
	if err != nil {
		return err
	}
	defer p.end()
	if _, err := p.window(b.warm); err != nil {
		return err
	}
	all := b.ways(b.beside()...)[1:]
	differences := map[way][]float64{}
	var pieces []float64
	for round := range b.pairs {
		b.progress("slowdown: round %d of %d", round+1, b.pairs)
		before, err := b.pieceOfWork(p, way{})
		if err != nil {
			return err
		}
		for _, i := range rand.Perm(len(all)) {
			with, err := b.pieceOfWork(p, all[i])
			if err != nil {
				return err
			}
			after, err := b.pieceOfWork(p, way{})
			if err != nil {
				return err
			}
			differences[all[i]] = append(differences[all[i]], 100*(2*with/(before+after)-1))
			pieces = append(pieces, after)
			before = after
		}
	}
	b.printSlowdown(all, differences, pieces)
	return nil
}

// pieceOfWork is what one costs in a window, in ns.
func (b *bench) pieceOfWork(p *program, w way) (float64, error) {
	var n []int64
	_, err := b.during(p, w, b.window, func() (err error) {
		n, err = p.window(b.window)
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

func (b *bench) printSlowdown(all []way, differences map[way][]float64, pieces []float64) {
	fmt.Fprintf(b.out, "\n## Slowdown: CPU time of the thread for each piece of work\n\n"+
		"Two busy threads, pieces of %.2f ms; %d windows of %v of each, between two without a profiler.\n"+
		"%%: Hodges-Lehmann estimate [95 %% confidence]; median [quartiles].\n\n", spreadOf(pieces).mid/1e6, b.pairs,
		b.window)
	for _, w := range all {
		e, s := shift(differences[w]), spreadOf(differences[w])
		fmt.Fprintf(b.out, "%-30s %6.2f [%5.2f %5.2f]   %6.2f [%5.2f %5.2f]\n", w, e.at, e.low, e.high, s.mid, s.low, s.high)
	}
}

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
