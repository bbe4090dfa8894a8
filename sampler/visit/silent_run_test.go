//go:build linux

package visit

import (
	"errors"
	"fmt"
	"testing"

	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/sampler/wall"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// runTooLong is longer than the machine alone keeps any thread stopped: the machine may take goprof's CPU for a second
// while goprof holds a thread. The memory of a silent thread never answers, so a thread that is not released stays
// stopped as long as the run.
const runTooLong = 100 * ptrace.StandsAtMost

func TestSilentThreadsInARun(t *testing.T) {
	cpu := ctest.NeedCPU(t)
	for _, c := range []struct {
		name   string
		args   []string
		engine func(pid int) sampler.Engine
	}{
		{"cpu", nil, func(pid int) sampler.Engine { return New(pid, cpu) }},
		{"wall", nil, func(pid int) sampler.Engine { return wall.New(pid, cpu, wall.Options{}) }},
		{"wall, asleep", []string{"sleep"}, func(pid int) sampler.Engine { return wall.New(pid, cpu, wall.Options{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, silent, others := ctest.StartSilent(t, 3, c.args...)
			longest := ctest.Standing(p.PID, append(silent, others...))
			stats, of, err := sampletest.RunUntil(t, c.engine(p.PID), func(s sampler.Stats, of map[int]int) bool {
				return len(s.Silent) >= len(silent) && of[others[0]] >= 30 && of[others[1]] >= 30
			})
			most := longest()
			t.Logf("%d looks, %d taken, lost %v; longest pause %v, seen %v",
				stats.Attempted, stats.Taken, stats.Lost, stats.Pauses.Max(), most)
			if err != nil {
				t.Error(err)
			}
			if stats.Attempted != stats.Taken+stats.LostSum() {
				t.Error("the account does not add up")
			}
			if fmt.Sprint(stats.Silent) != fmt.Sprint(silent) || stats.Lost[ptrace.Silent] == 0 {
				t.Errorf("silent threads: %v, %d looks; they are %v", stats.Silent, stats.Lost[ptrace.Silent], silent)
			}
			for _, tid := range silent {
				if of[tid] > 0 {
					t.Errorf("%d samples of a silent thread", of[tid])
				}
			}
			for _, tid := range others {
				if of[tid] < 30 {
					t.Errorf("%d samples of another one", of[tid])
				}
			}
			if most > runTooLong || stats.Pauses.Max() > runTooLong {
				t.Errorf("a thread stood for %v", max(most, stats.Pauses.Max()))
			}
		})
	}
}

// TestTooManySilentThreads: the run ends, and keeps the samples that it has.
func TestTooManySilentThreads(t *testing.T) {
	p, silent, others := ctest.StartSilent(t, ptrace.MostSilent+3)
	longest := ctest.Standing(p.PID, append(silent, others...))
	stats, _, err := sampletest.RunUntil(t, New(p.PID, ctest.NeedCPU(t)), func(sampler.Stats,
		map[int]int) bool {
		return false
	})
	if !errors.Is(err, ptrace.ErrSilent) || len(stats.Silent) != ptrace.MostSilent {
		t.Errorf("%v, silent: %v of %v", err, stats.Silent, silent)
	}
	if most := longest(); most > runTooLong {
		t.Errorf("a thread stood for %v", most)
	}
}
