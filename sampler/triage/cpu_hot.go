package triage

import (
	"fmt"

	"goprof/profile"
)

// A program that uses CPU time does its work. It is suspect if it uses nearly all that a thread or the program can
// have, in very few methods: in a loop that does not end, a hash table with bad hashes, a regular expression that
// tries all ways.
const (
	hotCPUs    = 0.8 // of one CPU, less is no load that is felt
	hotMethods = 5   // more are not few: the work of a busy program is spread over dozens
	hotShare   = 0.6 // of the program's CPU time, in those methods
	// A thread counts as one that never rests if it had a CPU for alwaysBusy of the time. The time in which it wanted a
	// CPU and had none does not count. leastCPU is the least part of all of the time: a machine with fifty busy threads
	// for each CPU gives a thread that much.
	alwaysBusy = 0.9
	leastCPU   = 0.02
	// hotSamples is the number of samples from which hotShare is judged: with 25, a share of 60 % is known to within 20
	// points. The share of a loop that does not end is 100 %.
	hotSamples = 25
)

func cpuHot(x *exam) *suspicion {
	w := &x.work
	if x.CPU == nil {
		return x.cannotTell("there is no recording of CPU time")
	}
	if x.starved() {
		return x.cannotTell(starvedText)
	}
	busy := x.busyThreads()
	used := w.cpus(w.app)
	if used < hotCPUs && len(busy) == 0 || w.app < hotSamples {
		return nil
	}
	names, in := w.hottest()
	share := float64(in) / float64(w.app)
	if len(names) > hotMethods {
		return nil
	}
	s := &suspicion{sure: scaled(share, hotShare, 0.5, 0.8), severity: profile.Warning,
		claim: fmt.Sprintf("%s in %s: the program's threads use %.1f CPUs, and %s of that is spent there.",
			"CPU time is burnt", methodsText(names), used, percent(share)),
		next: fmt.Sprintf("goprof record --pid %d -d 30s && goprof flame out.collapsed", x.PID)}
	for _, name := range names {
		s.evidence = append(s.evidence, fmt.Sprintf("%s of the program's CPU time: %s",
			percent(float64(w.methods[name])/float64(w.app)), name))
	}
	if len(busy) > 0 {
		s.evidence = append(s.evidence, fmt.Sprintf("%s never at rest: %s", counted(len(busy), "thread"), few(busy, 4)))
	}
	pools := ranked(w.threads)
	s.evidence = append(s.evidence, fmt.Sprintf("%s of it in threads %s",
		percent(float64(w.threads[pools[0]])/float64(w.app)), pools[0]))
	return s
}

func methodsText(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%d methods, most in %s", len(names), names[0])
}

// hottest are the fewest methods that make up hotShare of the program's CPU time.
func (w *work) hottest() (names []string, samples int64) {
	for _, name := range ranked(w.methods) {
		if float64(samples) >= hotShare*float64(w.app) || len(names) > hotMethods {
			break
		}
		names, samples = append(names, name), samples+w.methods[name]
	}
	return names, samples
}

// busyThreads are the program's threads that never rest.
func (x *exam) busyThreads() (names []string) {
	for i := range x.Rates.Threads {
		t := &x.Rates.Threads[i]
		cpu, _ := t.CPU.Get()
		waited, _ := t.Waited.Get()
		if x.isApp(t.TID) && cpu >= leastCPU && cpu+waited >= alwaysBusy && cpu >= alwaysBusy*(1-waited) {
			names = append(names, t.Name)
		}
	}
	return names
}
