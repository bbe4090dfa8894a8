//go:build linux

package visit

import (
	"math"
	"testing"
	"time"

	"goprof/sampler/stops"
)

// The threads of TestPlanShares. Each number from bursts on stands for a hundred threads.
const (
	nobody = iota
	spins
	inStep
	longRequests
	shortRequests
	briefLives
	bursts
)

// ranAt returns which thread runs on a CPU at a moment.
func ranAt(cpu int, at, interval int64) int {
	either := func(period, first int64, one, other int) int {
		if at%period < first {
			return one
		}
		return other
	}
	const us = int64(time.Microsecond)
	switch cpu {
	case 0: // never rests
		return spins
	case 1: // half of each interval
		return either(interval, interval/2, inStep, nobody)
	case 2: // 0.2 ms of 20 ms each
		return bursts + int(at%(20_000*us)/(200*us))
	case 3: // a request of each pool in turn
		return either(300*us, 200*us, longRequests, shortRequests)
	}
	// each 20 ms, and the next one comes 3 ms later
	return either(23_000*us, 20_000*us, briefLives, nobody)
}

// TestPlanShares: the visits that meet a thread are as many as its CPU time is worth, whether it never rests, runs in
// bursts that are shorter than an interval, in step with the visits, or lives shortly. TestShortBursts, TestPools and
// TestShortLives check the same with real programs (make prove).
func TestPlanShares(t *testing.T) {
	const cpus, interval, length = 5, int64(2 * time.Millisecond), int64(60 * time.Second)
	v := planFor(cpus)
	var met, squares, owed [bursts + 100]float64
	for now := int64(1e9); now < 1e9+length; now += stops.MaxNap {
		v.draw(now, now+2*stops.MaxNap, interval, func(which int, at, stands int64) bool {
			if who := ranAt(which, at, interval); who != nobody {
				v.cpus[which].metAt = at
				met[who] += float64(stands)
				squares[who] += float64(stands * stands)
			}
			return true
		})
	}
	const step = int64(10 * time.Microsecond)
	for cpu := range cpus {
		for at := int64(1e9); at < 1e9+length; at += step {
			owed[ranAt(cpu, at, interval)] += float64(step) / float64(interval)
		}
	}
	for who := nobody + 1; who < len(met); who++ {
		if off := (met[who] - owed[who]) / math.Sqrt(max(squares[who], 1)); math.Abs(off) > 4.5 {
			t.Errorf("thread %d: %.0f visits where %.0f are owed: %.1f standard errors", who, met[who], owed[who], off)
		}
	}
}
