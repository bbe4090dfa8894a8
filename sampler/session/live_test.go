//go:build linux

package session

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/target"
	"goprof/testdata/jvmtest"
)

// sampled is what became of the samples of a test.
type sampled struct {
	stats     sampler.Stats
	truncated [profile.NumReasons]int
	whole     int
	frames    int
}

func (s *sampled) attempted() int { return int(s.stats.Attempted) }

// sample takes n samples of a JVM and walks them; each sees every stack.
func sample(t testing.TB, s *Session, interval time.Duration, n int, each func(*target.Snapshot, *profile.Stack)) *sampled {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	smp := sampler.New(s.Process.PID(), s.Process.CPU())
	q := sampler.NewQueue(queueLength)
	s.walker.Warm()
	out := &sampled{}
	done := make(chan error, 1)
	go func() {
		var err error
		out.stats, err = smp.Run(ctx, sampler.Config{Interval: interval}, q)
		done <- err
	}()
	r := recording{Session: s, sampler: smp}
	var stack profile.Stack
	for snap := range q.Snapshots() {
		r.advise(snap.TID, s.dir.get(snap.TID))
		s.walker.Walk(snap, &stack)
		out.truncated[stack.Truncated]++
		if stack.Truncated == profile.Whole {
			out.whole++
		}
		out.frames += len(stack.Frames)
		if each != nil {
			each(snap, &stack)
		}
		q.Done(snap)
		if n--; n == 0 {
			cancel()
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return out
}

// describe prints a stack and what is around its top, for a failed test.
func describe(s *Session, snap *target.Snapshot, st *profile.Stack) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tid %d pc %#x sp %#x fp %#x: %v\n", snap.TID, snap.Regs[s.Process.CPU().PC], snap.SP,
		snap.Regs[s.Process.CPU().FP], st.Truncated)
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
		fmt.Fprintf(&b, "  #%d blob %v %q begin %#x end %#x fs %d complete %d level %d", i, blob.Kind, blob.Name, blob.Begin, blob.End,
			blob.FrameSize, blob.FrameComplete, blob.Level)
		code := make([]byte, min(blob.End-blob.Begin, 4096))
		from := max(blob.Begin, f.PC-min(f.PC, 300))
		code = code[:min(uint64(len(code)), blob.End-from)]
		if s.Process.Read(from, code) == nil {
			file := fmt.Sprintf("/tmp/code-%x", f.PC)
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

func attach(t testing.TB, pid int) *Session {
	t.Helper()
	s, err := Attach(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// javac is the program with the deepest and most changing stacks that everybody has.
func TestJavacIsWhole(t *testing.T) {
	n := 5000
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, flags := range [][]string{nil, {"-Xint"}} {
			name := strings.Join(append([]string{"mixed"}, flags...), "")
			t.Run(name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", append(flags, "--", "0", "30")...)
				s := attach(t, jvm.PID)
				shown := 0
				got := sample(t, s, time.Millisecond, n, func(snap *target.Snapshot, st *profile.Stack) {
					if st.Truncated != profile.Whole && shown < 8 && os.Getenv("SHOW") != "" {
						shown++
						t.Log(describe(s, snap, st))
					}
				})
				t.Logf("%d attempted, %d whole, %d frames a stack", got.attempted(), got.whole, got.frames/max(got.whole, 1))
				for r, c := range got.truncated {
					if c > 0 && r > 0 {
						t.Logf("%v: %d", profile.Reason(r), c)
					}
				}
				for o, c := range got.stats.Lost {
					if c > 0 {
						t.Logf("lost, %v: %d", sampler.Outcome(o), c)
					}
				}
			})
		}
	})
}
