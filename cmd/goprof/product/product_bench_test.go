//go:build linux

package product

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/session"
)

// BenchmarkRecordJFR writes samples of 60 frames, of 5,000 different stacks, at 1,000 Hz in chunks of a minute to a
// disk. "us-cpu/op" is all CPU time of the process, with that of the kernel. "MB-resident" is the most memory that
// it had. -benchtime 3600000x is an hour.
func BenchmarkRecordJFR(b *testing.B) {
	file, err := outfile.Reserve(filepath.Join(b.TempDir(), "x.jfr"))
	if err != nil {
		b.Fatal(err)
	}
	made, err := New(format.JFR, file, Options{})
	if err != nil {
		b.Fatal(err)
	}
	sink := made.Start(session.Facts{}, func() { b.Error("it was stopped") })
	all := benchStacks()
	sink.Begin(profile.Instant{Wall: 1, Ticks: 1}, profile.Meta{Mode: profile.ModeCPU, Interval: time.Millisecond})
	worker := profile.Thread{TID: 7, Name: "worker", JavaName: "worker", JavaID: 21}
	sample := profile.Sample{Thread: worker, CPU: time.Millisecond}
	i := 0
	b.ReportAllocs()
	before := cpuUsed()
	for b.Loop() {
		i++
		at := int64(i) * int64(time.Millisecond)
		sample.At = profile.Instant{Wall: at, Ticks: at}
		sample.Stack = all[i*7919%len(all)]
		sink.Sample(&sample)
	}
	b.ReportMetric(float64((cpuUsed()-before).Nanoseconds())/1000/float64(i), "us-cpu/op")
	var use unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &use)
	b.ReportMetric(float64(use.Maxrss)/1024, "MB-resident")
	if _, err := made.Finish(&Recorded{nil, &profile.Summary{}, sample.At}); err != nil {
		b.Fatal(err)
	}
}

func cpuUsed() time.Duration {
	var use unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// benchStacks are like those of a server: they have roots in common, with 400 methods in turns above them.
func benchStacks() (all []*profile.Stack) {
	funcs := map[string]*profile.Func{}
	for i := range 5000 {
		s := &profile.Stack{}
		for depth := range 60 {
			n := depth
			if depth < 8 {
				n = (i*7 + depth*13) % 400
			}
			name := fmt.Sprintf("com.example.service.part%d.Component%d.method%d", n%7, n, depth)
			if funcs[name] == nil {
				funcs[name] = &profile.Func{Name: name, File: "Component.java"}
			}
			s.Frames = append(s.Frames, profile.Frame{Func: funcs[name], Kind: profile.Kind(depth % 4), Line: int32(n),
				BCI: int32(depth)})
		}
		all = append(all, s)
	}
	return all
}
