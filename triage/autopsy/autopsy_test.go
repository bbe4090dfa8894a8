package autopsy

import (
	"slices"
	"strings"
	"testing"

	"goprof/process/maybe"
	"goprof/profile"
	"goprof/session/postmortem"
	"goprof/vmstructs"
)

func native(name, module string) profile.Frame {
	return profile.Frame{Func: &profile.Func{Name: name, Module: module}, Kind: profile.Native, BCI: -1, SP: 0x7000}
}

func java(name string, kind profile.Kind) profile.Frame {
	return profile.Frame{Func: &profile.Func{Name: name}, Kind: kind, Line: 7}
}

// died is a dump of a process that a signal has killed.
func died(signal, cause *profile.Signal, frames ...profile.Frame) *profile.Dump {
	return &profile.Dump{PID: 7, Core: &profile.Core{Signal: signal, Cause: cause, Collector: "G1", HeapUsed: 50 << 20,
		HeapMax: 100 << 20}, Threads: []profile.ThreadDump{{TID: 8, Name: "main", Java: true, Died: true,
		State: "_thread_in_native", Stack: profile.Stack{Frames: frames}}}}
}

func segv(frame int) *profile.Signal {
	return &profile.Signal{Number: 11, Name: "SIGSEGV", Why: "SEGV_MAPERR: nothing is mapped there", Addr: 0x10,
		HasAddr: true, PC: 0x5000, Frame: frame, Code: []byte{0x90, 0x90}}
}

func abort(sender int) *profile.Signal {
	return &profile.Signal{Number: 6, Name: "SIGABRT", Why: postmortem.SentByTgkill, Sender: sender}
}

func facts() *postmortem.Facts {
	f := &postmortem.Facts{CPU: "amd64", Version: "OpenJDK 17", Compiling: maybe.Known(true)}
	f.Heap.Heap = vmstructs.Amount{Used: maybe.Known(uint64(50)), Max: maybe.Known(uint64(100))}
	f.Code = []vmstructs.CodeUse{{Amount: vmstructs.Amount{Used: maybe.Known(uint64(10)), Max: maybe.Known(uint64(100))}}}
	return f
}

// TestCauses: each way to end, and the first finding about it.
func TestCauses(t *testing.T) {
	raise, handler := native("__GI_raise", "libc.so.6"), native("JVM_handle_linux_signal", "libjvm.so")
	unsafe := []profile.Frame{raise, handler, native("Unsafe_PutLong", "libjvm.so"),
		java("jdk.internal.misc.Unsafe.putLong", profile.Interpreted), java("shop.Cart.pay", profile.Interpreted)}
	overflow := segv(0)
	overflow.Addr = 0x6ff8
	by := func(frames ...profile.Frame) *profile.Dump {
		return died(abort(7), nil, append([]profile.Frame{raise}, frames...)...)
	}
	for name, c := range map[string]struct {
		dump     *profile.Dump
		want     profile.FindingID
		evidence string
	}{
		"a fault behind an abort": {died(abort(7), segv(2), unsafe...), profile.UnsafeAccess, "shop.Cart.pay"},
		"compiled code": {died(segv(0), nil, java("shop.Cart.pay", profile.C2)), profile.CompiledCrash,
			"the method is shop.Cart.pay"},
		"inlined": {died(segv(0), nil, java("shop.Cart.pay", profile.Inlined)), profile.CompiledCrash, "SEGV_MAPERR"},
		"native": {died(segv(0), nil, native("inflateEnd", "libz.so.1"), java("a.B.c", profile.NativeMethod)),
			profile.NativeCrash, "it was called by a.B.c"},
		"the JVM": {died(segv(0), nil, native("Universe::heap", "libjvm.so")), profile.JVMCrash,
			"null pointer"},
		"sent by another": {died(abort(4711), nil, raise), profile.SignalSent, "the sender was process 4711"},
		"out of memory": {by(native("report_java_out_of_memory", "libjvm.so")),
			profile.CrashOnOOM, ""},
		"no memory": {by(native("report_vm_out_of_memory", "libjvm.so")),
			profile.NativeMemory, ""},
		"the JVM gave up": {by(native("report_vm_error", "libjvm.so"), native("G1::work", "libjvm.so")),
			profile.JVMCrash, "report_vm_error"},
		"a library's own": {by(native("assertion", "libacme.so")), profile.NativeCrash,
			"libacme.so"},
		"beyond the stack": {died(overflow, nil, native("deep", "libacme.so")), profile.StackOverflow,
			"the stack ends at 0x7000"},
		"a call that has no C": {died(segv(0), nil, profile.Frame{Kind: profile.Gap}), profile.JVMCrash, "SIGSEGV"},
	} {
		f := facts()
		if name == "beyond the stack" {
			f.Stack = [2]uint64{0x7000, 0x100000}
		}
		got := Judge(c.dump, f, "core.7")
		if len(got.Findings) != 1 || got.Findings[0].ID != c.want || got.Findings[0].Severity != profile.Critical ||
			!strings.Contains(strings.Join(got.Findings[0].Evidence, "\n"), c.evidence) {
			t.Errorf("%s: %+v", name, got.Findings)
		}
	}
}

// TestMoment: what else the state at the moment of death tells, and what it does not tell.
func TestMoment(t *testing.T) {
	two := []profile.ThreadDump{{TID: 8, Name: "a", Holds: []profile.HeldLock{{Lock: profile.Lock{Class: "A", ID: 1}}},
		WaitsFor: &profile.WantedLock{Lock: profile.Lock{Class: "B", ID: 2}, How: profile.ToEnter,
			Owner: profile.ThreadRef{TID: 9, Name: "b"}}}, {TID: 9, Name: "b",
		Holds: []profile.HeldLock{{Lock: profile.Lock{Class: "B", ID: 2}}},
		WaitsFor: &profile.WantedLock{Lock: profile.Lock{Class: "A", ID: 1}, How: profile.ToEnter,
			Owner: profile.ThreadRef{TID: 8, Name: "a"}}}}
	for name, c := range map[string]struct {
		change func(*profile.Dump, *postmortem.Facts)
		want   []profile.FindingID
	}{
		"nothing": {func(*profile.Dump, *postmortem.Facts) {}, nil},
		"deadlock": {func(d *profile.Dump, _ *postmortem.Facts) { d.Threads = two },
			[]profile.FindingID{profile.Deadlocked}},
		"full between two collections": {func(_ *profile.Dump, f *postmortem.Facts) {
			f.Heap.Heap.Used = maybe.Known(uint64(99))
		}, nil},
		"full in a collection": {func(d *profile.Dump, f *postmortem.Facts) {
			f.Heap.Heap.Used, d.Core.Collecting = maybe.Known(uint64(99)), true
		}, []profile.FindingID{profile.HeapFull}},
		"full, with errors": {func(_ *profile.Dump, f *postmortem.Facts) {
			f.Heap.Heap.Used, f.OutOfMemory = maybe.Known(uint64(99)), maybe.Known(uint64(3))
		}, []profile.FindingID{profile.HeapFull}},
		"errors long ago": {func(_ *profile.Dump, f *postmortem.Facts) { f.OutOfMemory = maybe.Known(uint64(3)) }, nil},
		"code": {func(_ *profile.Dump, f *postmortem.Facts) {
			f.Code[0].Used = maybe.Known(uint64(98))
		}, []profile.FindingID{profile.CodeCacheFull}},
		"compilers off": {func(_ *profile.Dump, f *postmortem.Facts) {
			f.Compiling, f.Code[0].Refused = maybe.Known(false), maybe.Known(uint64(2))
		}, []profile.FindingID{profile.CodeCacheFull}},
		"-Xint": {func(_ *profile.Dump, f *postmortem.Facts) { f.Compiling = maybe.Known(false) }, nil},
	} {
		d, f := died(nil, nil), facts()
		c.change(d, f)
		got := Judge(d, f, "core.7")
		var have []profile.FindingID
		for _, found := range got.Findings {
			have = append(have, found.ID)
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: %v, want %v", name, have, c.want)
		}
		if len(got.Unknown) < 10 || len(got.Notes) < 3 {
			t.Errorf("%s: %q, not known %+v", name, got.Notes, got.Unknown)
		}
	}
}

// TestKilledWithAFullHeap: a watchdog's signal and a full heap. The first thread of such a core did nothing.
func TestKilledWithAFullHeap(t *testing.T) {
	d, f := died(abort(4711), nil, native("__GI_raise", "libc.so.6")), facts()
	f.Heap.Heap.Used = maybe.Known(uint64(97))
	got := Judge(d, f, "core.7")
	if len(got.Findings) != 2 || got.Findings[0].ID != profile.SignalSent || got.Findings[1].ID != profile.HeapFull ||
		!strings.Contains(got.Findings[1].Claim, "97 %") || strings.Contains(got.Findings[0].Claim, "nothing wrong") {
		t.Errorf("%+v", got.Findings)
	}
}

// TestNotJudged: all that a core cannot tell is listed: each finding but those that one moment tells.
func TestNotJudged(t *testing.T) {
	d, f := died(nil, nil), facts()
	f.Heap.Heap.Used = maybe.Known(uint64(97))
	for i := range 4 {
		d.Threads = append(d.Threads, profile.ThreadDump{TID: 20 + i, Name: "put-" + string(rune('0'+i)), Java: true,
			Stack: profile.Stack{Frames: []profile.Frame{java("jdk.internal.misc.Unsafe.park", profile.NativeMethod),
				java("java.util.concurrent.ArrayBlockingQueue.put", profile.C1), java("shop.Cart.pay", profile.C1)}}})
	}
	got := Judge(d, f, "core.7")
	told := map[profile.FindingID]bool{profile.Deadlocked: true, profile.CodeCacheFull: true}
	for _, u := range got.Unknown {
		told[u.ID] = true
	}
	for _, id := range profile.FindingIDs {
		if !told[id] {
			t.Errorf("nothing is said of %s", id)
		}
	}
	if !slices.Contains(got.Notes, "4 of 4 threads put-*: each waits for room in a full queue") {
		t.Error(got.Notes)
	}
}

// TestRings: a deadlock of virtual threads names them by their numbers. A thread that waits for itself is told as
// such.
func TestRings(t *testing.T) {
	virtual := func(id uint64, name string, owner profile.ThreadRef) profile.ThreadDump {
		return profile.ThreadDump{Virtual: &profile.VirtualThread{ID: id, Name: name}, WaitsFor: &profile.WantedLock{
			Lock: profile.Lock{Class: "A", ID: id}, How: profile.ToEnter, Owner: owner}}
	}
	itself := &profile.WantedLock{Lock: profile.Lock{Class: "B", ID: 2, Kind: profile.Shared}, How: profile.ToUnpark,
		Alone: true, Owner: profile.ThreadRef{TID: 8, Name: "a"}}
	for name, c := range map[string]struct {
		threads         []profile.ThreadDump
		claim, evidence string
	}{
		"virtual": {[]profile.ThreadDump{virtual(21, "x", profile.ThreadRef{Virtual: 22, Name: "y"}),
			virtual(22, "y", profile.ThreadRef{Virtual: 21, Name: "x"})}, "2 threads waited for each other",
			`virtual thread #21 "x" waits for A 0x15, held by virtual thread #22 "y"`},
		"one": {[]profile.ThreadDump{{TID: 8, Name: "a", WaitsFor: itself}}, "A thread waited for itself",
			`"a" tid=8 waits for B 0x2, held by "a" tid=8`},
	} {
		f := deadlocks(&profile.Dump{Threads: c.threads}, nil, "core.7")
		if f == nil || !strings.HasPrefix(f.Claim, c.claim) || f.Evidence[0] != c.evidence {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
