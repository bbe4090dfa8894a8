//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goprof/output/pprof"
	"goprof/profile"
	"goprof/sampler/threads"
	"goprof/testdata/jvmtest"
)

// TestTakeOver: an agent takes over from another one. The files of both miss no moment and have none twice. There
// are as many samples as the CPU time of the JVM is worth.
func TestTakeOver(t *testing.T) {
	const rate = 200.0
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Shares", "-Xmx64m", "--", "1", "7")
	clock := watchCPU(t, jvm.PID)
	old := startAgent(t, append(ofShares, "--rate", "200")...)
	old.awaitFolder(t)
	next := &liveAgent{dir: old.dir}
	next.cmd = exec.Command("goprof", "agent", "--files", old.dir, "--every", "1s", "--max-cpu", "0", "--match",
		"main=Shares", "--rate", "200", "--take-over")
	next.cmd.Stderr = &next.log
	if err := next.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.cmd.Process.Kill() })
	old.await(t, jvm.PID) // this is while the next agent attaches, before it asks
	begin := clock.read()
	first := len(old.filesOf(t, jvm.PID))
	// Without a bound Wait might wait for ever.
	defer time.AfterFunc(agentLimit, func() { old.cmd.Process.Kill() }).Stop()
	if err := old.cmd.Wait(); err != nil || !strings.Contains(old.log.String(), "another agent takes over") {
		t.Fatalf("the old one ended with %v\n%s\n%s", err, &old.log, &next.log)
	}
	there := len(old.filesOf(t, jvm.PID))
	for end := time.Now().Add(agentLimit); len(old.filesOf(t, jvm.PID)) < there+1; {
		if time.Now().After(end) { // the agent writes its last file when it ends
			t.Fatalf("no file comes after the old one's\n%s", &next.log)
		}
		time.Sleep(50 * time.Millisecond)
	}
	end := clock.read()
	next.end(t)
	spans := spansOf(t, old.filesOf(t, jvm.PID))
	for i := 1; i < len(spans); i++ {
		// A batch without a sample makes no file. The last batch of the old agent may be some milliseconds long, or
		// longer if the JVM had no CPU. A lost batch has CPU time of the JVM in it.
		from, to := spans[i-1].to, spans[i].from
		if used, _ := clock.usedIn(from, to); to.Sub(from) < -time.Millisecond || used > 100*time.Millisecond {
			t.Errorf("%v between files %d and %d of %d, with %v of CPU time", to.Sub(from), i-1, i, len(spans), used)
		}
	}
	if !strings.Contains(next.log.String(), "took over at") {
		t.Errorf("the next one says\n%s", &next.log)
	}
	samples := int64(0)
	for _, s := range spans[first:] {
		samples += s.samples
	}
	used, doubtful := clock.usedIn(begin, end)
	due := used.Seconds() * rate
	// Files begin and end up to a second earlier or later.
	least, most := 0.8*due-2*rate, 1.2*(due+doubtful.Seconds()*rate)+2*rate
	if n := float64(samples); n < least || n > most {
		t.Errorf("%d samples of %v of CPU time, and %v while nobody looked: %.0f are due", samples, used, doubtful, due)
	}
}

// cpuClock is what a process had used at moments that lie some milliseconds apart.
type cpuClock struct {
	pid  int
	mu   sync.Mutex
	at   []time.Time
	used []time.Duration
}

// watchCPU reads the CPU clock of a process until the test ends.
func watchCPU(t *testing.T, pid int) *cpuClock {
	c := &cpuClock{pid: pid}
	c.read()
	go func() {
		for ; t.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
			c.read()
		}
	}()
	return c
}

// read reads the clock. It returns the time of the reading.
func (c *cpuClock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	used, now := threads.ProcessCPU(c.pid), time.Now()
	c.at, c.used = append(c.at, now), append(c.used, used)
	return now
}

// longAway is a gap between readings of the clock that comes only if the machine, or this process, has stood still.
// The kernel charges a thread for what a hypervisor takes from its CPU, and no timer samples it meanwhile.
const longAway = 100 * time.Millisecond

// usedIn is the CPU time between two moments, as if used evenly between two readings. doubtful is the part from long
// gaps between readings.
func (c *cpuClock) usedIn(from, to time.Time) (used, doubtful time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 1; i < len(c.at); i++ {
		span := c.at[i].Sub(c.at[i-1])
		begin, end := later(from, c.at[i-1]), c.at[i]
		if to.Before(end) {
			end = to
		}
		if span <= 0 || !begin.Before(end) {
			continue
		}
		part := time.Duration(end.Sub(begin).Seconds() / span.Seconds() * float64(c.used[i]-c.used[i-1]))
		if span > longAway {
			doubtful += part
		} else {
			used += part
		}
	}
	return used, doubtful
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// fileSpan is the time that a file is about.
type fileSpan struct {
	from, to time.Time
	samples  int64
}

// spansOf are the spans of files, in the order of time.
func spansOf(t *testing.T, names []string) (all []fileSpan) {
	t.Helper()
	slices.Sort(names)
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		read, err := pprof.Read(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(name), err)
		}
		one := fileSpan{from: read.Meta.Start, to: read.Meta.Start.Add(read.Meta.Duration)}
		read.Each(func(_ *profile.Sample, values []int64) error {
			one.samples += values[0]
			return nil
		})
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b fileSpan) int { return a.from.Compare(b.from) })
	return all
}
