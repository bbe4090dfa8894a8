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

func scanCost(p *program, hz int, d time.Duration) (time.Duration, error) {
	end, err := noWalk{}.begin(p, hz, d)
	if err != nil {
		return 0, err
	}
	r, err := end()
	return time.Duration(float64(r.cpu) / d.Seconds()), err
}
