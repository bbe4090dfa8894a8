package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"goprof/output/jfr"
	"goprof/profile"
)

// The command line is specified in testdata/script. In these scripts, goprof is this program.
func TestMain(m *testing.M) { testscript.Main(m, programs) }

// programs are the programs that this one becomes if it is called by another name. Tests add theirs.
var programs = map[string]func(){"goprof": main}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":        exits,
			"mends":        mends,
			"hugeline":     hugeLine,
			"manystacks":   manyStacks,
			"flight":       flight,
			"hostile":      hostile,
			"severalparts": severalParts,
			"toomuch":      tooMuch,
			"waiting":      waiting,
		},
		Condition: func(cond string) (bool, error) {
			if path, ok := strings.CutPrefix(cond, "file:"); ok {
				_, err := os.Stat(path)
				return err == nil, nil
			}
			return cond == "root" && os.Geteuid() == 0, nil
		},
	})
}

// exits runs a command, which must end with the given exit code: "exits 8 goprof flame missing".
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program args...")
	}
	code := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

// mends runs a command line that is wrong, and then what goprof says to try: "mends 3 goprof record --pid 99 --rate 0".
// The code is that of the second one.
func mends(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, append([]string{"1"}, args[1:]...))
	_, told, found := strings.Cut(ts.ReadFile("stderr"), "\ntry: ")
	if !found {
		ts.Fatalf("nothing is said to try")
	}
	words := strings.Fields(told)
	for i := range words {
		words[i] = strings.Trim(words[i], "'")
	}
	exits(ts, neg, append([]string{args[0]}, words...))
}

// hugeLine makes a file with a line longer than goprof reads.
func hugeLine(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("a;b 1\n"+strings.Repeat("x;", 3<<20)+"x 1\n"), 0o600))
}

// manyStacks makes a file with more frames than goprof reads: each stack has a hundred frames of its own.
func manyStacks(ts *testscript.TestScript, _ bool, args []string) {
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	to := bufio.NewWriterSize(file, 1<<20)
	for n := range 22_000 {
		fmt.Fprintf(to, "main;a%d%s 1\n", n, strings.Repeat(";b", 99))
	}
	ts.Check(errors.Join(to.Flush(), file.Close()))
}

// flight makes a JFR file of ten seconds. In it worker-1 sells every 100 ms, and a collector's thread works each
// second.
func flight(ts *testscript.TestScript, _ bool, args []string) {
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	w := jfr.NewWriter(file, jfr.Options{ChunkLength: 3 * time.Second})
	w.SetMeta(profile.Meta{Version: "1", Host: "prod-7", PID: 4711, MainClass: "shop.Main", Mode: "cpu",
		Interval: 100 * time.Millisecond})
	sell := &profile.Stack{Frames: []profile.Frame{
		{Func: &profile.Func{Name: "shop.Main.sell"}, Kind: profile.Inlined, Line: 7, BCI: 1},
		{Func: &profile.Func{Name: "shop.Main.main"}, Kind: profile.C2, Line: 3, BCI: 2}}}
	work := &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "G1ParTask::work", Module: "libjvm.so"},
		Kind: profile.Native, BCI: -1}}}
	at := func(i int) profile.Instant {
		d := int64(i) * int64(100*time.Millisecond)
		return profile.Instant{Wall: 1_790_000_000_000_000_000 + d, Ticks: 1 + d}
	}
	for i := range 100 {
		ts.Check(w.Sample(&profile.Sample{At: at(i), Thread: profile.Thread{TID: 12, JavaName: "worker-1"}, Stack: sell,
			CPU: 90 * time.Millisecond}))
		if i%10 == 0 {
			ts.Check(w.Sample(&profile.Sample{At: at(i), Thread: profile.Thread{TID: 13, Name: "GC Thread#0"}, Stack: work,
				CPU: time.Millisecond}))
		}
	}
	for _, t := range []profile.Thread{{TID: 12, JavaName: "worker-1"}, {TID: 13, Name: "GC Thread#0"}} {
		ts.Check(w.ThreadEnd(at(100), t))
	}
	ts.Check(w.Account(at(100), &profile.Summary{Attempted: 110, Whole: 110, Samples: 110}))
	ts.Check(errors.Join(w.Close(at(100)), file.Close()))
}

// waiting makes a JFR file of wall-clock samples of one thread, which waits for a queue so many times of ten, and for a
// pool else: "waiting out.jfr 3". Other recorders' stacks have no leaf that says so.
func waiting(ts *testscript.TestScript, _ bool, args []string) {
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	times, err := strconv.Atoi(args[1])
	ts.Check(err)
	w := jfr.NewWriter(file, jfr.Options{})
	w.SetMeta(profile.Meta{Version: "1", PID: 4711, MainClass: "shop.Main", Mode: "wall", Interval: 50 * time.Millisecond})
	stack := func(waits string) (s *profile.Stack) {
		s = &profile.Stack{}
		for _, name := range []string{"jdk.internal.misc.Unsafe.park", "java.util.concurrent.locks.LockSupport.park", waits,
			"shop.Main.main"} {
			s.Frames = append(s.Frames, profile.Frame{Func: &profile.Func{Name: name}, Kind: profile.C2, BCI: -1})
		}
		return s
	}
	queue, pool := stack("shop.Queue.take"), stack("shop.Pool.get")
	at := func(i int) profile.Instant {
		d := int64(i) * int64(50*time.Millisecond)
		return profile.Instant{Wall: 1_790_000_000_000_000_000 + d, Ticks: 1 + d}
	}
	for i := range 200 {
		in := pool
		if i%10 < times {
			in = queue
		}
		ts.Check(w.Sample(&profile.Sample{At: at(i), Thread: profile.Thread{TID: 12, JavaName: "worker-1"}, Stack: in,
			Wall: true, Span: 50 * time.Millisecond, State: profile.Parked}))
	}
	ts.Check(errors.Join(w.Close(at(200)), file.Close()))
}
