//go:build linux

package sampler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// runTooLong is a time for which no thread stands because of the machine: the machine may take goprof's CPU for a
// second while goprof holds a thread. The memory of a silent thread never answers, so a thread that is not let go
// stands as long as the run.
const runTooLong = 100 * ptrace.StandsAtMost

// runUntil samples until enough says so, for a minute at most. It returns how many looks came of each thread.
func runUntil(t *testing.T, e Engine, enough func(Stats, map[int]int) bool) (Stats, map[int]int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q := NewQueue(64)
	of := map[int]int{}
	var mu sync.Mutex
	var taken sync.WaitGroup
	taken.Go(func() {
		for snap := range q.Looks() {
			mu.Lock()
			of[snap.TID]++
			mu.Unlock()
			q.Done(snap)
		}
	})
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			stats := e.Stats()
			mu.Lock()
			ends := enough(stats, of)
			mu.Unlock()
			if ends {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	stats, err := e.Run(ctx, Config{Interval: 2 * time.Millisecond}, q)
	taken.Wait()
	return stats, of, err
}

func TestSilentThreadsInARun(t *testing.T) {
	cpu := ctest.NeedCPU(t)
	for _, c := range []struct {
		name   string
		args   []string
		engine func(pid int) Engine
	}{
		{"cpu", nil, func(pid int) Engine { return New(pid, cpu) }},
		{"wall", nil, func(pid int) Engine { return NewWall(pid, cpu, WallOptions{}) }},
		{"wall, asleep", []string{"sleep"}, func(pid int) Engine { return NewWall(pid, cpu, WallOptions{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, silent, others := ctest.StartSilent(t, 3, c.args...)
			longest := ctest.Standing(p.PID, append(silent, others...))
			stats, of, err := runUntil(t, c.engine(p.PID), func(s Stats, of map[int]int) bool {
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
	stats, _, err := runUntil(t, New(p.PID, ctest.NeedCPU(t)), func(Stats, map[int]int) bool { return false })
	if !errors.Is(err, ptrace.ErrSilent) || len(stats.Silent) != ptrace.MostSilent {
		t.Errorf("%v, silent: %v of %v", err, stats.Silent, silent)
	}
	if most := longest(); most > runTooLong {
		t.Errorf("a thread stood for %v", most)
	}
}
