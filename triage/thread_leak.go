package triage

import (
	"fmt"
	"regexp"

	"goprof/profile"
	"goprof/triage/vitals"
)

// A pool under load starts threads, too, but they work. Threads that leak start all the time, none of them ends, and
// they soon have nothing to do.
const (
	leakThreads = 30   // new threads during the examination; some thousands per hour
	leakSteps   = 3    // parts of the examination, in each of which some threads must start: a pool is filled at once
	leakAlive   = 0.95 // of the new threads, still alive at the end
	leakIdle    = 0.8  // of the threads that started in the first two thirds: those without CPU time in the last third
	// nearLimit is the used part of the kernel's limit from which on the limit is reported.
	nearLimit = 0.9
)

func threadLeak(x *exam) *suspicion {
	if len(x.Readings) <= leakSteps || len(x.first.Threads) == 0 {
		return x.cannotTell("its threads could not be listed often enough")
	}
	limit, cure, near := x.threadLimit()
	g := x.growth()
	if !g.leaks && !near {
		return nil
	}
	s := &suspicion{sure: 0.8, severity: profile.Warning,
		claim: fmt.Sprintf("Threads leak: %d new ones in %s that do nothing and stay; there are %d now.", g.alive,
			seconds(x.Span()), len(x.last.Threads)),
		next: fmt.Sprintf("goprof dump --pid %d  (who they are; then look for a pool that is made for each request)",
			x.PID)}
	if near {
		s.sure, s.severity = 0.9, profile.Critical
		if !g.leaks {
			s.claim = fmt.Sprintf("The process has %d threads, nearly as many as it may.", len(x.last.Threads))
		}
		s.evidence = append(s.evidence, limit)
		s.next += "; a higher limit: " + cure
	}
	for _, pool := range profile.ByCount(g.pools)[:min(3, len(g.pools))] {
		s.evidence = append(s.evidence, fmt.Sprintf("%d new threads %s", g.pools[pool], pool))
	}
	if started, ok := x.last.JVM.Threads.Started.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("%d Java threads started since the JVM did, %d live", started,
			x.last.JVM.Threads.Live.Or(0)))
	}
	return s
}

// growth describes the new threads.
type growth struct {
	alive int // at the end
	pools map[string]int
	leaks bool
}

func (x *exam) growth() (g growth) {
	g.pools = map[string]int{}
	n := len(x.Readings)
	steps := []*vitals.Reading{x.first, x.Readings[n/3], x.Readings[2*n/3], x.last}
	was := map[int]bool{}
	for i := range x.first.Threads {
		was[x.first.Threads[i].TID] = true
	}
	at := make([]map[int]*vitals.Thread, len(steps))
	for i, r := range steps {
		at[i] = map[int]*vitals.Thread{}
		for j := range r.Threads {
			if t := &r.Threads[j]; !was[t.TID] && t.Role == vitals.Application {
				at[i][t.TID] = t
			}
		}
	}
	last := at[len(at)-1]
	for _, t := range last {
		g.pools[kin(t.Name)]++
	}
	g.alive = len(last)
	g.leaks = g.alive >= leakThreads
	for i := 1; i < len(at); i++ {
		g.leaks = g.leaks && len(at[i]) >= len(at[i-1])+leakSteps
	}
	stayed, idle := 0, 0
	early := at[2]
	for tid, t := range early {
		now := last[tid]
		if now == nil {
			continue
		}
		stayed++
		if before, ok := t.CPU.Get(); ok && now.CPU.Or(before+1) == before {
			idle++
		}
	}
	g.leaks = g.leaks && float64(stayed) >= leakAlive*float64(len(early)) && float64(idle) >= leakIdle*float64(stayed)
	return g
}

var digits = regexp.MustCompile(`[0-9]+`)

// kin returns the common form of the names of threads whose pools are created one after the other: pool-*-thread-*.
func kin(name string) string { return digits.ReplaceAllString(name, "*") }

// threadLimit reports whether the limit of threads is nearly reached, and what raises it.
func (x *exam) threadLimit() (text, cure string, near bool) {
	if full, ok := x.last.Cgroup.Tasks.Full(); ok && full >= nearLimit {
		return fmt.Sprintf("its control group has %d of %d tasks", x.last.Cgroup.Tasks.Used.Or(0),
				x.last.Cgroup.Tasks.Max.Or(0)),
			"TasksMax= in its unit (a service) or --pids-limit (a container), and a restart", true
	}
	have, ok := x.last.Process.Threads.Get()
	may, ok2 := x.last.Process.ThreadLimit.Get()
	if ok && ok2 && may > 0 && float64(have) >= nearLimit*float64(may) {
		return fmt.Sprintf("%d of %d threads that it may have (ulimit -u, kernel.threads-max, kernel.pid_max)", have,
			may), x.higher("NPROC", "--nproc", 2*may) + "; or sysctl kernel.threads-max, kernel.pid_max", true
	}
	return "", "", false
}
