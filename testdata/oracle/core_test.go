//go:build linux

package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/session"
	"goprof/session/postmortem"
	"goprof/testdata/corefile"
	"goprof/testdata/jvmtest"
)

// TestCore stops a JVM at an arbitrary moment, dumps it as it stands, and once more out of its core file: both tell the
// same of each thread, frame by frame. In the long form (GOPROF_PROVE=1) that is so in each mode of the shadow test.
// GOPROF_CORE_STOPS says how often each JVM is stopped.
func TestCore(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range shadowModes {
			if !longForm && mode.name != "mixed" {
				continue
			}
			t.Run(mode.name, func(t *testing.T) {
				jvm, _ := startShadow(t, jdk, append([]string{"-Xmx64m"}, mode.flags...), mode.args)
				stops := 1
				if longForm {
					stops = 3
				}
				if s := os.Getenv("GOPROF_CORE_STOPS"); s != "" {
					stops, _ = strconv.Atoi(s)
				}
				for range stops {
					time.Sleep(300 * time.Millisecond)
					compareCore(t, jvm.PID, corefile.Write)
				}
			})
		}
	})
}

// TestCoreOfLocks does the same of programs whose threads wait for each other, and of virtual threads.
func TestCoreOfLocks(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", "-Xmx64m", "--", "7", "12", "mrw", "0")
		compareCore(t, jvm.PID, corefile.Write)
	})
}

// compareCore stops a JVM, dumps it live, and out of what make makes of it.
func compareCore(t *testing.T, pid int, make func(testing.TB, int) string) {
	t.Helper()
	signal(t, pid, syscall.SIGSTOP)
	defer signal(t, pid, syscall.SIGCONT)
	awaitStates(t, pid, "T")
	s := attach(t, pid)
	live, err := s.Dump(session.DumpOptions{Locks: true, Virtual: &profile.VirtualWaits{}})
	if err != nil {
		t.Fatal(err)
	}
	name := make(t, pid)
	defer os.Remove(name)
	dead := dumpCore(t, name, process.CoreOptions{})
	sameDumps(t, live, dead.Threads)
}

// dumpCore is the dump of a core file.
func dumpCore(t *testing.T, name string, opt process.CoreOptions) *profile.Dump {
	t.Helper()
	d, j := openCore(t, name, opt)
	j.Close()
	return d
}

// openCore opens a core file, and dumps it.
func openCore(t *testing.T, name string, opt process.CoreOptions) (*profile.Dump, *postmortem.JVM) {
	t.Helper()
	j := openJVM(t, name, opt)
	d, err := j.Dump(postmortem.Options{Locks: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Core.Missing) > 0 {
		t.Errorf("missing: %+v", d.Core.Missing)
	}
	return d, j
}

// openJVM opens a core file of a JVM. The caller closes what is returned.
func openJVM(t *testing.T, name string, opt process.CoreOptions) *postmortem.JVM {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	j, err := postmortem.Open(f, st.Size(), opt)
	if err != nil {
		t.Fatal(err)
	}
	j.Walker.RawNames = true // as attach has it
	return j
}

// sameDumps compares all that both can tell.
func sameDumps(t *testing.T, live, dead []profile.ThreadDump) {
	t.Helper()
	byRef := map[profile.ThreadRef]*profile.ThreadDump{}
	for i := range dead {
		ref := dead[i].Ref()
		ref.Name = ""
		byRef[ref] = &dead[i]
	}
	if len(live) != len(dead) {
		t.Errorf("%d threads live, %d in the core", len(live), len(dead))
	}
	frames, java := 0, 0
	for i := range live {
		ref := live[i].Ref()
		ref.Name = ""
		a, b := &live[i], byRef[ref]
		if b == nil {
			t.Errorf("%q is not in the core", a.Name)
			continue
		}
		if why := differs(a, b); why != "" {
			t.Errorf("%q: %s", a.Name, why)
		}
		frames += len(a.Stack.Frames)
		if a.Java {
			java++
		}
	}
	if java == 0 || frames < 10 {
		t.Errorf("%d Java threads, %d frames: nothing was compared", java, frames)
	}
	t.Logf("%d threads, %d of them Java's, %d frames are the same", len(live), java, frames)
}

// differs says in what two looks at a thread differ.
func differs(a, b *profile.ThreadDump) string {
	if a.Address != 0 && a.Name != b.Name {
		return fmt.Sprintf("it is called %q", b.Name)
	}
	if len(a.Stack.Frames) != len(b.Stack.Frames) || a.Stack.Truncated != b.Stack.Truncated {
		return fmt.Sprintf("%d frames (%v), in the core %d (%v):\n%s\nin the core\n%s", len(a.Stack.Frames),
			a.Stack.Truncated, len(b.Stack.Frames), b.Stack.Truncated, frameLines(a), frameLines(b))
	}
	for i := range a.Stack.Frames {
		x, y := a.Stack.Frames[i], b.Stack.Frames[i]
		x.Func, y.Func = nil, nil
		if x != y || !reflect.DeepEqual(a.Stack.Frames[i].Func, b.Stack.Frames[i].Func) {
			return fmt.Sprintf("frame %d: %+v %+v, in the core %+v %+v", i, a.Stack.Frames[i].Func, x,
				b.Stack.Frames[i].Func, y)
		}
	}
	if a.Address == 0 {
		return ""
	}
	type facts struct {
		state, holds, wants  string
		java, daemon, system bool
		id                   int64
		priority             int
	}
	factsOf := func(t *profile.ThreadDump) facts {
		f := facts{state: t.State, holds: fmt.Sprintf("%+v", t.Holds), java: t.Java, daemon: t.Daemon, system: t.System,
			id: t.JavaID, priority: t.Priority}
		if t.WaitsFor != nil {
			f.wants = fmt.Sprintf("%+v", *t.WaitsFor)
		}
		return f
	}
	if x, y := factsOf(a), factsOf(b); x != y {
		return fmt.Sprintf("%+v, in the core %+v", x, y)
	}
	return ""
}

// frameLines shows a stack, a frame on a line.
func frameLines(d *profile.ThreadDump) string {
	var b strings.Builder
	for _, f := range d.Stack.Frames {
		fmt.Fprintf(&b, "  %+v %+v\n", *f.Func, f)
	}
	return b.String()
}

// TestCoreRoot: without libjvm.so nothing can be told, which is said with its build id. A copy of the file below
// another root, or in a folder by its name, will do. A file of that name with another build does not.
func TestCoreRoot(t *testing.T) {
	t.Parallel()
	jdk := jvmtest.JDKs(t)[0]
	jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", "-Xmx64m", "--", "7", "12", "mrw", "0")
	name := corefile.Write(t, jvm.PID)
	empty, byName, other := t.TempDir(), t.TempDir(), t.TempDir()
	copyFile(t, jdk.Library(t), filepath.Join(byName, "libjvm.so"))
	copyFile(t, "/proc/self/exe", filepath.Join(other, "libjvm.so"))
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	for _, c := range []struct {
		opt  process.CoreOptions
		fine bool
	}{
		{process.CoreOptions{Root: empty}, false},
		{process.CoreOptions{Root: empty, DebugDirs: []string{other}}, false},
		{process.CoreOptions{Root: empty, DebugDirs: []string{other, byName}}, true},
	} {
		j, err := postmortem.Open(f, st.Size(), c.opt)
		if (err == nil) != c.fine {
			t.Errorf("%+v: %v", c.opt, err)
		}
		named := false
		for _, m := range j.Core.Missing() {
			named = named || filepath.Base(m.Path) == "libjvm.so" && len(m.BuildID) >= 16
		}
		if named == c.fine {
			t.Errorf("%+v: missing %+v", c.opt, j.Core.Missing())
		}
		j.Close()
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
