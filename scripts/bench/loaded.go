//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// stops is how long a profiler held a thread up, stop by stop, and how long the thread then waited for a CPU, in us
// and sorted.
type stops struct{ held, wait []float64 }

// threadsName is the name of a profiler's threads, by which stops.c knows them.
func threadsName(p profiler) string {
	if r, ok := p.(record); ok {
		return filepath.Base(r.goprof)
	}
	return "loop"
}

// loadedSection measures pauses where CPUs are short. There a thread sees gaps all the time, and long ones. So the
// kernel's own events say how much of them is a profiler's doing (stops.c).
func (b *bench) loadedSection() error {
	if err := canTrace(); err != nil {
		b.progress("without the pauses beside busy programs: %v", err)
		return nil
	}
	p, err := startSpinJava(b.dir, b.java)
	if err != nil {
		return err
	}
	defer p.end()
	load, err := start(filepath.Join(b.dir, "burn"), strconv.Itoa(b.loops))
	if err != nil {
		return err
	}
	defer load.end()
	if err := errors.Join(load.ready(), p.rest(false)); err != nil {
		return err
	}
	all := b.ways(slices.Concat([]profiler{urgentLoop{b.dir}}, b.stopping())...)[1:]
	rounds := map[way][]stops{}
	for round := range b.rounds {
		b.progress("beside busy programs: round %d of %d", round+1, b.rounds)
		for _, i := range rand.Perm(len(all)) {
			s, err := b.stopsBy(p, all[i])
			if err != nil {
				return err
			}
			rounds[all[i]] = append(rounds[all[i]], s)
		}
	}
	b.printLoaded(all, rounds)
	return nil
}

// canTrace says what stops.c lacks here.
func canTrace() error {
	_, err := os.Stat("/sys/kernel/tracing/events/sched/sched_switch/id")
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("the kernel's events are not there (mount -t tracefs none /sys/kernel/tracing)")
	}
	return err
}

// stopping are the ways of goprof that stop a thread.
func (b *bench) stopping() (all []profiler) {
	for _, p := range b.records() {
		if p.(record).engine != "perf" {
			all = append(all, p)
		}
	}
	return all
}

// loadedWindow is longer than others, for the thread has a small part of it.
func (b *bench) loadedWindow() time.Duration { return 4 * b.window }

// stopsBy is one window, in which a profiler looks at the thread.
func (b *bench) stopsBy(p *program, w way) (s stops, err error) {
	window := b.loadedWindow()
	_, err = b.during(p, w, window+time.Second, func() error {
		s, err = b.traceStops(p.tid, window, threadsName(w.profiler))
		return err
	})
	return s, err
}

func (b *bench) traceStops(tid int, d time.Duration, name string) (s stops, err error) {
	trace, err := start(filepath.Join(b.dir, "stops"), strconv.Itoa(tid), seconds(d), name)
	if err != nil {
		return s, err
	}
	defer trace.end()
	if err := trace.ready(); err != nil {
		return s, err
	}
	n, err := trace.numbers()
	if err != nil {
		return s, err
	}
	if len(n) != 1+2*int(n[0]) {
		return s, errors.New("stops has said less than it promised")
	}
	for i := 1; i < len(n); i += 2 {
		s.held = append(s.held, float64(n[i])/1e3)
		s.wait = append(s.wait, float64(n[i+1])/1e3)
	}
	slices.Sort(s.held)
	slices.Sort(s.wait)
	return s, nil
}

func (b *bench) printLoaded(all []way, rounds map[way][]stops) {
	fmt.Fprintf(b.out, "\n## Pauses beside %d busy programs, as the kernel sees them; %d rounds, us\n\n", b.loops,
		b.rounds)
	fmt.Fprintf(b.out, "'held': from the loss of the CPU to the profiler until it lets the thread go; 'wait': from there "+
		"until the thread has a CPU.\n'in all': held, in ms for each second. 'ratio' is to the C loop of the same round: of "+
		"a stop's mean, and of all stops.\n\n")
	fmt.Fprintf(b.out, "%-36s %14s %20s %20s %20s %9s %20s %18s %18s %20s\n", "", "", "held, mean", "p50", "p99",
		"longest", "in all", "ratio", "ratio in all", "wait, mean")
	for i, w := range all {
		of := func(f func(stops) float64) spread { return spreadOf(each(rounds[w], f)) }
		heldAt := func(q float64) func(stops) float64 { return func(s stops) float64 { return quantile(s.held, q) } }
		n := 0
		for _, s := range rounds[w] {
			n += len(s.held)
		}
		inAll := of(func(s stops) float64 { return sum(s.held) / 1e3 / b.loadedWindow().Seconds() })
		fmt.Fprintf(b.out, "%-36s %8d stops %20v %20v %20v %9.0f %20v", w, n, of(meanHeld), of(heldAt(0.5)),
			of(heldAt(0.99)), slices.Max(each(rounds[w], heldAt(1))), inAll)
		theirs := rounds[yardstickOf(all[:i], w)]
		fmt.Fprintf(b.out, " %18s %18s %20v\n", heldRatios(rounds[w], theirs, meanHeld),
			heldRatios(rounds[w], theirs, allHeld), of(meanWait))
	}
}

// yardstickOf is the loop at the same rate.
func yardstickOf(before []way, w way) way {
	for _, y := range before {
		if _, ok := y.profiler.(urgentLoop); ok && y.hz == w.hz {
			return y
		}
	}
	return w
}

func heldRatios(ours, theirs []stops, of func(stops) float64) string {
	return ratiosOf(each(ours, of), each(theirs, of))
}

func meanHeld(s stops) float64 { return sum(s.held) / float64(max(len(s.held), 1)) }

func meanWait(s stops) float64 { return sum(s.wait) / float64(max(len(s.wait), 1)) }

func allHeld(s stops) float64 { return sum(s.held) }

func sum(values []float64) (all float64) {
	for _, v := range values {
		all += v
	}
	return all
}
