//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/visit"
)

// benchLook is our stop without a walk: what loop.c does, by ptrace.Tracer. It runs in a process of its own, and
// prints what loop.c prints.
func benchLook(pid, tid int, top uint64, hz, seconds float64) {
	ptrace.OnOwnThread(func() {
		t := ptrace.NewTracer(pid, cpus.Here())
		defer t.Close()
		snap := new(look.Look)
		taken := 0
		interval := time.Duration(0) // as fast as it goes
		if hz > 0 {
			interval = time.Duration(float64(time.Second) / hz)
		}
		for at, end := monotonic(), monotonic()+time.Duration(seconds*float64(time.Second)); at < end; at += interval {
			sleepUntil(at)
			if lookPatiently(t, tid, top, snap) == ptrace.Taken {
				taken++
			}
			if interval == 0 {
				at = monotonic()
			}
		}
		fmt.Println(taken, clock(unix.CLOCK_PROCESS_CPUTIME_ID).Nanoseconds())
	})
}

// lookPatiently collects the stop if it comes late.
func lookPatiently(t *ptrace.Tracer, tid int, top uint64, snap *look.Look) ptrace.Outcome {
	o := t.Look(tid, ptrace.Hint{StackTop: top}, snap)
	for o == ptrace.Pending {
		sleepUntil(monotonic() + t.Patience())
		if _, got, ok := t.Collect(); ok {
			o = got
		}
	}
	return o
}

func lookOnce(pid, tid int, top uint64) (*look.Look, error) {
	snap := new(look.Look)
	var err error
	ptrace.OnOwnThread(func() {
		t := ptrace.NewTracer(pid, cpus.Here())
		defer t.Close()
		if o := lookPatiently(t, tid, top, snap); o != ptrace.Taken {
			err = errors.Join(fmt.Errorf("a look at thread %d: %v", tid, o), t.Err())
		}
	})
	return snap, err
}

// scan is a recording without walks. It prints the ticks that it has held and the CPU time that they took.
func scan(pid int, hz, seconds float64) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds*float64(time.Second)))
	defer cancel()
	s, q := visit.New(pid, cpus.Here()), sampler.NewQueue(8)
	go func() {
		for snap := range q.Looks() {
			q.Done(snap)
		}
	}()
	stats, err := s.Run(ctx, sampler.Config{Interval: time.Duration(float64(time.Second) / hz)}, q)
	if err == nil {
		fmt.Println(stats.Ticks, stats.CPU.Nanoseconds(), stats.Threads)
	}
	return err
}

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

func monotonic() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

func sleepUntil(at time.Duration) {
	ts := unix.NsecToTimespec(int64(at))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
	}
}
