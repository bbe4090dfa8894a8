//go:build linux

package oracle

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/session"
	"goprof/testdata/jvmtest"
)

// withoutHidden leaves out what some JVMs do not show unless they are told to
// (jdk.internal.vm.annotation.Hidden): the frames of lambdas, method handles, reflection and some callers.
func withoutHidden[F jvmtest.ShadowFrame | jvmtest.ExpectedFrame](frames []F) []F {
	return slices.DeleteFunc(slices.Clone(frames), func(f F) bool {
		method := jvmtest.ShadowFrame(f).Method
		return strings.Contains(method, "$$Lambda") || strings.HasPrefix(method, "java.lang.invoke.") ||
			method == "java.lang.Thread.runWith" || method == "java.security.AccessController.executePrivileged" ||
			method == "jdk.internal.reflect.DirectMethodHandleAccessor.invokeImpl"
	})
}

// TestKinds dumps a program whose threads stand still in every kind of frame, and run in
// every shape of code, and compares with what the JVM says and the source calls.
func TestKinds(t *testing.T) {
	t.Parallel()
	modes := []struct {
		name   string
		flags  []string
		check  func(*testing.T, []dumpedThread)
		groups []string // of threads, each a run of its own
	}{
		{"as-named", jvmtest.KindsFlags, checkKinds, kindsGroups()},
		{"interpreted", append([]string{"-Xint"}, jvmtest.KindsFlags...), checkAllInterpreted, []string{"parked"}},
		{"no-flags", nil, nil, kindsGroups()},
	}
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range modes {
			if mode.check == nil && !longForm && jdk != newestJDK(t) {
				continue
			}
			for _, group := range mode.groups {
				t.Run(strings.TrimSpace(mode.name+" "+group), func(t *testing.T) {
					flags := append(append(slices.Clone(mode.flags), "--"), strings.Fields(group)...)
					jvm := jvmtest.Start(t, jdk, "truth.Kinds", flags...)
					stacks, err := jvmtest.ParseStacks(jvm.Command("stacks"))
					if err != nil {
						t.Fatal(err)
					}
					s := attach(t, jvm.PID)
					awaitParked(t, s, jvm.PID, stacks)
					threads := dumpedParked(t, s, stacks, session.DumpOptions{})
					checkParked(t, threads, stacks, mode.flags == nil)
					checkNativeEnds(t, jdk, threads, stacks)
					if mode.check != nil && !strings.HasPrefix(group, "spinning") {
						mode.check(t, threads)
					}
					if slices.ContainsFunc(stacks, func(s jvmtest.ExpectedStack) bool { return !s.Parked }) {
						checkSpinning(t, s, stacks)
					}
				})
			}
		}
	})
}

func newestJDK(t *testing.T) jvmtest.JDK {
	jdks := jvmtest.JDKs(t)
	return jdks[len(jdks)-1]
}

// kindsGroups: all threads at once, but where CPUs are so slow that 15 spinning ones would hardly begin.
func kindsGroups() []string {
	if os.Getenv("GOPROF_EMULATED") == "" {
		return []string{""}
	}
	return []string{"parked", "spinning 0 3", "spinning 1 3", "spinning 2 3"}
}

// checkParked: threads that stand still are known frame by frame and line by line.
func checkParked(t *testing.T, threads []dumpedThread, stacks []jvmtest.ExpectedStack, hidden bool) {
	t.Helper()
	for _, want := range stacks {
		if !want.Parked {
			continue
		}
		th := threadNamed(t, threads, want.Thread)
		if th.Truncated != "" || th.Error != "" {
			t.Errorf("%s: truncated %q, error %q", want.Thread, th.Truncated, th.Error)
			continue
		}
		walked := javaOf(&th)
		if hidden {
			walked, want.Frames = withoutHidden(walked), withoutHidden(want.Frames)
		}
		if err := want.Compare(walked); err != nil {
			t.Errorf("%v\n%s", err, dumpedText(&th))
		}
		checkFrames(t, &th)
	}
}

// checkFrames holds each stack to what is true of all.
func checkFrames(t *testing.T, th *dumpedThread) {
	t.Helper()
	wrong := func(i int, why string) {
		t.Errorf("%s: frame %d, %s %s: %s\n%s", th.Name, i, th.Frames[i].Kind, th.Frames[i].Name, why, dumpedText(th))
	}
	var lastSP uint64
	for i := range th.Frames {
		f := &th.Frames[i]
		if sp := address(f.SP); f.Kind != "gap" && (sp == 0 || address(f.PC) == 0 || sp < lastSP) {
			wrong(i, "its pc or sp is not there or lies below the frame above it")
		} else {
			lastSP = max(sp, lastSP)
		}
		switch f.Kind {
		case "interpreted", "inlined", "c1", "c2":
			// Leaf methods, and code behind a method's last call, have no debug information; their
			// line is that of the method's beginning. A thread may be at the entry of an inlined method, before
			// its first bytecode: C1 counts calls there (c1_LIRGenerator.cpp, increment_event_counter_impl).
			if f.BCI == nil && f.Kind != "c1" && f.Kind != "c2" && (f.Kind != "inlined" || i > 0) {
				wrong(i, "no bytecode index")
			}
			if f.Line == 0 && strings.HasPrefix(f.Name, "truth.") && !strings.Contains(f.Name, "$$Lambda") {
				wrong(i, "no line")
			}
		case "native-method", "stub", "native", "gap":
			if f.BCI != nil || f.Line != 0 {
				wrong(i, "it has a line or a bytecode index")
			}
		default:
			wrong(i, "what kind is that?")
		}
		// A compiled frame's levels: 1 to 3 is C1, 4 is C2 (compiler/compilerDefinitions.hpp).
		if c1, c2 := f.Level >= 1 && f.Level <= 3, f.Level == 4; c1 != (f.Kind == "c1") || c2 != (f.Kind == "c2") {
			if f.Kind != "inlined" && f.Kind != "native-method" {
				wrong(i, "its level is "+strconv.Itoa(f.Level))
			}
		}
		if f.Kind == "inlined" && !inlinedIntoNext(th.Frames[i:]) {
			wrong(i, "it is not inlined into the frame below it")
		}
		if f.Kind == "native" && f.Module == "" {
			wrong(i, "native code of no library")
		}
	}
}

// inlinedIntoNext: an inlined method stands above others, or the owner, of one physical frame.
func inlinedIntoNext(frames []dumpedFrame) bool {
	if len(frames) < 2 || frames[0].SP != frames[1].SP || frames[0].PC != frames[1].PC {
		return false
	}
	return frames[1].Kind == "inlined" || frames[1].Kind == "c1" || frames[1].Kind == "c2"
}

func address(text string) uint64 {
	a, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0
	}
	return a
}

// checkNativeEnds: a thread's root is where libc starts threads; above and below Java stand
// the native frames that belong there.
func checkNativeEnds(t *testing.T, jdk jvmtest.JDK, threads []dumpedThread, stacks []jvmtest.ExpectedStack) {
	t.Helper()
	named := hasSymbols(jdk)
	for _, want := range stacks {
		th := threadNamed(t, threads, want.Thread)
		if !want.Parked || len(th.Frames) == 0 { // no frames: checkParked has said it
			continue
		}
		top, bottom := th.Frames[0], th.Frames[len(th.Frames)-1]
		if top.Kind != "native" || bottom.Kind != "native" || !startsThreads(bottom.Name) {
			t.Errorf("%s stands in %s %s and began in %s %s", th.Name, top.Kind, top.Name, bottom.Kind, bottom.Name)
		}
		entries := 0
		for i := 1; i < len(th.Frames)-1; i++ {
			above, f, below := th.Frames[i-1], th.Frames[i], th.Frames[i+1]
			switch {
			case f.Name == "call_stub":
				entries++
				if !above.isJava() || below.Kind != "native" || named && !strings.HasPrefix(below.Name, "JavaCalls::call_helper") {
					t.Errorf("%s: call_stub between %s and %s", th.Name, above.Name, below.Name)
				}
			case strings.HasSuffix(f.Name, ".Unsafe.park"):
				if f.Kind != "native-method" || named && above.Name != "Unsafe_Park" {
					t.Errorf("%s: Unsafe.park is a %s frame below %s", th.Name, f.Kind, above.Name)
				}
			}
		}
		// The VM itself calls initialisers and class loaders, from below other Java.
		nested := want.Thread == "class-initialiser" || want.Thread == "class-loader"
		if entries == 0 || nested && entries < 2 {
			t.Errorf("%s: Java is entered %d times\n%s", th.Name, entries, dumpedText(&th))
		}
	}
}

// startsThreads: libc's clone3 is its own affair, and a stripped libc (glibc 2.42 in Debian) does not name it.
func startsThreads(name string) bool {
	return strings.Contains(name, "clone") || strings.HasPrefix(name, "libc.so.6+")
}

// hasSymbols: distributions may strip libjvm.so; its functions then have no names.
func hasSymbols(jdk jvmtest.JDK) bool {
	f, err := elf.Open(filepath.Join(jdk.Home, "lib", "server", "libjvm.so"))
	if err != nil {
		return false
	}
	defer f.Close()
	symbols, err := f.Symbols()
	return err == nil && len(symbols) > 0
}

// kindsOf are the frames whose kind the program's flags and call counts decide.
var kindsOf = []struct{ thread, method, kind string }{
	{"interpreted", "interpretedA", "interpreted"},
	{"interpreted", "interpretedB", "interpreted"},
	{"interpreted", "interpretedC", "interpreted"},
	{"c1", "c1C", "inlined"},
	{"c1", "c1B", "inlined"},
	{"c1", "c1A", "c1"},
	{"c2-inlined", "inlinedD", "inlined"},
	{"c2-inlined", "inlinedC", "inlined"},
	{"c2-inlined", "inlinedB", "inlined"},
	{"c2-inlined", "inlinedA", "c2"},
	{"osr", "osr", "c2"},
	{"mixed", "inlinedRoot", "c2"},
	{"mixed", "interpretedUpper", "interpreted"},
	{"mixed", "inlinedUpper", "c2"},
	{"mixed", "interpretedLeaf", "interpreted"},
	{"synchronized", "synchronizedBlock", "inlined"},
	{"synchronized", "synchronizedMethod", "c2"},
}

func checkKinds(t *testing.T, threads []dumpedThread) {
	t.Helper()
	for _, want := range kindsOf {
		th := threadNamed(t, threads, want.thread)
		i := slices.IndexFunc(th.Frames, func(f dumpedFrame) bool { return f.Name == "truth.Parked."+want.method })
		if i < 0 {
			t.Errorf("%s is not on the stack of %s", want.method, want.thread)
			continue
		}
		if f := &th.Frames[i]; f.Kind != want.kind || f.File != "Parked.java" {
			t.Errorf("%s: %s of %s is %s, not %s", want.thread, f.Name, f.File, f.Kind, want.kind)
		}
	}
}

// checkAllInterpreted: with -Xint nothing else is there.
func checkAllInterpreted(t *testing.T, threads []dumpedThread) {
	t.Helper()
	for _, th := range threads {
		for _, f := range th.Frames {
			if f.isJava() && f.Kind != "interpreted" && f.Kind != "native-method" {
				t.Errorf("%s: %s is %s", th.Name, f.Name, f.Kind)
			}
		}
	}
}

// spinLooks is how often each running thread is to be seen in its loop, in at most spinDumps
// dumps. Most must be: some hardly ever are where CPUs are short, because they wait for
// theirs between two rounds, where the collector's safepoints have held them.
const (
	spinLooks = 3
	spinDumps = 400
)

// checkSpinning looks at running threads again and again. Each stack that claims to be whole must
// end with the calls that the thread began with; hardly any may be cut.
func checkSpinning(t *testing.T, s *session.Session, stacks []jvmtest.ExpectedStack) {
	t.Helper()
	due := map[string]int{}
	for _, want := range stacks {
		if !want.Parked {
			due[want.Thread] = spinLooks
		}
	}
	spinning, looks, cut, shown := len(due), 0, 0, 0
	for dumps := 0; dumps < spinDumps && len(due) > 0; dumps++ {
		threads := dumped(t, s, session.DumpOptions{})
		for _, want := range stacks {
			if due[want.Thread] == 0 {
				continue
			}
			th := threadNamed(t, threads, want.Thread)
			if isLate(th) {
				continue // it had no CPU to stop on
			}
			looks++
			if th.Truncated != "" || th.Error != "" {
				cut++
				t.Logf("%s: truncated %q, error %q\n%s", th.Name, th.Truncated, th.Error, dumpedText(&th))
				continue
			}
			checkFrames(t, &th)
			walked := withoutHidden(javaOf(&th))
			if hasMethod(walked, want.Frames[0].Method) {
				if due[want.Thread]--; due[want.Thread] == 0 {
					delete(due, want.Thread)
				}
			} else {
				want.Frames = want.Frames[1:]
			}
			if err := want.Compare(walked); err != nil && shown < 3 {
				shown++
				t.Errorf("%v\n%s", err, dumpedText(&th))
			}
		}
	}
	t.Logf("running threads: %d looks, %d cut", looks, cut)
	if len(due) > 0 {
		t.Logf("hardly ever seen in their loops: %v", due)
	}
	if len(due) > spinning/4 {
		t.Errorf("%d of %d threads are hardly ever seen in their loops", len(due), spinning)
	}
	if cut > atMost(1.0/50, looks) {
		t.Errorf("%d of %d looks are cut", cut, looks)
	}
}

func hasMethod(frames []jvmtest.ShadowFrame, method string) bool {
	return slices.ContainsFunc(frames, func(f jvmtest.ShadowFrame) bool { return f.Method == method })
}
