//go:build linux

package sampler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"goprof/process"
	"goprof/testdata/ctest"
)

// tooLong is when a thread has stood so long that it cannot be the machine's fault. Without a Runner it stands for
// ever.
const tooLong = 10 * StandsAtMost

func TestSilentThread(t *testing.T) {
	p, silent, others := ctest.StartSilent(t, 1)
	longest := ctest.Standing(p.PID, append(silent, others...))
	onTracer(t, p.PID, func(tr *Tracer) {
		if _, o := lookPatiently(tr, silent[0], 0); o != Silent {
			t.Fatalf("a look at it: %v", o)
		}
		if got := tr.Silent(); len(got) != 1 || got[0] != silent[0] {
			t.Errorf("silent threads: %v", got)
		}
		stops := tr.Pauses.Count()
		if _, o := lookPatiently(tr, silent[0], 0); o != Silent || tr.Pauses.Count() != stops {
			t.Errorf("the next look: %v, %d stops", o, tr.Pauses.Count()-stops)
		}
		if o := tr.LookUnstopped(silent[0], Hint{}, new(process.Snapshot)); o != Silent {
			t.Errorf("a look without a stop: %v", o)
		}
		for range 20 {
			if snap, o := lookPatiently(tr, others[0], 0); o != Taken || len(snap.Stack) == 0 {
				t.Errorf("a look at another one: %v, %d bytes", o, len(snap.Stack))
			}
		}
		p.In.Write([]byte("\n"))
		p.Line(t)
		ctest.Eventually(t, "its memory answers, so it is looked at again", func() bool {
			snap, o := lookPatiently(tr, silent[0], 0)
			return o == Taken && len(snap.Stack) == unknownStack
		})
	})
	if most := longest(); most > tooLong {
		t.Errorf("a thread stood for %v", most)
	} else {
		t.Logf("the longest that a thread was seen to stand: %v", most)
	}
}

// runFor samples for a while and returns how many snapshots of each thread came.
func runFor(t *testing.T, e Engine, d time.Duration, interval time.Duration) (Stats, map[int]int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	q := NewQueue(64)
	of := map[int]int{}
	var taken sync.WaitGroup
	taken.Go(func() {
		for snap := range q.Snapshots() {
			of[snap.TID]++
			q.Done(snap)
		}
	})
	stats, err := e.Run(ctx, Config{Interval: interval}, q)
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
			stats, of, err := runFor(t, c.engine(p.PID), 2*time.Second, 2*time.Millisecond)
			most := longest()
			t.Logf("%d looks, %d taken, lost %v; longest pause %v, seen %v",
				stats.Attempted, stats.Taken, stats.Lost, stats.Pauses.Max(), most)
			if err != nil {
				t.Error(err)
			}
			if stats.Attempted != stats.Taken+stats.LostSum() {
				t.Error("the account does not add up")
			}
			if fmt.Sprint(stats.Silent) != fmt.Sprint(silent) || stats.Lost[Silent] == 0 {
				t.Errorf("silent threads: %v, %d looks; they are %v", stats.Silent, stats.Lost[Silent], silent)
			}
			for _, tid := range silent {
				if of[tid] > 0 {
					t.Errorf("%d samples of a silent thread", of[tid])
				}
			}
			for _, tid := range others {
				if of[tid] < 5 {
					t.Errorf("%d samples of another one", of[tid])
				}
			}
			if most > tooLong || stats.Pauses.Max() > tooLong {
				t.Errorf("a thread stood for %v", max(most, stats.Pauses.Max()))
			}
		})
	}
}

// TestTooManySilentThreads: a run ends, with what it has.
func TestTooManySilentThreads(t *testing.T) {
	p, silent, others := ctest.StartSilent(t, mostSilent+3)
	longest := ctest.Standing(p.PID, append(silent, others...))
	stats, _, err := runFor(t, New(p.PID, ctest.NeedCPU(t)), time.Minute, 2*time.Millisecond)
	if !errors.Is(err, ErrSilent) || len(stats.Silent) != mostSilent {
		t.Errorf("%v, silent: %v of %v", err, stats.Silent, silent)
	}
	if most := longest(); most > tooLong {
		t.Errorf("a thread stood for %v", most)
	}
}

// TestSilentThreadsInADump: all are looked at, or named.
func TestSilentThreadsInADump(t *testing.T) {
	p, silent, others := ctest.StartSilent(t, mostSilent-1)
	longest := ctest.Standing(p.PID, append(silent, others...))
	var looks []Subject
	for _, tid := range append(append([]int{}, silent...), others...) {
		looks = append(looks, Subject{TID: tid})
	}
	became := map[int]Outcome{}
	onTracer(t, p.PID, func(tr *Tracer) {
		All(tr, time.Second, looks, func(snap *process.Snapshot, o Outcome) { became[snap.TID] = o })
	})
	for _, tid := range silent {
		if o := became[tid]; o != Silent && o != TimedOut { // on a busy machine it may have had no CPU to stop on
			t.Errorf("a silent thread: %v", o)
		}
	}
	for _, tid := range others {
		if o := became[tid]; o != Taken && o != TimedOut {
			t.Errorf("another one: %v", o)
		}
	}
	if most := longest(); most > tooLong {
		t.Errorf("a thread stood for %v", most)
	}
}
