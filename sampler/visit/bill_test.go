//go:build linux

package visit

import (
	"context"
	"runtime"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// TestTimesAddUp: the CPU time that samples carry, that no sample carries, and that short threads used, is together
// what the program itself measures.
func TestTimesAddUp(t *testing.T) {
	p := ctest.Run(t, sampletest.TimesProgram)
	time.Sleep(100 * time.Millisecond) // until all threads are there
	s, q := New(p.PID, ctest.CPU()), sampler.NewQueue(64)
	ctx, cancel := context.WithCancel(context.Background())
	byTID, sum := map[int]int64{}, int64(0)
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		for n := 0; ; n++ {
			snap, ok := <-q.Looks()
			if !ok {
				return
			}
			byTID[snap.TID] += snap.CPU
			sum += snap.CPU
			q.Done(snap)
			if n == ctest.Rounds(1500) {
				cancel()
			}
		}
	}()
	began := time.Now()
	all, bursts, short := sampletest.Used(t, p)
	got, err := s.Run(ctx, sampler.Config{Interval: sampletest.Interval(2 * time.Millisecond)}, q)
	<-consumed
	allAfter, burstsAfter, shortAfter := sampletest.Used(t, p)
	asked := time.Since(began)
	all, bursts, short = allAfter-all, burstsAfter-bursts, shortAfter-short
	if err != nil {
		t.Fatal(err)
	}
	times := got.Times
	t.Logf("%+v; the program: %v, in bursts %v, in short threads %v", times, time.Duration(all), time.Duration(bursts),
		time.Duration(short))
	if sum != int64(times.Sampled) || times.Process != times.Sampled+times.NotSampled+times.Exited {
		t.Errorf("samples carry %d: %+v", sum, times)
	}
	// The program was asked before and after the run. Besides the run, it can have used all CPUs at most.
	beside := (asked - got.Wall) * time.Duration(runtime.NumCPU())
	if off := time.Duration(all) - times.Process; off > times.Process/50+beside || -off > times.Process/50 {
		t.Errorf("%v, and the program used %v, of which at most %v were before and after", times.Process, time.Duration(all),
			beside)
	}
	sampletest.NeedTicks(t, &got)
	if times.NotSampled > times.Process/4 {
		t.Errorf("%v of %v are not sampled", times.NotSampled, times.Process)
	}
	// The kernel's charge for short threads does not come in ticks. If CPUs are visited, samples of threads that have
	// used little carry the time of short threads.
	if !got.Visits && times.Exited <= 0 || float64(times.Exited) > 2*float64(short) {
		t.Errorf("ended threads have %v, and short ones used %v", times.Exited, time.Duration(short))
	}
	delete(byTID, longest(byTID)) // the thread that never rests
	others := int64(times.Exited)
	for _, ns := range byTID {
		others += ns
	}
	share := float64(others) / float64(bursts+short)
	t.Logf("bursts and short threads have %.2f of what they used", share)
	if share < 0.8 || share > 1.2 {
		t.Error("that is not what they used")
	}
}

func longest(byTID map[int]int64) (tid int) {
	for id, ns := range byTID {
		if ns > byTID[tid] {
			tid = id
		}
	}
	return tid
}
