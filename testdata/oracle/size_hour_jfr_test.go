//go:build linux

package oracle

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/output/jfr"
	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// hourlyRSS is what goprof may use at most of memory in an hour of JFR at 1,000 Hz, in KB.
const hourlyRSS = 120_000

// TestHourOfJFR: memory does not grow with the length of a recording. A process of its own records javac and its JVM's
// compilers for some seconds, and then writes these samples again and again, an hour of them, with lines so different
// that hardly a stack comes twice in a chunk.
func TestHourOfJFR(t *testing.T) {
	if os.Getenv("GOPROF_PROVE") != "1" {
		t.Skip("half a minute of CPU time: GOPROF_PROVE=1")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "30")
		cmd := exec.Command(os.Args[0], "-test.run=^TestHelperHourOfJFR$", "-test.v")
		cmd.Env = append(os.Environ(), "GOPROF_HOUR_OF="+strconv.Itoa(jvm.PID))
		out, err := cmd.CombinedOutput()
		_, said, _ := strings.Cut(string(out), "the hour: ")
		said, _, _ = strings.Cut(said, "\n")
		var peak, tenth, end, stacks, bytes int
		if n, _ := fmt.Sscanf(said, "peak %d KB, after a tenth %d KB, in the end %d KB; %d stacks, %d MB written", &peak,
			&tenth, &end, &stacks, &bytes); err != nil || n != 5 {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Log(said)
		if peak > hourlyRSS {
			t.Errorf("peak RSS is %d KB", peak)
		}
		if end > tenth+tenth/5 {
			t.Errorf("memory grows: %d KB after six minutes, %d KB after an hour", tenth, end)
		}
		if stacks < 100 || bytes < 200 {
			t.Error("there were few stacks: this proves little")
		}
	})
}

// TestHelperHourOfJFR is not a test: TestHourOfJFR runs it in a process of its own.
func TestHelperHourOfJFR(t *testing.T) {
	pid, _ := strconv.Atoi(os.Getenv("GOPROF_HOUR_OF"))
	if pid == 0 {
		t.Skip("run by TestHourOfJFR")
	}
	debug.SetMemoryLimit(session.MemoryGoal) // as the command does
	h := hourOfJFR{w: jfr.NewWriter(io.Discard, jfr.Options{})}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	s := attach(t, pid)
	if _, _, err := s.Record(ctx, session.RecordOptions{Interval: time.Millisecond, Depth: 2048, Sink: &h}); err != nil {
		t.Fatal(err)
	}
	const hour = 3_600_000
	tenth := 0
	for i := range hour {
		if i == hour/10 {
			tenth = statusField(t, "VmRSS:")
		}
		h.again(i)
	}
	if h.err != nil {
		t.Fatal(h.err)
	}
	fmt.Printf("the hour: peak %d KB, after a tenth %d KB, in the end %d KB; %d stacks, %d MB written\n",
		statusField(t, "VmHWM:"), tenth, statusField(t, "VmRSS:"), len(h.kept), h.w.Written()>>20)
}

func statusField(t *testing.T, name string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	return field(status, name)
}

// hourOfJFR is a session.Sink that writes JFR, and keeps samples to write them again.
type hourOfJFR struct {
	w    *jfr.Writer
	kept []profile.Sample
	at   profile.Instant
	err  error
}

// mostKept bounds the kept samples. Their stacks take some 5 MB, which count as goprof's memory here.
const mostKept = 2_000

func (h *hourOfJFR) Begin(at profile.Instant, m profile.Meta) {
	h.w.SetMeta(m)
	h.note(h.w.Tick(at))
}

func (h *hourOfJFR) Sample(s *profile.Sample) {
	h.at = s.At
	h.note(h.w.Sample(s))
	if s.Stack != nil && len(h.kept) < mostKept {
		again, stack := *s, *s.Stack
		stack.Frames = slices.Clone(stack.Frames)
		again.Stack = &stack
		h.kept = append(h.kept, again)
	}
}

func (h *hourOfJFR) ThreadStart(at profile.Instant, t profile.Thread) { h.note(h.w.ThreadStart(at, t)) }
func (h *hourOfJFR) ThreadEnd(at profile.Instant, t profile.Thread)   { h.note(h.w.ThreadEnd(at, t)) }
func (h *hourOfJFR) Tick(at profile.Instant, _ int)                   { h.note(h.w.Tick(at)) }

func (h *hourOfJFR) note(err error) {
	if h.err == nil {
		h.err = err
	}
}

// again writes a kept sample with another time, and other lines in its first and last frame. Each second a thread ends
// and another one begins.
func (h *hourOfJFR) again(i int) {
	s := &h.kept[i%len(h.kept)]
	h.at.Ticks += int64(time.Millisecond)
	h.at.Wall += int64(time.Millisecond)
	s.At = h.at
	if frames := s.Stack.Frames; len(frames) > 0 {
		frames[0].Line, frames[len(frames)-1].Line = int32(i%5000), int32(i/5000%5000)
	}
	h.note(h.w.Sample(s))
	if i%1000 == 0 {
		h.ThreadEnd(h.at, profile.Thread{TID: 5000 + i/1000, JavaName: fmt.Sprintf("worker-%d", i/1000)})
		h.ThreadStart(h.at, profile.Thread{TID: 5001 + i/1000, JavaName: fmt.Sprintf("worker-%d", i/1000+1)})
		h.Tick(h.at, 2)
	}
}
