//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// working is how many threads of a crowd work.
const working = 20

// crowdSection measures what goprof as a whole uses beside a JVM of many threads: those that use CPU time at
// 100 Hz, and all of them at 10 Hz.
func (b *bench) crowdSection() error {
	type trial struct {
		record
		hz int
	}
	trials := []trial{{record{b.goprofs[0], b.dir, "", "", ""}, 100}}
	if b.can("wall") {
		trials = append(trials, trial{record{b.goprofs[0], b.dir, "", "", "wall"}, 10})
	}
	rounds := (b.rounds + 4) / 5 // each is long
	share := map[trial]map[int][]float64{}
	for _, t := range trials {
		share[t] = map[int][]float64{}
	}
	for _, n := range b.crowds {
		if n <= working {
			continue
		}
		p, err := startJava(b.dir, b.java, "Crowd", strconv.Itoa(n), strconv.Itoa(working))
		if err != nil {
			return err
		}
		for round := range rounds {
			b.progress("a crowd of %d: round %d of %d", n, round+1, rounds)
			for _, i := range rand.Perm(len(trials)) {
				t := trials[i]
				cpu, err := b.steadyShare(p, t.record, t.hz)
				if err != nil {
					p.end()
					return err
				}
				share[t][n] = append(share[t][n], cpu)
			}
		}
		p.end()
	}
	fmt.Fprintf(b.out, "\n## A JVM of many threads, of which %d work: all of goprof, in %% of one CPU; %d rounds\n\n",
		working, rounds)
	for _, t := range trials {
		for _, n := range b.crowds {
			if s := share[t][n]; len(s) > 0 {
				fmt.Fprintf(b.out, "%-30s %6d threads %24v\n", way{t.record, t.hz}, n, spreadOf(s))
			}
		}
	}
	return nil
}

// steadyShare is what goprof uses once it has met all threads.
func (b *bench) steadyShare(p *program, r record, hz int) (float64, error) {
	if err := p.rest(false); err != nil {
		return 0, err
	}
	defer p.rest(true)
	u, err := b.usedAt(p, r, hz)
	return 100 * u.ours.Seconds() / max(u.wall.Seconds(), 1e-9), err
}
