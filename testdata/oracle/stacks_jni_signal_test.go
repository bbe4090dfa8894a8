//go:build linux

package oracle

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
)

// TestSignals sends a signal to a thread that keeps its own stack, in Java at any instruction,
// and stops it in the handler that a native library has installed: the handler must be there,
// the kernel's trampoline below it, and below that the stack that was interrupted.
// GOPROF_SIGNAL_STOPS is the number of stops.
func TestSignals(t *testing.T) {
	t.Parallel()
	stops := envNumber("GOPROF_SIGNAL_STOPS", ctest.Rounds(250))
	cfi := buildNative(t, "jnisignal.c", "libjnisignal.so", withCFI...)
	none := buildNative(t, "jnisignal.c", "libjnisignalbare.so", bare...).strip(t)
	modes := []struct {
		name, flag, stack string
		lib               *nativeLibrary
		// mayEnd is why stacks may end in the handler, but never with a wrong frame: where there
		// are no rules for it and the thread was in Java, nothing tells where.
		mayEnd profile.Reason
	}{
		{"mixed", "-Xmixed", "own", cfi, profile.Whole},
		{"interpreted", "-Xint", "own", cfi, profile.Whole},
		{"alternate", "-Xmixed", "alternate", cfi, profile.Whole},
		{"alternate-interpreted", "-Xint", "alternate", cfi, profile.Whole},
		{"no-unwind-info", "-Xmixed", "own", none, profile.NoUnwindInfo},
	}
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range modes {
			t.Run(mode.name, func(t *testing.T) {
				run := startSignals(t, jdk, mode.flag, mode.stack, mode.lib)
				run.mayEnd = mode.mayEnd
				made := 0
				for ; made < stops || !run.metEnough(made) && made < 20*stops; made++ {
					run.stop(made)
				}
				run.check(made, mode.stack == "alternate")
				if mode.mayEnd == profile.Whole {
					run.checkDump()
				}
			})
		}
	})
}

// signalRun is one JVM whose thread gets signals.
type signalRun struct {
	t       *testing.T
	s       *session.Session
	lib     *nativeLibrary
	shadow  *jvmtest.Shadow
	handler []byte // the mapped file in which the handler tells what it does
	tid     int
	th      session.Thread
	mayEnd  profile.Reason

	inside, nested int
	// What became of the stops in a handler, and of those outside.
	within, without shadowCount
	interrupted     map[profile.Kind]int
}

func startSignals(t *testing.T, jdk jvmtest.JDK, flag, stack string, lib *nativeLibrary) *signalRun {
	t.Helper()
	dir := t.TempDir()
	shadowPath, statePath := filepath.Join(dir, "shadow"), filepath.Join(dir, "state")
	jvm := jvmtest.Start(t, jdk, "truth.JniSignals",
		append(jniFlags(jdk), flag, "--", lib.path, stack, statePath, shadowPath)...)
	shadow, tid := oneShadowThread(t, shadowPath)
	r := &signalRun{
		t: t, s: attach(t, jvm.PID), lib: lib, shadow: shadow, tid: tid,
		handler: mapState(t, statePath), interrupted: map[profile.Kind]int{},
		within:  shadowCount{reasons: map[profile.Reason]int{}, code: map[[2]uint64]map[string]bool{}},
		without: shadowCount{reasons: map[profile.Reason]int{}, code: map[[2]uint64]map[string]bool{}},
	}
	if r.th, _ = r.s.Thread(r.tid); r.th.Java.Addr == 0 {
		t.Fatalf("thread %d is not a Java thread", r.tid)
	}
	return r
}

func mapState(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(data) })
	return data
}

// told is a number that the handler keeps.
func (r *signalRun) told(i int) int { return int(binary.LittleEndian.Uint32(r.handler[4*i:])) }

const (
	handlersRunning = iota
	handlersRun
	handlersOnAlternate
	looksTaken
)

// letGo lets the handlers that are running return.
func (r *signalRun) letGo() {
	binary.LittleEndian.PutUint32(r.handler[4*looksTaken:], uint32(r.told(looksTaken)+1))
}

// maxHandlers bounds how many handlers interrupt one another.
const maxHandlers = 2

// maxUncounted bounds how many handlers stand where they have not counted themselves yet, or no more: on a slow machine
// the next signal comes before that, again and again.
var maxUncounted = maxHandlers * int(min(jvmtest.Slow(1), 4))

// stop sends a signal, lets some time pass, and looks.
func (r *signalRun) stop(i int) {
	t := r.t
	t.Helper()
	if r.told(handlersRunning) < maxHandlers {
		if err := unix.Tgkill(r.s.Process.PID(), r.tid, unix.SIGPROF); err != nil {
			t.Fatal(err)
		}
	}
	pause(i)
	if i%4 == 3 { // look at it as it returns, or when it has
		r.letGo()
	}
	running := 0
	own, snap := stopShadow(t, r.s, r.shadow, r.tid, r.th, func() { running = r.told(handlersRunning) })
	if i%8 != 5 { // else the next signal interrupts the handler
		r.letGo()
	}
	if !own.Running {
		t.Fatal("the program's thread has ended")
	}
	var st profile.Stack
	r.s.Walker.Walk(snap, &st)
	handlers, why := r.handlers(&st)
	// A handler has begun before it says so, and still runs when it says no more. One that has no
	// unwind information hides those that it has interrupted.
	if r.lib.stripped {
		running = min(running, 1)
	}
	if why == "" && (handlers < running || handlers > running+maxUncounted) {
		why = fmt.Sprintf("%d handlers are shown, %d run", handlers, running)
	}
	count := &r.without
	if handlers > 0 || running > 0 {
		count = &r.within
		r.inside++
		if handlers > 1 {
			r.nested++
		}
	}
	if why == "" {
		why = r.judge(&st, own, count)
	}
	if st.Truncated != profile.Whole && st.Truncated != r.mayEnd && os.Getenv("GOPROF_SHOW") != "" {
		t.Logf("%s\nshadow:\n%s", describe(r.s, snap, &st), shadowText(own))
	}
	if why != "" {
		if count.verdicts[jvmtest.Mismatch]++; count.verdicts[jvmtest.Mismatch] < 4 {
			t.Errorf("seed %d: %s\n%s\nshadow:\n%s", own.Seed, why, describe(r.s, snap, &st), shadowText(own))
		}
	}
}

// metEnough reports whether the stops have met what they are for: handlers, which have interrupted code of some kinds.
// Two of three stops do, where the thread has a CPU on which to take the signal before it is stopped.
func (r *signalRun) metEnough(stops int) bool {
	return r.inside*4 >= stops && (r.mayEnd != profile.Whole || len(r.interrupted) >= 3)
}

// handlers counts the handlers on the stack and holds what is around them to what it must be.
func (r *signalRun) handlers(st *profile.Stack) (n int, why string) {
	frames := st.Frames
	for i := range frames {
		f := &frames[i]
		if f.Kind != profile.Native || f.Func.Module != r.lib.name() {
			continue
		}
		switch name := r.lib.nameAt(f.Func.Name); name {
		case "handle":
			if r.hasGap(frames[i:]) {
				n++ // the gap holds onSignal
				continue
			}
			if i+1 == len(frames) || r.lib.nameAt(frames[i+1].Func.Name) != "onSignal" {
				return n, "handle is not called by onSignal"
			}
		case "onSignal":
			n++
			if r.hasGap(frames[i:]) {
				continue
			}
			if i+1 == len(frames) || !isTrampoline(&frames[i+1]) {
				return n, "below a handler there is no trampoline"
			}
			if i+2 < len(frames) {
				r.interrupted[frames[i+2].Kind]++
			}
		default:
			// On its way to clock_gettime, in the linker's table, which has no names: on top, or interrupted.
			interrupted := i == 0 || isTrampoline(&frames[i-1])
			if !interrupted || !strings.HasPrefix(name, r.lib.name()+"+") {
				return n, "an unknown function of the library: " + name
			}
			if r.hasGap(frames[i:]) {
				n++
			}
		}
	}
	return n, ""
}

// isTrampoline: a handler returns to code that makes the system call rt_sigreturn. It is libc's, or
// the kernel's own (arm64).
func isTrampoline(f *profile.Frame) bool {
	return f.Kind == profile.Native && (strings.HasPrefix(f.Func.Module, "libc.so") || f.Func.Module == "[vdso]")
}

// hasGap: the uppermost frame is followed by a gap for its library.
func (r *signalRun) hasGap(frames []profile.Frame) bool {
	return len(frames) > 1 && frames[1].Kind == profile.Gap && frames[1].Func.Name == "[no unwind info: "+r.lib.name()+"]"
}

// judge compares the Java frames. A stack with a handler that does not reach its root must
// have none: the handler is on top of them.
func (r *signalRun) judge(st *profile.Stack, own jvmtest.ShadowThread, count *shadowCount) string {
	count.stops++
	if st.Truncated != profile.Whole {
		count.truncated++
		count.reasons[st.Truncated]++
		isJava := func(f profile.Frame) bool { return f.Kind.Java() }
		switch {
		case st.Truncated == profile.NotCode:
			return "a frame that is none: " + st.Truncated.String()
		case st.Truncated == r.mayEnd && slices.ContainsFunc(st.Frames, isJava):
			return "Java frames in a stack that ends: " + st.Truncated.String()
		}
		return ""
	}
	verdict, why := r.shadow.Judge(own.Frames, count.walkOf(r.s, r.shadow, st))
	if verdict == jvmtest.Mismatch {
		return why.Error()
	}
	count.verdicts[verdict]++
	return ""
}

// checkDump: what the sampler itself copies is enough, too.
func (r *signalRun) checkDump() {
	t := r.t
	t.Helper()
	for range 50 {
		if err := unix.Tgkill(r.s.Process.PID(), r.tid, unix.SIGPROF); err != nil {
			t.Fatal(err)
		}
		th := threadNamed(t, dumped(t, r.s, session.DumpOptions{}), "shadow-0")
		r.letGo()
		inHandler := slices.ContainsFunc(th.Frames, func(f dumpedFrame) bool { return f.Name == "onSignal" })
		if !inHandler && th.Truncated == "" {
			continue // it was looked at before the signal came, or did not stop in time
		}
		if th.Truncated != "" || !hasMethod(javaOf(&th), "truth.Shadow.run") {
			t.Errorf("a dump shows: truncated %q, error %q\n%s", th.Truncated, th.Error, dumpedText(&th))
		}
		return
	}
	t.Error("no dump shows the handler")
}

func (r *signalRun) check(stops int, alternate bool) {
	t := r.t
	t.Helper()
	t.Logf("%d handlers run, %d on the alternate stack; %d stops in a handler, %d of them in more than one\nin a "+
		"handler: %v\noutside: %v\ninterrupted: %v",
		r.told(handlersRun), r.told(handlersOnAlternate), r.inside, r.nested, &r.within, &r.without, r.interrupted)
	if n := r.within.verdicts[jvmtest.Mismatch] + r.without.verdicts[jvmtest.Mismatch]; n > 0 {
		t.Errorf("%d mismatches", n)
	}
	for _, count := range []*shadowCount{&r.within, &r.without} {
		if ends := count.truncated - count.reasons[r.mayEnd]; ends > atMost(1.0/200, stops) {
			t.Errorf("%d of %d stacks are truncated for other reasons than the handler, more than 0.5 %%", ends, stops)
		}
	}
	if !r.metEnough(stops) {
		t.Errorf("only %d of %d stops are in a handler; handlers have interrupted %v", r.inside, stops, r.interrupted)
	}
	if on := r.told(handlersOnAlternate); alternate != (on > 0) {
		t.Errorf("%d handlers ran on the alternate stack", on)
	}
}
