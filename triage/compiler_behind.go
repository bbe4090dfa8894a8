package triage

import (
	"fmt"

	"goprof/profile"
	"goprof/triage/vitals"
)

// A starting program queues thousands of methods, and its compilers catch up within a minute. Later, methods are queued
// one by one. If a queue is long and only grows, its compiler gets no CPU, or is busy with one huge method. That does
// harm if the program runs in the interpreter meanwhile.
const (
	longQueue = 200 // methods, in all readings
	// slowShare is the least part of the program's CPU time in the interpreter. It is below one tenth in programs that
	// are compiled.
	slowShare = 0.3
)

func compilerBehind(x *exam) *suspicion {
	if x.CPU == nil {
		return x.cannotTell("there is no recording of CPU time")
	}
	if x.starved() {
		return x.cannotTell(starvedText)
	}
	slow := float64(x.work.slow) / float64(max(x.work.app, 1))
	if x.work.app < leastSamples || slow < slowShare {
		return nil
	}
	age, ok := x.last.JVM.Uptime.Get()
	if !ok || age < settled {
		return x.cannotTell(fmt.Sprintf("the JVM is younger than %s, and compiles as every program that starts",
			seconds(settled)))
	}
	first, ok := x.first.JVM.Code.Queues.Get()
	last, ok2 := x.last.JVM.Code.Queues.Get()
	if !ok || !ok2 || len(first) != len(last) {
		return x.cannotTell("the queues of the compilers could not be read")
	}
	for i, q := range last {
		if x.growing(i) {
			return x.behind(first[i].Length, q, slow)
		}
	}
	return nil
}

// growing reports whether a queue is long in all readings, and is never shorter than in the reading before.
func (x *exam) growing(i int) bool {
	before, all := longQueue, len(x.Readings) > 2
	for _, r := range x.Readings {
		queues, ok := r.JVM.Code.Queues.Get()
		if !ok || i >= len(queues) || queues[i].Length < before {
			return false
		}
		before = queues[i].Length
	}
	return all && x.first.JVM.Code.Queues.Or(nil)[i].Length < before
}

func (x *exam) behind(before int, q vitals.CompileQueue, slow float64) *suspicion {
	s := &suspicion{sure: 0.8, severity: profile.Warning,
		claim: fmt.Sprintf("The JVM's compiler %s does not keep up: %d methods wait for it, and %s of the program's CPU "+
			"time is in the interpreter.", q.Compiler, q.Length, percent(slow)),
		evidence: []string{fmt.Sprintf("%d methods waited at the beginning, %d at the end", before, q.Length)},
		next:     fmt.Sprintf("goprof record --pid %d --threads -d 30s  (do the compiler threads get CPU?)", x.PID)}
	if waited, ok := q.Waited.Get(); ok && q.Oldest != "" {
		s.evidence = append(s.evidence, fmt.Sprintf("%s has waited for %s", q.Oldest, seconds(waited)))
	}
	for _, c := range x.last.JVM.Code.Current {
		for _, was := range x.first.JVM.Code.Current {
			if c == was {
				s.evidence = append(s.evidence, fmt.Sprintf("%s compiles %s, at the beginning and at the end", c.Thread,
					c.Method))
			}
		}
	}
	s.evidence = append(s.evidence, fmt.Sprintf("compiler threads used %.2f CPUs", x.work.cpus(x.work.compiler)))
	return s
}
