package dumps

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/profile"
)

// These names may be those of a malicious target's threads and methods.
const (
	evil     = "a\"b\n\x1b[31m;<i>\u202e"
	evilText = "a\"b??[31m,<i>?"
	onLock   = "java.lang.Object"
	syncType = "java.util.concurrent.locks.ReentrantLock$NonfairSync"
)

// appDump is a dump of an application with each kind of thread and each kind of lock. Two threads are deadlocked.
func appDump() *profile.Dump {
	java := func(name string, line int32) profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: name, File: "S.java"}, Kind: profile.Interpreted,
			Line: line, BCI: 7, SP: 0x7f00_1234}
	}
	native := func(name, module string) profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: name, Module: module}, Kind: profile.Native, BCI: -1}
	}
	entry := []profile.Frame{{Func: &profile.Func{Name: "call_stub"}, Kind: profile.Stub, BCI: -1},
		native("thread_native_entry", "/jdk/libjvm.so"), native("clone3", "/lib/libc.so.6")}
	stack := func(frames ...profile.Frame) profile.Stack { return profile.Stack{Frames: append(frames, entry...)} }
	monitor := func(id uint64) profile.Lock { return profile.Lock{Kind: profile.Monitor, Class: onLock, ID: id} }
	sync := profile.Lock{Kind: profile.Exclusive, Class: syncType, ID: 0xc0}
	nativePark := profile.Frame{Func: &profile.Func{Name: "jdk.internal.misc.Unsafe.park"},
		Kind: profile.NativeMethod, BCI: -1, SP: 0x7f00_2000}
	pooled := func(tid int, name string, blocker uint64) profile.ThreadDump {
		return profile.ThreadDump{TID: tid, Name: name, State: "PARKED", Java: true, Daemon: true, CPU: time.Millisecond,
			JavaID: int64(tid), Priority: 5, Age: time.Second, Address: 0x7f11,
			Stack: stack(native("futex", "/lib/libc.so.6"), nativePark, java("a.Pool.take", 3)),
			WaitsFor: &profile.WantedLock{Lock: profile.Lock{Kind: profile.Unownable, Class: "a.Queue",
				ID: blocker}, How: profile.ToUnpark}}
	}
	one, two := profile.ThreadRef{TID: 21, Name: evil}, profile.ThreadRef{TID: 22, Name: "two"}
	d := &profile.Dump{At: time.Date(2026, 11, 22, 22, 10, 3, 0, time.UTC), PID: 20, MainClass: "com.example.Shop",
		VM: "OpenJDK 64-Bit Server VM", Version: "17.0.15+6", Uptime: 192 * time.Second,
		Deadlocks: [][]profile.ThreadRef{{one, two}}}
	d.Threads = []profile.ThreadDump{
		{TID: 40, Name: "GC Thread#0", State: "sleeping", CPU: 2 * time.Second,
			Stack: profile.Stack{Frames: []profile.Frame{native("work", "/jdk/libjvm.so")}}},
		pooled(32, "pool-1-thread-2", 0xb2),
		{TID: 30, Name: "Finalizer", State: "WAITING", Java: true, System: true, Daemon: true, JavaID: 3,
			Priority: 8, Address: 0x7f12,
			Stack: stack(java("a.F.wait", 1), java("a.F.remove", 2)), Holds: []profile.HeldLock{{Lock: monitor(0), Frame: 1}},
			WaitsFor: &profile.WantedLock{Lock: monitor(0), How: profile.ToNotify}},
		{TID: 21, Name: evil, State: "BLOCKED", Java: true, JavaID: 12, Address: 0x7f13,
			Stack:    stack(java("a."+evil, 5), java("a.S.run", 6)),
			Holds:    []profile.HeldLock{{Lock: monitor(0xa1), Frame: 1}, {Lock: sync, Frame: -1}},
			WaitsFor: &profile.WantedLock{Lock: monitor(0xa2), How: profile.ToEnter, Owner: two}},
		{TID: 22, Name: "two", State: "PARKED", Java: true, JavaID: 13, Address: 0x7f14,
			Stack:    stack(nativePark, java("a.S.two", 8)),
			Holds:    []profile.HeldLock{{Lock: monitor(0xa2), Frame: 1}},
			WaitsFor: &profile.WantedLock{Lock: sync, How: profile.ToUnpark, Owner: one}},
		pooled(31, "pool-1-thread-1", 0xb1),
		{TID: 24, Name: "main", State: "RUNNABLE", Java: true, JavaID: 1, Priority: 5, CPU: 1234567890,
			Age: 192 * time.Second, Address: 0x7f15,
			Stack: profile.Stack{Frames: []profile.Frame{java("a.S.main", 9)}, Truncated: profile.StackCut}},
		{TID: 41, Name: "C2 CompilerThread0", State: "compiling C2 a.S.main", JavaID: 7, Daemon: true,
			Address: 0x7f16, Err: "no " + evil},
	}
	profile.Order(d.Threads)
	return d
}

func TestDumpOfApplication(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, appDump(), Shape{}); err != nil {
		t.Fatal(err)
	}
	want := strings.Split(`2026-11-22 22:10:03 UTC pid 20 com.example.Shop OpenJDK 64-Bit Server VM 17.0.15+6 up 3m12s
6 Java threads: 3 PARKED, 1 BLOCKED, 1 RUNNABLE, 1 WAITING; 2 of the JVM's own
DEADLOCK: "`+evilText+`" tid=21 waits for "two" tid=22 waits for "`+evilText+`" tid=21

"main" tid=24 RUNNABLE cpu=1.23s
a.S.main S.java:9 interpreted
(truncated: stack longer than its copy)

"`+evilText+`" tid=21 BLOCKED
a.`+evilText+` S.java:5 interpreted
- waiting to lock <0xa2> (a java.lang.Object), held by "two" tid=22
a.S.run S.java:6 interpreted
- locked <0xa1> (a java.lang.Object)
- holds <0xc0> (a `+syncType+`)

"two" tid=22 PARKED
jdk.internal.misc.Unsafe.park - native-method
- parking to wait for <0xc0> (a `+syncType+`), held by "`+evilText+`" tid=21
a.S.two S.java:8 interpreted
- locked <0xa2> (a java.lang.Object)

"pool-1-thread-1" tid=31 PARKED daemon cpu=1ms
futex libc.so.6 native
jdk.internal.misc.Unsafe.park - native-method
- parking to wait for <0xb1> (a a.Queue)
a.Pool.take S.java:3 interpreted

"pool-1-thread-2" tid=32 PARKED daemon cpu=1ms
futex libc.so.6 native
jdk.internal.misc.Unsafe.park - native-method
- parking to wait for <0xb2> (a a.Queue)
a.Pool.take S.java:3 interpreted

--- the JDK's own threads

"Finalizer" tid=30 WAITING daemon
a.F.wait S.java:1 interpreted
- waiting on <?> (a java.lang.Object)
a.F.remove S.java:2 interpreted
- locked <?> (a java.lang.Object)

--- the JVM's own threads

"GC Thread#0" tid=40 sleeping cpu=2s
work libjvm.so native

"C2 CompilerThread0" tid=41 compiling C2 a.S.main daemon
(no stack: no `+evilText+`)`, "\n")
	if d := cmp.Diff(want, wordsOfLines(b.String())); d != "" {
		t.Error(d)
	}
}

// TestDumpOfStopped: the second line and the JSON say that a signal has stopped the process.
func TestDumpOfStopped(t *testing.T) {
	var text, object strings.Builder
	d := &profile.Dump{PID: 20, MainClass: "a.B", Stopped: true}
	if err := errors.Join(Text(&text, d, Shape{}), JSON(&object, d, Shape{})); err != nil {
		t.Fatal(err)
	}
	const note = "stopped by a signal (kill -CONT 20 lets it go on)"
	if _, rest, _ := strings.Cut(text.String(), "\n"); rest != note+"\n0 Java threads; 0 of the JVM's own\n" {
		t.Error(&text)
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(object.String()), &answer); err != nil || answer["stopped"] != true {
		t.Errorf("%v: %s", err, &object)
	}
}

// TestDumpNative: the frames with which a thread entered Java are shown if they are asked for.
func TestDumpNative(t *testing.T) {
	for _, native := range []bool{false, true} {
		var text, json strings.Builder
		d := appDump()
		if err := Text(&text, d, Shape{Native: native}); err != nil {
			t.Fatal(err)
		}
		if err := JSON(&json, d, Shape{Native: native}); err != nil {
			t.Fatal(err)
		}
		want := 0
		if native {
			want = 5
		}
		for _, out := range []string{text.String(), json.String()} {
			if got := strings.Count(out, "thread_native_entry"); got != want {
				t.Errorf("native %t: there %d times, not %d", native, got, want)
			}
		}
	}
}

func TestDumpGroups(t *testing.T) {
	var b strings.Builder
	d := appDump()
	for i := range d.Threads {
		if strings.HasPrefix(d.Threads[i].Name, "pool") {
			d.Threads[i].Stack.Frames[2].Kind = profile.Kind(i % 3) // how a method is compiled must make no difference
		}
	}
	if err := Text(&b, d, Shape{Group: true}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(wordsOfLines(b.String()), "\n")
	for _, want := range []string{
		"2 threads \"pool-1-thread-*\" (2) PARKED daemon cpu=2ms\ntids 31 32\nfutex libc.so.6 native\n" +
			"jdk.internal.misc.Unsafe.park - native-method\n- parking to wait for <?> (a a.Queue)\n",
		"\n\"two\" tid=22 PARKED\n", "\n--- the JVM's own threads\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Index(text, "2 threads") > strings.Index(text, `"main"`) {
		t.Error("the largest group does not come first")
	}
	b.Reset()
	if err := JSON(&b, d, Shape{Group: true}); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text,
		`"count": 2, "names": [ { "name": "pool-1-thread-*", "count": 2 } ], "tids": [ 31, 32 ], "name": "pool-1-thread-*"`) {
		t.Error(text)
	}
}

func TestDumpJSONOfLocks(t *testing.T) {
	var b strings.Builder
	d := appDump()
	d.Threads = []profile.ThreadDump{*d.Thread(profile.ThreadRef{TID: 21})}
	d.Threads[0].Name, d.Threads[0].Stack.Frames = "one", nil
	d.Deadlocks[0][0].Name = "one"
	if err := JSON(&b, d, Shape{}); err != nil {
		t.Fatal(err)
	}
	sameJSON(t, b.String(), `{"time":"2026-11-22T22:10:03Z","pid":20,"main_class":"com.example.Shop","vm":"OpenJDK 64-Bit Server VM",
	 "version":"17.0.15+6","uptime_ns":192000000000,"java_threads":1,"states":{"BLOCKED":1},
	 "threads":[{"tid":21,"name":"one","state":"BLOCKED","java":true,"java_id":12,"frames":[],
	  "holds":[{"class":"java.lang.Object","id":"0xa1","kind":"monitor"},{"class":"`+syncType+`","id":"0xc0","kind":"exclusive"}],
	  "waits_for":{"class":"java.lang.Object","id":"0xa2","kind":"monitor","how":"enter","owner":{"tid":22,"name":"two"}}}],
	 "deadlocks":[[{"tid":21,"name":"one"},{"tid":22,"name":"two"}]]}`)
}

func TestDumpJstack(t *testing.T) {
	var b strings.Builder
	if err := Jstack(&b, appDump()); err != nil {
		t.Fatal(err)
	}
	name := "a'b??[31m;<i>?"
	method := "a.a\"b??[31m;<i>?"
	want := `2026-11-22 22:10:03
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6):

"main" #1 prio=5 os_prio=0 cpu=1234.57ms elapsed=192.00s tid=0x0000000000007f15 nid=0x18 runnable  [0x000000007f001000]
   java.lang.Thread.State: RUNNABLE
	at a.S.main(S.java:9)
   (truncated: stack longer than its copy)

"` + name + `" #12 os_prio=0 cpu=0.00ms tid=0x0000000000007f13 nid=0x15 waiting for monitor entry  [0x000000007f001000]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at ` + method + `(S.java:5)
	- waiting to lock <0x00000000000000a2> (a java.lang.Object)
	at a.S.run(S.java:6)
	- locked <0x00000000000000a1> (a java.lang.Object)

   Locked ownable synchronizers:
	- <0x00000000000000c0> (a ` + syncType + `)

"two" #13 os_prio=0 cpu=0.00ms tid=0x0000000000007f14 nid=0x16 waiting on condition  [0x000000007f002000]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(Native Method)
	- parking to wait for  <0x00000000000000c0> (a ` + syncType + `)
	at a.S.two(S.java:8)
	- locked <0x00000000000000a2> (a java.lang.Object)

"pool-1-thread-1" #31 daemon prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x0000000000007f11 nid=0x1f waiting on condition  [0x000000007f002000]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(Native Method)
	- parking to wait for  <0x00000000000000b1> (a a.Queue)
	at a.Pool.take(S.java:3)

"pool-1-thread-2" #32 daemon prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x0000000000007f11 nid=0x20 waiting on condition  [0x000000007f002000]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(Native Method)
	- parking to wait for  <0x00000000000000b2> (a a.Queue)
	at a.Pool.take(S.java:3)

"Finalizer" #3 daemon prio=8 os_prio=0 cpu=0.00ms tid=0x0000000000007f12 nid=0x1e in Object.wait()  [0x000000007f001000]
   java.lang.Thread.State: WAITING (on object monitor)
	at a.F.wait(S.java:1)
	- waiting on <no object reference available>
	at a.F.remove(S.java:2)

"GC Thread#0" os_prio=0 cpu=2000.00ms nid=0x28 waiting on condition  

"C2 CompilerThread0" #7 daemon os_prio=0 cpu=0.00ms tid=0x0000000000007f16 nid=0x29 runnable  [0x0000000000000000]
   java.lang.Thread.State: RUNNABLE
   Compiling: C2 a.S.main
   (no stack: no ` + method[2:] + `)


Found one Java-level deadlock:
=============================
"` + name + `":
  waiting to lock monitor (object 0x00000000000000a2, a java.lang.Object),
  which is held by "two"

"two":
  waiting for ownable synchronizer 0x00000000000000c0, (a ` + syncType + `),
  which is held by "` + name + `"

Java stack information for the threads listed above:
===================================================
"` + name + `":
	at ` + method + `(S.java:5)
	- waiting to lock <0x00000000000000a2> (a java.lang.Object)
	at a.S.run(S.java:6)
	- locked <0x00000000000000a1> (a java.lang.Object)
"two":
	at jdk.internal.misc.Unsafe.park(Native Method)
	- parking to wait for  <0x00000000000000c0> (a ` + syncType + `)
	at a.S.two(S.java:8)
	- locked <0x00000000000000a2> (a java.lang.Object)

Found 1 deadlock.

`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestDumpJstackOfCarrier(t *testing.T) {
	var b strings.Builder
	if err := Jstack(&b, &profile.Dump{Threads: virtualDump()}); err != nil {
		t.Fatal(err)
	}
	const want = "   Carrying virtual thread #31\n\tat c.C.run(V.java:3)\n   (truncated: no unwind info)\n" +
		"   Mounted virtual thread #31\n\tat v.V.run(V.java:3)\n\n"
	if text := b.String(); !strings.Contains(text, want) || strings.Contains(text, "v.V.park") {
		t.Error(text)
	}
}

// TestGroupsOfHostileNames: threads of different groups stay apart, whatever the names of methods and owners.
func TestGroupsOfHostileNames(t *testing.T) {
	thread := func(owner string, holds int, methods ...string) profile.ThreadDump {
		th := profile.ThreadDump{TID: 1, Java: true, WaitsFor: &profile.WantedLock{How: profile.ToEnter,
			Owner: profile.ThreadRef{Virtual: 7, Name: owner}, Lock: profile.Lock{ID: 1}}}
		for range holds {
			th.Holds = append(th.Holds, profile.HeldLock{Lock: profile.Lock{Class: "K"}})
		}
		for _, m := range methods {
			th.Stack.Frames = append(th.Stack.Frames, profile.Frame{Func: &profile.Func{Name: m}, Kind: profile.Native})
		}
		return th
	}
	for what, threads := range map[string][]profile.ThreadDump{
		"methods": {thread("", 0, "a", "b"), thread("", 0, "a \nb")},
		"owners":  {thread("n", 2, "m} 1\nx"), thread("n} 1 0 \"K\" 0 \"K\"\nm", 0, "x")},
	} {
		if groups := groupThreads(threads); len(groups) != 2 {
			t.Errorf("%s: %d groups", what, len(groups))
		}
	}
}
