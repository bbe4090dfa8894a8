//go:build linux

package oracle

import (
	"slices"
	"strings"
	"testing"

	"goprof/profile"
)

// The tests of this file hold the judges of TestWitnesses against planted errors: what is wrong in a
// dump, or missing, or one too many, must be told.

const printedText = `4104:
2026-11-21 12:08:35
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing):

"reader" #12 daemon prio=5 os_prio=0 cpu=8.92ms elapsed=3.87s tid=0x00007fbfd811e940 nid=0x1023 waiting on condition  [0x00007fbfb549d000]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
	- parking to wait for  <0x000000069ec3c7b0> (a truth.Gate)
	at java.util.concurrent.locks.LockSupport.park(java.base@17.0.15/LockSupport.java:211)
	at truth.Parked$$Lambda$1/0x00007fbf58001408.run(Unknown Source)
	at java.lang.invoke.LambdaForm$MH/0x0000000081047800.invoke(java.base@25.0.3/LambdaForm$MH)
	at truth.Parked.run(Parked.java:55)
	at jdk.proxy2.$Proxy2.service(jdk.proxy2/Unknown Source)

   Locked ownable synchronizers:
	- None

"VM Thread" os_prio=0 cpu=9.35ms elapsed=3.15s tid=0x00007fd7dc0b0230 nid=4717 runnable  
`

const debuggedText = `Attaching to process ID 4104, please wait...
Deadlock Detection:

No deadlocks found.

"reader" #12 daemon prio=5 tid=0x00007fbfd811e940 nid=4131 waiting on condition [0x00007fbfb549d000]
   java.lang.Thread.State: WAITING (parking)
   JavaThread state: _thread_blocked
 - jdk.internal.misc.Unsafe.park(boolean, long) @bci=0 (Interpreted frame)
	- parking to wait for <0x000000069ec3c7b0> (a truth/Gate)
 - java.util.concurrent.locks.LockSupport.park(java.lang.Object) @bci=14, line=211 (Interpreted frame)
 - truth.Parked$$Lambda$1+0x00007fbf58001408.run(truth.Gate) @bci=1 (Compiled frame; information may be imprecise)
 - java.lang.invoke.LambdaForm$MH+0x0000000081047800.invoke() @bci=5 (Compiled frame)
 - truth.Parked.run() @bci=9, line=55 (Compiled frame [deoptimized])
 - jdk.proxy2.$Proxy2.service() @bci=20 (Interpreted frame)

`

// nativeText is gdb's: inlined functions, a tail call, arguments and none.
const nativeText = `[New LWP 4131]
0x00007fbfe124df16 in __futex_abstimed_wait_common64 (private=...) at ./nptl/futex-internal.c:57

Thread 12 (Thread 0x7fbfb549e6c0 (LWP 4131) "reader"):
#0  __futex_abstimed_wait_common64 (private=..., op=...) at ./nptl/futex-internal.c:57
at 0x7fbfe124df16 0x1000
#1  __futex_abstimed_wait_common (futex_word=...) at ./nptl/futex-internal.c:87
at 0x7fbfe124df16 0x1000
#2  0x00007fbfe124df7b in __GI___futex_abstimed_wait_cancelable64 (private=...) at ./nptl/futex-internal.c:139
at 0x7fbfe124df7b 0x1040
#3  0x00007fbfe12505d8 in ___pthread_cond_wait (cond=..., mutex=...) at ./nptl/pthread_cond_wait.c:618
at 0x7fbfe12505d8 0x1040
#4  0x00007fbfe0a3740b in Parker::park(bool, long) () from /usr/lib/jvm/lib/server/libjvm.so
at 0x7fbfe0a3740b 0x1100
#5  0x00007fbfe06c00aa in jni_invoke_static(JNIEnv_*, JavaValue*) [clone .constprop.1] () from /usr/lib/jvm/lib/server/libjvm.so
at 0x7fbfe06c00aa 0x1180
#6  0x00007fbfc89455da in ?? ()
at 0x7fbfc89455da 0x11c0
#7  0x0000000000000000 in ?? ()
at 0 0x11c8

Thread 1 (Thread 0x7f2ff4c00e40 (LWP 4104) "java"):
#0  0x00007fbfe124e000 in __new_sem_wait_slow64 (sem=...) at ./nptl/sem_waitcommon.c:183
at 0x7fbfe124e000 0x2000
#1  0x0000564acacbd211 in ?? ()
at 0x564acacbd211 0x2040
#2  0x00007fbfe12d18ec in clone3 () at ../sysdeps/unix/sysv/linux/x86_64/clone3.S:81
at 0x7fbfe12d18ec 0x2080
[Inferior 1 (process 4104) detached]
`

// mixedText has holes: a native frame and one of Java are missing, and the stack ends early.
const mixedText = `Attaching to process ID 4104, please wait...
Deadlock Detection:

No deadlocks found.

----------------- 4131 -----------------
"reader" #12 daemon prio=5 tid=0x00007fbfd811e940 nid=4131 waiting on condition [0x00007fbfb549d000]
   java.lang.Thread.State: WAITING (parking)
   JavaThread state: _thread_blocked
0x00007fbfe124df16	__futex_abstimed_wait_common + 0xc6
0x00007fbfe12505d8	___pthread_cond_wait + 0x1e8
0x00007fbfe0a3740b	Parker::park(bool, long) + 0x1b
0x00007fbfc8941374	* java.util.concurrent.locks.LockSupport.park(java.lang.Object) bci:14 line:211 (Interpreted frame)
0x00007fbfc8945000	* java.lang.invoke.LambdaForm$MH+0x0000000081047800.invoke() bci:5 (Compiled frame)
                  	* truth.Parked.run() bci:9 line:55 (Compiled frame; information may be imprecise)
0x00007fbfc8945000	* truth.Parked.run() bci:9 line:55 (Compiled frame; information may be imprecise)
0x00007fbfc8941378	* jdk.proxy2.$Proxy2.service() bci:20 (Interpreted frame)
----------------- 4104 -----------------
0x00007fbfe124e000	__new_sem_wait_slow64.constprop.0 + 0x20
0x0000002500000000	????????
0x0000000000000001	Parker::park(bool, long) + 0x1b
`

// rightDump is what all texts tell.
func rightDump() []dumpedThread {
	bci := func(i int) *int { return &i }
	return []dumpedThread{
		{TID: 4131, Name: "reader", Frames: []dumpedFrame{
			{Name: "__futex_abstimed_wait_common", Kind: "native", Module: "libc.so.6", PC: "0x7fbfe124df16", SP: "0x1000"},
			{Name: "pthread_cond_wait", Kind: "native", Module: "libc.so.6", PC: "0x7fbfe12505d8", SP: "0x1040"},
			{Name: "Parker::park", Kind: "native", Module: "libjvm.so", PC: "0x7fbfe0a3740b", SP: "0x1100"},
			{Name: "jni_invoke_static", Kind: "native", Module: "libjvm.so", PC: "0x7fbfe06c00aa", SP: "0x1180"},
			{Name: "jdk.internal.misc.Unsafe.park", Kind: "native-method", PC: "0x7fbfc89455da", SP: "0x11e0"},
			{Name: "java.util.concurrent.locks.LockSupport.park", Kind: "interpreted", File: "LockSupport.java", Line: 211,
				BCI: bci(14), PC: "0x7fbfc8941374"},
			{Name: "truth.Parked$$Lambda$1+0x00007fbf58001408.run", Kind: "c1", BCI: bci(1)},
			{Name: "java.lang.invoke.LambdaForm$MH+0x0000000081047800.invoke", Kind: "inlined", File: "LambdaForm$MH",
				BCI: bci(5), PC: "0x7fbfc8945000"},
			{Name: "truth.Parked.run", Kind: "c2", File: "Parked.java", Line: 55, BCI: bci(9), PC: "0x7fbfc8945000"},
			{Name: "jdk.proxy2.$Proxy2.service", Kind: "interpreted", BCI: bci(20), PC: "0x7fbfc8941378"},
		}},
		{TID: 4104, Name: "java", Frames: []dumpedFrame{
			{Name: "__new_sem_wait_slow64.constprop.0", Kind: "native", Module: "libc.so.6", PC: "0x7fbfe124e000", SP: "0x2000"},
			{Name: "java+0x1211", Kind: "native", Module: "java", PC: "0x564acacbd211", SP: "0x2040"},
			{Name: "__clone3", Kind: "native", Module: "libc.so.6", PC: "0x7fbfe12d18ec", SP: "0x2080"},
		}},
	}
}

// testAlias knows two names of one address.
func testAlias(module, a, b string) bool {
	return module == "libc.so.6" && (a == "___pthread_cond_wait" && b == "pthread_cond_wait" ||
		a == "clone3" && b == "__clone3")
}

// hearAllTexts returns what the judges have against a dump, by witness.
func hearAllTexts(printed, debugged, native string, ours []dumpedThread) map[string]string {
	heard := map[string]string{}
	note := func(witness string, h *hearing, err error) {
		if err != nil {
			heard[witness] = err.Error()
			return
		}
		for _, why := range h.against {
			heard[witness] += why + "\n"
		}
	}
	h, err := hearJava(&threadPrint, []byte(printed), ours)
	note("jcmd", h, err)
	h, err = hearJava(&jstack, []byte(debugged), ours)
	note("jhsdb", h, err)
	h, err = hearNative([]byte(native), ours, testAlias)
	note("gdb", h, err)
	h, err = hearMixed([]byte(mixedText), ours, testAlias)
	note("mixed", h, err)
	return heard
}

func TestWitnessesAgree(t *testing.T) {
	for witness, why := range hearAllTexts(printedText, debuggedText, nativeText, rightDump()) {
		t.Errorf("%s: %s", witness, why)
	}
	h, err := hearNative([]byte(nativeText), rightDump(), testAlias)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 threads agree, 7 native frames, 1 threads to their roots",
		string(inlinedInGDB) + ": 1", string(tailInGDB) + ": 1",
		string(otherName) + ": 2", string(cloneName) + ": 1", string(noNameInGDB) + ": 1", string(sameName) + ": 3"} {
		if !strings.Contains(h.told, want) {
			t.Errorf("%q does not say %q", h.told, want)
		}
	}
}

// TestWitnessesCatch plants errors in a dump; the witnesses that are named must find each, and no other.
func TestWitnessesCatch(t *testing.T) {
	drop := func(th *dumpedThread, i int) { th.Frames = append(th.Frames[:i:i], th.Frames[i+1:]...) }
	const java, native, all = "jcmd jhsdb", "gdb", "jcmd jhsdb gdb mixed"
	for _, c := range []struct {
		name string
		by   string // those that must find it; the others must not
		harm func(threads []dumpedThread)
	}{
		{"Java: wrong method", java, func(d []dumpedThread) { d[0].Frames[8].Name = "truth.Parked.runs" }},
		{"Java: wrong class", java, func(d []dumpedThread) { d[0].Frames[8].Name = "truth.Parker.run" }},
		{"Java: other hidden class", java,
			func(d []dumpedThread) { d[0].Frames[6].Name = "truth.Parked$$Lambda$1+0x00007fbf58001628.run" }},
		{"Java: wrong line", java, func(d []dumpedThread) { d[0].Frames[8].Line++ }},
		{"Java: no line", java + " mixed", func(d []dumpedThread) { d[0].Frames[5].Line = 0 }},
		{"Java: wrong file", "jcmd", func(d []dumpedThread) { d[0].Frames[8].File = "Kinds.java" }},
		{"Java: wrong bytecode", "jhsdb", func(d []dumpedThread) { *d[0].Frames[8].BCI = 8 }},
		{"Java: interpreted, not compiled", "jhsdb", func(d []dumpedThread) { d[0].Frames[8].Kind = "interpreted" }},
		{"Java: compiled, not interpreted", "jhsdb mixed", func(d []dumpedThread) { d[0].Frames[5].Kind = "c2" }},
		{"Java: frame missing", java, func(d []dumpedThread) { drop(&d[0], 7) }},
		{"Java: root missing", java + " mixed", func(d []dumpedThread) { drop(&d[0], 9) }},
		{"Java: frame twice", java, func(d []dumpedThread) { d[0].Frames = append(d[0].Frames, d[0].Frames[8]) }},
		{"Java: frames exchanged", java, func(d []dumpedThread) {
			d[0].Frames[7], d[0].Frames[8] = d[0].Frames[8], d[0].Frames[7]
		}},
		{"thread: wrong name", java, func(d []dumpedThread) { d[0].Name = "writer" }},
		{"thread: of another number", all, func(d []dumpedThread) { d[0].TID++ }},
		{"thread: cut", all, func(d []dumpedThread) { d[0].Truncated = "stack longer than its copy" }},
		{"thread: Java frames that nobody else sees", java, func(d []dumpedThread) {
			d[1].Frames[1] = dumpedFrame{Name: "truth.Parked.run", Kind: "c2", PC: d[1].Frames[1].PC}
		}},
		{"native: wrong name", native + " mixed", func(d []dumpedThread) { d[0].Frames[2].Name = "Parker::unpark" }},
		{"native: name of another address", native + " mixed",
			func(d []dumpedThread) { d[0].Frames[1].Name = "pthread_cond_timedwait" }},
		{"native: name of the one that has jumped", native + " mixed", func(d []dumpedThread) {
			d[0].Frames[1].Name = "__GI___futex_abstimed_wait_cancelable64"
		}},
		{"native: clone of another", native + " mixed",
			func(d []dumpedThread) { d[1].Frames[0].Name = "__new_sem_wait_fast.constprop.0" }},
		{"native: no name", native + " mixed", func(d []dumpedThread) { d[0].Frames[2].Name = "libjvm.so+0x1000" }},
		{"native: wrong pc", native + " mixed", func(d []dumpedThread) { d[0].Frames[2].PC = "0x7fbfe0a3740c" }},
		{"native: wrong sp", native, func(d []dumpedThread) { d[0].Frames[2].SP = "0x1108" }},
		{"native: top missing", native + " mixed", func(d []dumpedThread) { drop(&d[0], 0) }},
		{"native: frame missing", native + " mixed", func(d []dumpedThread) { drop(&d[0], 2) }},
		{"native: last before Java missing", native, func(d []dumpedThread) { drop(&d[0], 3) }},
		{"native: frame twice", native, func(d []dumpedThread) {
			d[1].Frames = append(d[1].Frames[:2:2],
				d[1].Frames[1:]...)
		}},
		{"native: root missing", native, func(d []dumpedThread) { drop(&d[1], 2) }},
		{"native: one below the root", native, func(d []dumpedThread) { d[1].Frames = append(d[1].Frames, d[1].Frames[2]) }},
		{"native: Java elsewhere", native, func(d []dumpedThread) { d[0].Frames[4].PC = "0x7fbfc8945000" }},
		{"native: gap for a frame", native + " mixed", func(d []dumpedThread) { d[0].Frames[2].Kind = "gap" }},
	} {
		ours := rightDump()
		c.harm(ours)
		heard := hearAllTexts(printedText, debuggedText, nativeText, ours)
		for _, witness := range strings.Fields(all) {
			if must := strings.Contains(c.by, witness); must != (heard[witness] != "") {
				t.Errorf("%s: %s says %q", c.name, witness, heard[witness])
			}
		}
	}
}

// TestWitnessesOfVirtualThreads: the JVM tells the carrier's frames first, the stack has them below.
func TestWitnessesOfVirtualThreads(t *testing.T) {
	const text = `"ForkJoinPool-1-worker-1" #24 [30999] daemon prio=5 os_prio=0 cpu=0.27ms elapsed=0.65s tid=0x00007fc4900f45a0  [0x00007fc4630f8000]
   Carrying virtual thread #23
	at jdk.internal.vm.Continuation.run(java.base@25.0.3/Continuation.java:251)
   Mounted virtual thread #23
	at truth.Virtual.stand(Virtual.java:59)
	at truth.Virtual.descend(Virtual.java:48)
	at jdk.internal.vm.Continuation.enter(java.base@25.0.3/Continuation.java:316)

"main" #3 [4708] prio=5 os_prio=0 cpu=63.71ms elapsed=2.42s tid=0x00007fd7dc02a990 nid=4708 runnable  [0x00007fd7e11fe000]
`
	whole := []dumpedFrame{
		{Name: "truth.Virtual.stand", Kind: "c1", File: "Virtual.java", Line: 59},
		{Name: "truth.Virtual.descend", Kind: "c1", File: "Virtual.java", Line: 48},
		{Name: "jdk.internal.vm.Continuation.enter", Kind: "interpreted", File: "Continuation.java", Line: 316},
		{Name: enterSpecial, Kind: "native-method", File: "Continuation.java"},
		{Name: "jdk.internal.vm.Continuation.run", Kind: "interpreted", File: "Continuation.java", Line: 251},
	}
	without := func(i int) []dumpedFrame { return append(whole[:i:i], whole[i+1:]...) }
	thawed := profile.Continuation.String()
	for _, c := range []struct {
		name, truncated string
		frames          []dumpedFrame
		right           bool
	}{
		{"whole", "", whole, true},
		{"whole, but said to be thawed", thawed, whole, false},
		{"thawed", thawed, whole[:2], true},
		{"thawed, frame missing", thawed, whole[1:2], false},
		{"thawed, no frames", thawed, nil, false},
		{"cut for another reason", profile.StackCut.String(), whole[:2], false},
		{"cut and not said", "", whole[:2], false},
		{"frame missing", "", without(1), false},
		{"carrier's frame missing", "", without(4), false},
		{"without the entry", "", without(3), true}, // the witness cannot tell
		{"another method for the entry", "", slices.Replace(slices.Clone(whole), 3, 4, whole[4]), false},
	} {
		main := dumpedThread{TID: 4708, Name: "main", Frames: []dumpedFrame{{Name: "read", Kind: "native"}}}
		h, err := hearJava(&threadPrint, []byte(text), []dumpedThread{main,
			{TID: 30999, Name: "ForkJoinPool-1-worker-1", Truncated: c.truncated, Frames: c.frames}})
		if err != nil {
			t.Fatal(err)
		}
		if right := len(h.against) == 0; right != c.right {
			t.Errorf("%s: %v", c.name, h.against)
		}
	}
}

// TestWitnessesWithUnknownLines: what a witness says and the test does not understand is an error.
func TestWitnessesWithUnknownLines(t *testing.T) {
	lines := []string{"Error occurred during stack walking:", "	at truth.Parked.run",
		" - truth.Parked.run() @bci=9, line=55", "[error occurred during error reporting]"}
	for _, line := range lines {
		at := "   java.lang.Thread.State: WAITING (parking)\n"
		heard := hearAllTexts(strings.Replace(printedText, at, line+"\n", 1),
			strings.Replace(debuggedText, at, line+"\n", 1), nativeText, rightDump())
		if heard["jcmd"] == "" || heard["jhsdb"] == "" {
			t.Errorf("%q is overlooked: %v", line, heard)
		}
	}
}
