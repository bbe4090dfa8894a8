//go:build linux

// Package jvmevents writes a JVM's own counters as events of the JDK into a JFR file: collections, safepoints,
// compilations, the code cache, classes, CPU load. It reads the counters 20 times a second, and stops no thread. If
// something happens once between two readings, its event is exact. If it happens several times, the number and the sum
// are exact, and the moments are spread evenly.
package jvmevents

import (
	"context"
	"strconv"
	"strings"
	"time"

	"goprof/cmd/goprof/product"
	"goprof/output/jfr"
	"goprof/profile"
	"goprof/session"
	"goprof/triage/vitals"
)

const (
	// countEvery is the time between two readings of the JVM's counters.
	countEvery = 50 * time.Millisecond
	// sumsEvery is the number of readings between two writes of the sums.
	sumsEvery = int(time.Second / countEvery)
)

// Counts turns a JVM's counters into events of a JFR file. It runs in its own goroutine beside the recording.
type Counts struct {
	vitals *vitals.Vitals
	s      *session.Session
	last   vitals.JVM
	at     profile.Instant // of last
	load   cpuLoad
	number int64 // of the last collection
}

// Open begins to read the JVM's counters. It returns nil for a JVM without counters. A nil Counts writes nothing.
func Open(of *session.Session) (*Counts, error) {
	v, err := vitals.Open(of)
	if err != nil {
		return nil, err
	}
	c := &Counts{vitals: v, s: of}
	j, ok, err := v.Count(true)
	if err != nil || !ok {
		v.Close()
		return nil, err
	}
	c.last, c.at = j, of.Now()
	for i := range j.GC.Collectors {
		c.number += int64(j.GC.Collectors[i].Count)
	}
	return c, nil
}

// Close ends the reading.
func (c *Counts) Close() {
	if c != nil {
		c.vitals.Close()
	}
}

// Begin writes events into a JFR file until end is called. If to is nil, it writes none.
func (c *Counts) Begin(ctx context.Context, to *product.JFR) (end func()) {
	if c == nil || to == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.write(ctx, to)
	}()
	return func() { stop(); <-done }
}

// write reads the JVM's counters every countEvery, and writes their changes as events. It ends with ctx, or when the
// JVM can no longer be read.
func (c *Counts) write(ctx context.Context, to *product.JFR) {
	to.Do(func(w *jfr.Writer) error { w.SetConfiguration(configurationOf(&c.last)); return nil })
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		j, ok, err := c.vitals.Count(n%sumsEvery == 0)
		if err != nil {
			return // the process has ended, or does not answer
		}
		if !ok {
			continue
		}
		now := c.s.Now()
		ended := vitals.Ended(&c.last.GC, &j.GC)
		var heap vitals.Pool
		if len(ended) > 0 {
			heap, _ = c.vitals.Heap()
		}
		to.Do(func(w *jfr.Writer) error { return c.events(w, &j, now, ended, heap, n%sumsEvery == 0) })
		c.keep(j, now)
	}
}

// keep keeps a reading for comparison with the next one. A safepoint under way has no time yet, so its event is written
// after its end.
func (c *Counts) keep(j vitals.JVM, now profile.Instant) {
	if c.last.Safepoints.Time == j.Safepoints.Time {
		j.Safepoints = c.last.Safepoints
	}
	c.last, c.at = j, now
}

// events writes what has happened since the last reading: collections, the heap after them, and safepoints. If sums is
// true, it also writes the CPU load and the sums.
func (c *Counts) events(w *jfr.Writer, j *vitals.JVM, now profile.Instant, ended []vitals.Collected,
	heap vitals.Pool, sums bool) error {
	for i := range ended {
		if err := c.collection(w, j, now, ended, i); err != nil {
			return err
		}
	}
	if len(ended) > 0 {
		used := heap.Used
		if j.GC.HeapAfter.IsKnown() {
			used = j.GC.HeapAfter
		}
		if n, ok := used.Get(); ok {
			if err := w.Heap(now, c.number, n, heap.Committed.Or(0), heap.Max.Or(0)); err != nil {
				return err
			}
		}
	}
	if err := c.safepoints(w, j, now); err != nil || !sums {
		return err
	}
	if err := c.cpu(w, now); err != nil {
		return err
	}
	return writeSums(w, j, now)
}

// cpuLoad is the CPU time used up to a moment.
type cpuLoad struct {
	at      int64
	process vitals.Process
	machine vitals.Machine
}

// cpu writes the CPU load since its last call.
func (c *Counts) cpu(w *jfr.Writer, now profile.Instant) error {
	was, is := c.load, cpuLoad{at: now.Wall}
	is.process, is.machine = c.vitals.Load()
	c.load = is
	before, ok := was.machine.CPUTime.Get()
	after, ok2 := is.machine.CPUTime.Get()
	cpus, ok3 := is.machine.CPUs.Get()
	if was.at == 0 || !ok || !ok2 || !ok3 || cpus == 0 || after.Total() <= before.Total() || now.Wall <= was.at {
		return nil
	}
	part := func(a, b time.Duration) float64 { return float64(b-a) / float64(now.Wall-was.at) / float64(cpus) }
	used := part(was.process.CPU.Or(0), is.process.CPU.Or(0))
	inKernel := part(was.process.InKernel.Or(0), is.process.InKernel.Or(0))
	idle := float64(after.Idle+after.IOWait) - float64(before.Idle+before.IOWait)
	return w.CPULoad(now, used-inKernel, inKernel, 1-idle/float64(after.Total()-before.Total()))
}

// collection writes the event of the collection ended[i]. The time of its end is estimated, unless the JVM knows it.
func (c *Counts) collection(w *jfr.Writer, j *vitals.JVM, now profile.Instant, ended []vitals.Collected,
	i int) error {
	one := &ended[i]
	c.number++
	end := c.spread(now, i, len(ended))
	began, ok := j.Began.Get()
	after, ok2 := one.Ended.Get()
	if ok && ok2 { // the wall clock may have been set since the JVM began
		end = min(max(began.UnixNano()+int64(after), c.at.Wall), now.Wall)
	}
	e := jfr.Collection{Number: c.number, Name: collectionName(j.GC.Name, one.Of), Length: one.Length,
		Young: one.Of.Kind == vitals.YoungCollections, Old: one.Of.Kind == vitals.FullCollections}
	pauses := strings.HasSuffix(one.Of.Name, "pauses")
	concurrent := one.Of.Kind == vitals.ConcurrentPauses
	if !concurrent || pauses {
		e.Pause = "GC Pause"
	}
	e.Part = concurrent && pauses
	if cause := j.GC.LastCause.Or(""); i == len(ended)-1 && cause != "No GC" {
		e.Cause = cause
	}
	return w.Collection(c.instant(end-int64(one.Length), now), e)
}

// safepoints writes the safepoints that have ended. Their number and the sum of their times are known. Several
// safepoints share the time evenly.
func (c *Counts) safepoints(w *jfr.Writer, j *vitals.JVM, now profile.Instant) error {
	was, is := &c.last.Safepoints, &j.Safepoints
	n := int64(is.Count.Or(0)) - int64(was.Count.Or(0))
	length, sync := is.Time.Or(0)-was.Time.Or(0), is.SyncTime.Or(0)-was.SyncTime.Or(0)
	if n <= 0 || n > maxSafepointsOnce || length <= 0 || !was.Count.IsKnown() || !is.Time.IsKnown() {
		return nil
	}
	length, sync = length/time.Duration(n), sync/time.Duration(n)
	for i := range n {
		begin := c.instant(c.spread(now, int(i), int(n))-int64(length), now)
		if err := w.Safepoint(begin, int64(was.Count.Or(0))+i+1, sync, length); err != nil {
			return err
		}
	}
	return nil
}

// maxSafepointsOnce is a limit far above the number between two readings.
const maxSafepointsOnce = 1 << 10

// spread returns the assumed end of one of n events since the last reading.
func (c *Counts) spread(now profile.Instant, i, n int) int64 {
	return c.at.Wall + (now.Wall-c.at.Wall)*int64(i+1)/int64(n)
}

// instant converts a moment of the wall clock to both clocks.
func (c *Counts) instant(wall int64, now profile.Instant) profile.Instant {
	return profile.Instant{Wall: wall, Ticks: now.Ticks - (now.Wall - wall)}
}

// writeSums writes the JVM's sums since it began, and the use of its code cache.
func writeSums(w *jfr.Writer, j *vitals.JVM, now profile.Instant) error {
	of := &j.Compiled
	if of.Methods.IsKnown() {
		err := w.Compiled(now, jfr.Compiled{Methods: of.Methods.Or(0), OnStack: of.OnStack.Or(0),
			Bailouts: of.Bailouts.Or(0), Invalidated: of.Invalidated.Or(0), MethodBytes: of.MethodBytes.Or(0),
			OnStackBytes: of.OSRBytes.Or(0), Size: of.Size.Or(0), CodeSize: of.CodeSize.Or(0), Time: of.Time.Or(0)})
		if err != nil {
			return err
		}
	}
	for i := range j.Code.Heaps {
		heap := &j.Code.Heaps[i]
		used, ok := heap.Used.Get()
		limit, ok2 := heap.Max.Get()
		if !ok || !ok2 || used > limit {
			continue
		}
		if err := w.CodeHeap(now, heap.Name, limit-used, heap.Refused.Or(0)); err != nil {
			return err
		}
	}
	if loaded, ok := j.Classes.Loaded.Get(); ok {
		return w.Classes(now, loaded, j.Classes.Unloaded.Or(0))
	}
	return nil
}

func configurationOf(j *vitals.JVM) jfr.Configuration {
	number := func(flag string) uint64 {
		n, _ := strconv.ParseUint(j.Flags[flag], 10, 64)
		return n
	}
	is := func(flag string) bool { return j.Flags[flag] == "true" }
	c := jfr.Configuration{Parallel: int(number("ParallelGCThreads")), Concurrent: int(number("ConcGCThreads")),
		Dynamic: is("UseDynamicNumberOfGCThreads"), ExplicitConcurrent: is("ExplicitGCInvokesConcurrent"),
		ExplicitRefused: is("DisableExplicitGC"), HeapMax: number("MaxHeapSize"), HeapInitial: number("InitialHeapSize"),
		Compilers: int(j.Compiled.Threads.Or(0)), Tiered: is("TieredCompilation"), CodeReserved: j.Code.Total.Max.Or(0)}
	names, ok := collectorNames[j.GC.Name]
	if !ok {
		names = [3]string{j.GC.Name, j.GC.Name, j.GC.Name}
	}
	c.Young, c.Old = names[0], names[2]
	return c
}

// collectorNames are the JDK recorder's names for a collector's young, full and concurrent collections
// (gc/shared/gcName.hpp).
var collectorNames = map[string][3]string{
	"G1":       {"G1New", "G1Full", "G1Old"},
	"Parallel": {"ParallelScavenge", "ParallelOld", "ParallelOld"},
	"Serial":   {"DefNew", "SerialOld", "SerialOld"},
	"CMS":      {"ParNew", "SerialOld", "ConcurrentMarkSweep"},
}

// collectionName returns the JDK recorder's name for a collection.
func collectionName(collector string, of *vitals.Collector) string {
	names, ok := collectorNames[collector]
	switch {
	case ok && of.Kind == vitals.YoungCollections:
		return names[0]
	case ok && of.Kind == vitals.FullCollections:
		return names[1]
	case ok && of.Kind == vitals.ConcurrentPauses:
		return names[2]
	case strings.HasPrefix(of.Name, "ZGC minor"):
		return "ZGC Minor"
	case strings.HasPrefix(of.Name, "ZGC major"):
		return "ZGC Major"
	}
	return collector
}
