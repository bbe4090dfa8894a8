//go:build linux

package oracle

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// TestEventStacks: truth.Encoded asks for native memory, and the size says by which methods. Each stack is held against
// that, frame by frame.
func TestEventStacks(t *testing.T) {
	want := envNumber("GOPROF_EVENT_STACKS", 500)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Encoded", "-XX:CompileCommand=quiet",
			"-XX:CompileCommand=exclude,truth/Encoded.interpreted", "-XX:MaxDirectMemorySize=200m")
		s := attach(t, jvm.PID)
		name := "libjvm:Unsafe_AllocateMemory0"
		if jdk.Version == 8 {
			name = "libjvm:Unsafe_AllocateMemory"
		}
		plan := findEvent(t, s, name, 0)
		sampling := s.EventSampling(plan)
		ctx, cancel := context.WithTimeout(context.Background(), jvmtest.Slow(5*time.Minute))
		defer cancel()
		size := s.Process.CPU().Probe.Args[2]
		seen, cut, unproven, bad := 0, 0, 0, 0
		var st profile.Stack
		each := func(snap *look.Look) {
			if seen >= want {
				cancel()
				return
			}
			sampling.Walk(snap, &st)
			if !sampling.Proven(snap) {
				unproven++
				return
			}
			if seen++; st.Truncated != profile.Whole {
				cut++
				return
			}
			if why := encodedStack(&st, uint32(snap.Regs[size])); why != "" {
				if bad++; bad < 4 {
					t.Errorf("%s\n%s", why, describe(s, &snap.Snapshot, &st))
				}
			}
		}
		if _, err := sampling.Run(ctx, sampler.Config{Interval: time.Second}, each); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d stacks, %d cut, %d wrong; %d stale", seen, cut, bad, unproven)
		if seen < want || cut*200 > seen || bad > 0 || unproven*10 > seen {
			t.Errorf("%d stacks of %d, %d cut, %d wrong; %d stale", seen, want, cut, bad, unproven)
		}
	})
}

// encodedStack says what is wrong with a stack of truth.Encoded that asked for so much.
func encodedStack(st *profile.Stack, code uint32) (why string) {
	var got []string
	for i := range st.Frames {
		if name, ok := strings.CutPrefix(st.Frames[i].Func.Name, "truth.Encoded."); ok {
			if st.Frames[i].Func.Name == "truth.Encoded.run" {
				got = append(got, "run")
				break
			}
			got = append(got, name)
		}
	}
	if want := encodedMethods(code); !slices.Equal(got, want) {
		return fmt.Sprintf("%d: %v, not %v", code, got, want)
	}
	return ""
}

// encodedMethods are the methods of truth.Encoded that a number stands for, the innermost first.
func encodedMethods(code uint32) (methods []string) {
	methods = append(methods, "run", "next")
	rest := code
	for range 4 + code%17 {
		rest = rest*1103515245 + 12345
		methods = append(methods, [4]string{"compiled", "interpreted", "small", "large"}[rest>>16&3], "next")
	}
	methods = append(methods, "leaf")
	slices.Reverse(methods)
	return methods
}

// TestProbesEnd kills goprof with a probe set at random moments: afterwards the page is as in the file, and the program
// lives and counts right.
func TestProbesEnd(t *testing.T) {
	kills := envNumber("GOPROF_EVENT_KILLS", 20)
	jdk := jvmtest.JDKs(t)[0]
	jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "100000000", "2")
	s := attach(t, jvm.PID)
	findEvent(t, s, "alloc", 0)
	binary := buildGoprof(t)
	list, err := s.Process.Functions("libjvm.so", "AllocTracer::send_allocation_in_new_tlab")
	if err != nil {
		t.Fatal(err) // findEvent has found it
	}
	before := codeAt(t, s.Process, list[0])
	was := 0
	for i := range kills {
		cmd := exec.Command(binary, "record", "--pid", strconv.Itoa(jvm.PID), "--event", "alloc", "-q", "-o",
			filepath.Join(t.TempDir(), "out.collapsed"))
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		set := awaitProbe(t, s.Process, list[0], before)
		if set {
			was++
		}
		time.Sleep(time.Duration(i*7%50) * time.Millisecond)
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		if !set {
			t.Logf("no probe: %s", said.String())
		}
		deadline := time.Now().Add(jvmtest.Slow(10 * time.Second))
		for codeAt(t, s.Process, list[0]) != before {
			if time.Now().After(deadline) {
				t.Fatalf("after kill %d the probe is still there", i)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if allocated(t, jvm) <= 0 {
			t.Fatal("the program does not answer")
		}
	}
	t.Logf("killed %d times, %d of them with the probe set", kills, was)
	if was < kills/2 {
		t.Errorf("the probe was set %d times of %d only", was, kills)
	}
}

// awaitProbe waits until the function's first bytes change, or for some seconds.
func awaitProbe(t *testing.T, p *process.Process, f process.Function, before string) bool {
	t.Helper()
	for deadline := time.Now().Add(jvmtest.Slow(20 * time.Second)); time.Now().Before(deadline); {
		if codeAt(t, p, f) != before {
			return true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

func codeAt(t *testing.T, p *process.Process, f process.Function) string {
	t.Helper()
	var b [16]byte
	if err := p.Read(f.Addr, b[:]); err != nil {
		t.Fatal(errors.Join(errors.New("the code cannot be read"), err))
	}
	return string(b[:])
}
