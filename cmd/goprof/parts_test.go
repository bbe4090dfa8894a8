package main

import (
	"bytes"
	"errors"
	"os"
	"time"

	pb "github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/testscript"

	"goprof/output/jfr"
	"goprof/profile"
)

// severalParts makes a JFR file of three parts: ten samples of CPU time, five waits for locks of three looks each, and
// two allocations. Their thread has its Java name in the first part only.
func severalParts(ts *testscript.TestScript, _ bool, args []string) {
	writeParts(ts.MkAbs(args[0]), ts.Check)
}

func writeParts(name string, check func(error)) {
	file, err := os.Create(name)
	check(err)
	w := jfr.NewWriter(file, jfr.Options{})
	meta := profile.Meta{Version: "1", PID: 4711, MainClass: "shop.Main", Mode: profile.ModeCPU,
		Interval: time.Millisecond, Part: "cpu"}
	w.SetMeta(meta)
	meta.Mode, meta.Weight, meta.Part = profile.ModeOffCPU, profile.WallTime, "lock"
	w.AddPart(meta)
	meta.Mode, meta.Weight, meta.Part, meta.Interval = profile.EventAlloc, profile.Bytes, profile.EventAlloc, 0
	w.AddPart(meta)
	sell := &profile.Func{Name: "shop.Main.sell"}
	stack := &profile.Stack{Frames: []profile.Frame{{Func: sell, Kind: profile.C2, BCI: 1}}}
	lock := &profile.EventKind{Name: "lock", Unit: profile.WallTime}
	alloc := &profile.EventKind{Name: profile.EventAlloc, Unit: profile.Bytes}
	at := func(i int) profile.Instant {
		d := int64(i) * int64(time.Millisecond)
		return profile.Instant{Wall: 1_790_000_000_000_000_000 + d, Ticks: 1 + d}
	}
	unnamed := profile.Thread{TID: 12, Name: "java"}
	named := profile.Thread{TID: 12, Name: "java", JavaID: 1, JavaName: "main"}
	for i := range 10 {
		check(w.Sample(&profile.Sample{At: at(i), Thread: named, Stack: stack, CPU: time.Millisecond}))
		if i%2 == 0 {
			check(w.Sample(&profile.Sample{At: at(i), Thread: unnamed, Stack: stack, Wall: true, Count: 3,
				Span: 3 * time.Millisecond, State: profile.Blocked, Event: lock}))
		}
		if i%5 == 0 {
			check(w.Sample(&profile.Sample{At: at(i), Thread: named, Stack: stack, Bytes: 1000, NoState: true,
				Event: alloc}))
		}
	}
	account := profile.Summary{Meta: profile.Meta{Part: "cpu"}, Samples: 10, Whole: 10, Attempted: 10}
	for part, n := range map[string]int64{"lock": 15, profile.EventAlloc: 2} {
		account.Parts = append(account.Parts, profile.Summary{Meta: profile.Meta{Part: part}, Samples: n, Whole: n,
			Attempted: n})
	}
	check(w.Account(at(10), &account))
	check(errors.Join(w.Close(at(10)), file.Close()))
}

// tooMuch makes a pprof profile whose counts have no room in a number together.
func tooMuch(ts *testscript.TestScript, _ bool, args []string) {
	fn := &pb.Function{ID: 1, Name: "shop.Main.main"}
	at := &pb.Location{ID: 1, Line: []pb.Line{{Function: fn}}}
	p := &pb.Profile{SampleType: []*pb.ValueType{{Type: "samples", Unit: "count"}}, Function: []*pb.Function{fn},
		Location: []*pb.Location{at}}
	for range 2 {
		p.Sample = append(p.Sample, &pb.Sample{Location: []*pb.Location{at}, Value: []int64{1 << 62}})
	}
	var b bytes.Buffer
	ts.Check(p.Write(&b))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o600))
}
