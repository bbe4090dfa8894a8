//go:build linux

package oracle

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// foreignFlags: what is called may be interpreted, or compiled by each compiler.
var foreignFlags = []struct {
	name  string
	flags []string
}{
	{"mixed", nil},
	{"interpreted", []string{"-Xint"}},
	{"c1", []string{"-XX:TieredStopAtLevel=1"}},
	{"c2", []string{"-XX:-TieredCompilation"}},
}

// foreignSamples are taken of each way to run truth.Foreign.
const foreignSamples = 150

// TestForeign: Java calls C by a downcall, which calls Java by an upcall (Panama, final in JDK 22): stacks are
// whole, and hold all three in their order.
func TestForeign(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 22 {
			t.Skip("java.lang.foreign is there since 22")
		}
		for _, mode := range foreignFlags {
			t.Run(mode.name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.Foreign",
					append(slices.Clone(mode.flags), "--enable-native-access=ALL-UNNAMED")...)
				s := attach(t, jvm.PID)
				standing := dumpedParked(t, s, []jvmtest.ExpectedStack{{Thread: "standing", Parked: true}}, session.DumpOptions{})
				th := threadNamed(t, standing, "standing")
				if th.Truncated != "" || th.Error != "" || !inOrder(calledBack, foreignFrames(&th)) {
					t.Errorf("truncated %q, error %q\n%s", th.Truncated, th.Error, dumpedText(&th))
				}
				f := foreign{t: t, s: s}
				for n := 0; n == 0 || f.upcalls == 0 && n < 10; n++ {
					sample(t, s, time.Millisecond, foreignSamples, f.check)
				}
				t.Logf("%d stacks in sort, %d of them called back, %d not whole", f.sorts, f.upcalls, f.cut)
				if f.upcalls == 0 || f.cut > atMost(1.0/50, f.sorts) {
					t.Error("too few")
				}
			})
		}
	})
}

// foreign judges stacks of truth.Foreign.
type foreign struct {
	t                   *testing.T
	s                   *session.Session
	sorts, upcalls, cut int
}

func (f *foreign) check(snap *look.Look, st *profile.Stack) {
	var frames []string
	for _, fr := range st.Frames {
		frames = append(frames, foreignName(fr.Func.Name, fr.Func.Module))
	}
	if st.Truncated != profile.Whole {
		if th, _ := f.s.Thread(snap.TID); th.Name == "sorting" {
			if f.cut++; f.cut < 3 {
				f.t.Log(describe(f.s, &snap.Snapshot, st))
			}
		}
		return
	}
	if !slices.Contains(frames, "truth.Foreign.sort") {
		return // another thread, or between two sorts
	}
	f.sorts++
	due := called
	// Which method inlined on top a pc belongs to HotSpot may not know: compare can be missing there.
	switch {
	case slices.Contains(frames, "truth.Foreign.compare"):
		f.upcalls++
		due = calledBack
	case slices.Contains(frames, "upcall_stub"):
		f.upcalls++
		due = calledBack[1:]
	}
	if !inOrder(due, frames) {
		f.t.Error(describe(f.s, &snap.Snapshot, st))
	}
}

// From the top down: what stands in any stack of a sort, and in one of its comparator; at the root is libc, where the
// thread began.
var (
	called     = []string{"truth.Foreign.sort", "truth.Foreign.run", "call_stub", "libc"}
	calledBack = append([]string{"truth.Foreign.compare", "upcall_stub", "libc", "nep_invoker_blob"}, called...)
)

func foreignFrames(th *dumpedThread) (frames []string) {
	for i := range th.Frames {
		frames = append(frames, foreignName(th.Frames[i].Name, th.Frames[i].Module))
	}
	return frames
}

// foreignName is "libc" for whatever is called in there: it may have no symbols.
func foreignName(name, module string) string {
	if strings.HasPrefix(path.Base(module), "libc.so") {
		return "libc"
	}
	return name
}

// TestCritical: a thread in a JNI critical section holds the collector up; its stacks are whole all the same, and
// the program's results stay right.
func TestCritical(t *testing.T) {
	t.Parallel()
	library := buildNative(t, "critical.c", "libcritical.so", "-O2", "-fomit-frame-pointer")
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Critical", append(jniFlags(jdk), "-Xmx64m", "--", library.path)...)
		s := attach(t, jvm.PID)
		within, cut := 0, 0
		each := func(snap *look.Look, st *profile.Stack) {
			var names []string
			for _, f := range st.Frames {
				names = append(names, f.Func.Name)
			}
			if !slices.Contains(names, "critical_sum") {
				return
			}
			within++
			if st.Truncated != profile.Whole {
				cut++
				t.Log(describe(s, &snap.Snapshot, st))
			} else if want := []string{"critical_sum", "Java_truth_Critical_sum", "truth.Critical.sum",
				"truth.Critical.run"}; !slices.Equal(names[:min(len(names), len(want))], want) {
				t.Error(describe(s, &snap.Snapshot, st))
			}
		}
		for n := 0; n == 0 || within == 0 && n < 20; n++ {
			sample(t, s, time.Millisecond, foreignSamples, each)
		}
		if within == 0 || cut > 0 {
			t.Errorf("%d stacks in critical sections, %d not whole", within, cut)
		}
	})
}
