//go:build linux

package oracle

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

// sampled is what became of the samples of a test.
type sampled struct {
	stats     sampler.Stats
	truncated [profile.NumReasons]int
	whole     int
	stale     int // that ended early, and were walked too late to tell why: a recording loses them
	frames    int
}

func (s *sampled) attempted() int { return int(s.stats.Attempted) }

// sample takes n samples of a JVM and walks them; each sees every stack.
func sample(t testing.TB, s *session.Session, interval time.Duration, n int,
	each func(*look.Look, *profile.Stack)) *sampled {
	t.Helper()
	return sampleBy(t, s, testEngine, interval, n, each)
}

// sampleBy is sample with an engine by name.
func sampleBy(t testing.TB, s *session.Session, engine session.EngineName, interval time.Duration, n int,
	each func(*look.Look, *profile.Stack)) *sampled {
	t.Helper()
	return sampleEach(t, s, engine, interval, n, func(_ *session.Sampling, snap *look.Look, stack *profile.Stack) {
		if each != nil {
			each(snap, stack)
		}
	})
}

// sampleEach is sampleBy with what samples.
func sampleEach(t testing.TB, s *session.Session, engine session.EngineName, interval time.Duration, n int,
	each func(*session.Sampling, *look.Look, *profile.Stack)) *sampled {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	samples := s.Sampling(engine)
	s.Walker.Warm()
	out := &sampled{}
	config := sampler.Config{Interval: sampletest.Interval(interval)}
	if engine == session.PerfEngine {
		samples.ReadSoon(&config)
	}
	var stack profile.Stack
	var err error
	out.stats, err = samples.Run(ctx, config, func(snap *look.Look) {
		samples.Walk(snap, &stack)
		count := int(snap.Samples())
		switch {
		case stack.Truncated == profile.Whole:
			out.whole += count
		case samples.Proven(snap):
			out.truncated[stack.Truncated] += count
		default:
			out.stale += count
		}
		out.frames += count * len(stack.Frames)
		each(samples, snap, &stack)
		if n--; n == 0 {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// needTicks ends a test whose figures mean little, because the machine gave the sampling thread no CPU at more than a
// quarter of its ticks. That these ticks are counted is what goprof promises then.
func needTicks(t testing.TB, got *sampler.Stats) {
	t.Helper()
	if got.Skipped > got.Ticks/4 {
		t.Skipf("not judged: there was no CPU for the sampling thread at %d ticks, beside %d that were held", got.Skipped,
			got.Ticks)
	}
}

// describe prints a stack and what is around its top, for a failed test.
func describe(s *session.Session, snap *process.Snapshot, st *profile.Stack) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tid %d pc %#x sp %#x fp %#x: %v\n", snap.TID, snap.Regs[s.Process.CPU().PC], snap.SP,
		snap.Regs[s.Process.CPU().FP], st.Truncated)
	fmt.Fprintf(&b, "  registers %x\n", snap.Regs)
	if c, ok := s.VM.Codelet(snap.Regs[s.Process.CPU().PC]); ok {
		fmt.Fprintf(&b, "  codelet %+v\n", c)
	}
	for i, f := range st.Frames {
		fmt.Fprintf(&b, "  %-13v %s:%d pc %#x sp %#x\n", f.Kind, f.Func.Name, f.Line, f.PC, f.SP)
		if i > 40 {
			break
		}
	}
	for i, f := range st.Frames {
		if !s.VM.InCode(f.PC) || i > 2 && i < len(st.Frames)-2 {
			continue
		}
		blob, err := s.VM.Blob(f.PC)
		if err != nil {
			continue
		}
		fmt.Fprintf(&b, "  #%d blob %v %q begin %#x end %#x fs %d complete %d level %d", i, blob.Kind, blob.Name, blob.Begin,
			blob.End,
			blob.FrameSize, blob.FrameComplete, blob.Level)
		code := make([]byte, min(blob.End-blob.Begin, 4096))
		from := max(blob.Begin, f.PC-min(f.PC, 300))
		code = code[:min(uint64(len(code)), blob.End-from)]
		if s.Process.Read(from, code) == nil {
			file := filepath.Join(os.TempDir(), fmt.Sprintf("goprof-code-%x", f.PC))
			os.WriteFile(file, code, 0o600)
			fmt.Fprintf(&b, " objdump -D -b binary -m i386:x86-64 --adjust-vma=%#x %s", from, file)
		}
		b.WriteByte('\n')
		off := f.SP - snap.SP
		for i := uint64(0); i < 24 && off+i*8+8 <= uint64(len(snap.Stack)); i++ {
			fmt.Fprintf(&b, "   sp+%#x: %#x\n", i*8, binary.LittleEndian.Uint64(snap.Stack[off+i*8:]))
		}
	}
	return b.String()
}

func attach(t testing.TB, pid int) *session.Session {
	t.Helper()
	s, err := session.Attach(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.Soon = jvmtest.Slow(s.Soon) // an emulated machine has read nothing in so short a time
	s.RawNames()                  // as the JVM's own word on its stacks is
	return s
}

// TestJavacIsWhole: javac is the program with the deepest and most changing stacks that
// everybody has. The long form holds the figure of the README, at most 0.05 % lost and
// 0.05 % not at the thread's root:
//
//	GOPROF_JAVAC_SAMPLES=50000 go test ./testdata/oracle -run TestJavacIsWhole -v
//
// GOPROF_SHOW=1 prints what did not reach its root.
func TestJavacIsWhole(t *testing.T) {
	t.Parallel()
	n := 1500
	perMille := 1.0 // the short form has too few samples for the figure itself
	if long, _ := strconv.Atoi(os.Getenv("GOPROF_JAVAC_SAMPLES")); long > n {
		n, perMille = long, 0.5
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		type mode struct {
			name    string
			classes string
			flags   []string
		}
		for _, mode := range jvmtest.Drawn(t, 1, []mode{{"mixed", javacClasses, nil}, {"Xint", "5", []string{"-Xint"}}}) {
			t.Run(mode.name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", append(mode.flags, "--", "0", mode.classes)...)
				s := attach(t, jvm.PID)
				again(t, func(t testing.TB) { checkWhole(t, s, n, perMille) })
			})
		}
	})
}

// checkWhole takes n samples and fails if more than perMille of a thousand are not at their thread's root, or are lost:
// of few, more may be.
func checkWhole(t testing.TB, s *session.Session, n int, perMille float64) {
	const most = 8
	shown := 0
	got := sample(t, s, time.Millisecond, n, func(snap *look.Look, st *profile.Stack) {
		if st.Truncated != profile.Whole && shown < most && os.Getenv("GOPROF_SHOW") != "" {
			shown++
			t.Log(describe(s, &snap.Snapshot, st))
		}
	})
	truncated, lost := 0, got.stale
	for r, c := range got.truncated {
		if c > 0 && profile.Reason(r) != profile.Whole {
			t.Logf("truncated, %v: %d", profile.Reason(r), c)
			truncated += c
		}
	}
	for o, c := range got.stats.Lost {
		if c > 0 {
			t.Logf("lost, %v: %d", ptrace.Outcome(o), c)
			lost += int(c)
		}
	}
	t.Logf("%d attempted, %d whole, %d truncated, %d lost, %d of them stale, %d frames a stack", got.attempted(),
		got.whole, truncated, lost, got.stale, got.frames/max(got.whole+truncated, 1))
	if got.attempted() != got.whole+truncated+lost {
		fact(t).Error("some looks are not accounted for")
	}
	mostCut := atMost(perMille/1000, got.attempted())
	mostLost := mostCut
	if n < 5000 {
		// A machine that takes the CPU from the walker for a second fills the queue.
		mostLost = got.attempted()/50 + min(int(got.stats.Lost[ptrace.QueueFull]), got.attempted()/3)
	}
	if truncated > mostCut || lost > mostLost {
		t.Errorf("%d truncated and %d lost of %d: at most %d and %d", truncated, lost, got.attempted(), mostCut, mostLost)
	}
	if got.whole < n/2 {
		t.Errorf("only %d samples", got.whole)
	}
}
