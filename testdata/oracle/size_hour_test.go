//go:build linux

package oracle

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestAnHourIsSmall: what an hour at 1,000 Hz leaves in memory. A process of its own records javac for some seconds, so
// that all caches are filled as in a recording, then its profile is given as many stacks as an hour brings: of a
// program of 100,000 methods whose calls branch at every level, so that hardly two of them are the same. It ends with
// writing the file. The hour is short here; in full: GOPROF_HOUR=3600000 go test ./testdata/oracle -run
// TestAnHourIsSmall -v
func TestAnHourIsSmall(t *testing.T) {
	stacks := "40000"
	if n := os.Getenv("GOPROF_HOUR"); n != "" {
		stacks = n
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "30")
		defer jvm.Kill() // it would end after two rounds only
		again(t, func(t testing.TB) { hour(t, jvm.PID, stacks) })
	})
}

func hour(t testing.TB, pid int, stacks string) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperHour$", "-test.v")
	cmd.Env = append(os.Environ(), "GOPROF_HOUR_OF="+strconv.Itoa(pid), "GOPROF_HOUR="+stacks)
	out, err := cmd.CombinedOutput()
	_, said, _ := strings.Cut(string(out), "the hour: ")
	said, _, _ = strings.Cut(said, "\n")
	var kb, nodes, cut, funcs int
	if n, _ := fmt.Sscanf(said, "%d KB, %d nodes, %d cut, %d functions", &kb, &nodes, &cut, &funcs); err != nil ||
		n != 4 {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(said)
	if kb > maxHourRSS {
		t.Errorf("peak RSS is %d KB", kb)
	}
	if cut == 0 || nodes < profile.DefaultMaxNodes*9/10 {
		t.Error("the profile was not filled: this proves little")
	}
}

// maxHourRSS is what goprof may use at most, in KB. The goal is maxRSS. 19 runs took 93,000 to 104,000 (2026-11-27).
// The made-up program takes 18 MB of that. What is alive before the file is written takes 61 MB.
const maxHourRSS = 110_000

// TestHelperHour is not a test: TestAnHourIsSmall runs it in a process of its own.
func TestHelperHour(t *testing.T) {
	pid, _ := strconv.Atoi(os.Getenv("GOPROF_HOUR_OF"))
	stacks, _ := strconv.Atoi(os.Getenv("GOPROF_HOUR"))
	if pid == 0 {
		t.Skip("run by TestAnHourIsSmall")
	}
	debug.SetMemoryLimit(session.MemoryGoal) // as the command does
	ctx, stop := context.WithTimeout(context.Background(), 4*time.Second)
	defer stop()
	s := attach(t, pid)
	p, _, err := s.Record(ctx, session.RecordOptions{Interval: time.Millisecond, Threads: true})
	if err != nil || p.Counts.Attempted == 0 {
		t.Fatalf("%v, %d looks", err, p.Counts.Attempted)
	}
	g := newGraph()
	for range stacks {
		root, st := g.stack()
		p.AddTimed(root, st, 1, time.Millisecond)
	}
	if err := output.Collapsed(io.Discard, p); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("the hour: %d KB, %d nodes, %d cut, %d functions\n", field(status, "VmHWM:"), p.Nodes(), p.Overflow,
		len(g.funcs))
}

// graph is a program that exists only as the stacks that it would have.
type graph struct {
	funcs []*profile.Func
	rng   *rand.Rand
	st    profile.Stack
	roots []string
}

func newGraph() *graph {
	g := &graph{rng: rand.New(rand.NewPCG(1, 2)), funcs: make([]*profile.Func, 100_000)}
	for i := range g.funcs {
		g.funcs[i] = &profile.Func{Name: fmt.Sprintf("com.example.shop.module%d.internal.Service%d.handleRequest%d", i%60,
			i%4000, i),
			File: fmt.Sprintf("Service%d.java", i%4000)}
	}
	for i := range 200 {
		g.roots = append(g.roots, fmt.Sprintf("[http-nio-8080-exec-%d tid=%d]", i, 4000+i))
	}
	return g
}

// stack goes down from a root: each method calls one of eight others, the first ones most often. Some recursions
// are 2,000 frames deep.
func (g *graph) stack() (root string, st *profile.Stack) {
	depth := 10 + int(g.rng.ExpFloat64()*40)
	if g.rng.IntN(1000) == 0 {
		depth = 2000
	}
	depth = min(depth, 2000)
	if cap(g.st.Frames) < depth {
		g.st.Frames = make([]profile.Frame, 2000)
	}
	g.st.Frames = g.st.Frames[:depth]
	at := g.rng.IntN(20)
	for i := depth - 1; i >= 0; i-- {
		g.st.Frames[i] = profile.Frame{Func: g.funcs[at], Kind: profile.C2}
		callee := 0
		for callee < 7 && g.rng.IntN(3) == 0 {
			callee++
		}
		at = (at*8 + callee*7919 + 1) % len(g.funcs)
	}
	return g.roots[g.rng.IntN(len(g.roots))], &g.st
}
