package output

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goprof/profile"
)

// TestHottest: a sample counts for its topmost Java method, for its system call, or for the job of its thread.
func TestHottest(t *testing.T) {
	const entry = "__clone3;start_thread;thread_native_entry;Thread::call_run;"
	for what, c := range map[string]struct {
		stacks string
		want   []profile.Part
	}{
		"native code is its caller's": {"a.Main.main_[0];a.Cart.total_[j];JVM_ArrayCopy " +
			"3\na.Main.main_[0];a.Cart.total_[j] 1\n",
			[]profile.Part{{Name: "a.Cart.total", Share: 1}}},
		"inlined methods are methods": {"a.Main.main_[0];a.Cart.total_[j];a.Cart.price_[i] 1\n",
			[]profile.Part{{Name: "a.Cart.price", Share: 1}}},
		"the kernel": {"a.Main.main_[0];java.io.FileOutputStream.writeBytes_[0];__libc_write 1\n",
			[]profile.Part{{Name: "kernel: write", Share: 1}}},
		"locks of libc": {entry + "GangWorker::run;__futex_abstimed_wait_common64 1\n",
			[]profile.Part{{Name: "kernel: futex", Share: 1}}},
		"wakers of libc": {"a.Main.main_[0];jdk.internal.misc.Unsafe.unpark_[0];Unsafe_Unpark;__lll_lock_wake 1\n",
			[]profile.Part{{Name: "kernel: futex", Share: 1}}},
		"collector, by several functions": {entry + "GangWorker::run;G1ParTask::work 2\n" + entry +
			"VMThread::run;VM_G1CollectForAllocation::doit;memmove 1\n" + entry + "ConcurrentGCThread::run;memcpy 1\n",
			[]profile.Part{{Name: "G1 collector", Share: 1}}},
		"compilers": {entry +
			"JavaThread::run;CompileBroker::compiler_thread_loop;C2Compiler::compile_method;Node::find 2\n" + entry +
			"JavaThread::run;CompileBroker::compiler_thread_loop;Compiler::compile_method;IR::x 1\n" + entry +
			"JavaThread::run;CompileBroker::compiler_thread_loop;memcpy 1\n",
			[]profile.Part{{Name: "C2 compiler", Share: 0.5}, {Name: "C1 compiler", Share: 0.25},
				{Name: "JIT compiler", Share: 0.25}}},
		"the VM's thread": {entry + "VMThread::run;SafepointSynchronize::begin 1\n",
			[]profile.Part{{Name: "the JVM itself", Share: 1}}},
		"by the thread's name": {"[GC Thread#0 tid=7];libjvm.so+0x1f 1\n",
			[]profile.Part{{Name: "G1 collector", Share: 1}}},
		"without names": {"libc.so.6+0x1;libjvm.so+0x1f 1\n", []profile.Part{{Name: "the JVM itself", Share: 1}}},
		"a library's thread": {"__clone3;start_thread;librocks.so+0x1f 1\n",
			[]profile.Part{{Name: "native code of librocks.so", Share: 1}}},
		"a Java class is no GC": {"G1.Main.main_[0];ShenandoahTest.run_[j] 1\n",
			[]profile.Part{{Name: "ShenandoahTest.run", Share: 1}}},
		"the JVM under Java": {"a.Main.main_[0];G1CollectedHeap::mem_allocate 1\n",
			[]profile.Part{{Name: "a.Main.main", Share: 1}}},
		"time that no sample has": {"a.Main.main_[0] 1\n[not sampled] 9\n", []profile.Part{{Name: "a.Main.main", Share: 1}}},
		"waiting counts for who waits": {"a.Main.main_[0];a.Pool.take_[j];" +
			"java.util.concurrent.locks.LockSupport.park_[j];jdk.internal.misc.Unsafe.park_[0];Parker::park;" +
			"__futex_abstimed_wait_common;[parked] 3\n" +
			"a.Main.main_[0];a.Pool.take_[j];[running] 1\n",
			[]profile.Part{{Name: "a.Pool.take", State: "parked", Share: 0.75}, {Name: "a.Pool.take",
				State: "running", Share: 0.25}}},
	} {
		tree, err := ParseCollapsed(strings.NewReader(c.stacks))
		if err != nil {
			t.Fatal(err)
		}
		s := profile.Summary{Meta: profile.Meta{Collector: "G1"}}
		if new(Hottest).Describe(&s, tree); cmp.Diff(c.want, s.Hottest, cmpopts.EquateApprox(0, 1e-9)) != "" {
			t.Errorf("%s: %s", what, cmp.Diff(c.want, s.Hottest))
		}
		var given Hottest
		given.Add(tree, &profile.Meta{Collector: "G1"})
		again := profile.Summary{}
		given.Describe(&again, &Tree{Nodes: make([]TreeNode, 1)})
		if cmp.Diff(s.Hottest, again.Hottest) != "" || cmp.Diff(s.States, again.States) != "" {
			t.Errorf("%s: of stacks that were given up %v, %v", what, again.Hottest, again.States)
		}
	}
}

// TestHottestClasses: the leaf of an allocation is a class, wherever the object was put. For other events, the kernel's
// functions are system calls and the like.
func TestHottestClasses(t *testing.T) {
	const stacks = "a.Main.main_[0];byte[]_[k] 3\na.Main.main_[0];a.Cart_[k] 2\na.Main.main_[0];byte[]_[i] 4\n" +
		"a.Main.main_[0];ksys_write_[k] 1\n"
	classes := []profile.Part{{Name: "byte[]", Share: 0.7}, {Name: "a.Cart", Share: 0.2},
		{Name: "kernel: ksys_write", Share: 0.1}}
	functions := []profile.Part{{Name: "byte[]", Share: 0.4}, {Name: "kernel: byte[]", Share: 0.3},
		{Name: "kernel: a.Cart", Share: 0.2}, {Name: "kernel: ksys_write", Share: 0.1}}
	for mode, want := range map[string][]profile.Part{
		"alloc": classes, "page-faults,alloc": classes, "page-faults,malloc": functions,
	} {
		tree, err := ParseCollapsed(strings.NewReader(stacks))
		if err != nil {
			t.Fatal(err)
		}
		s := profile.Summary{Meta: profile.Meta{Mode: mode}}
		if new(Hottest).Describe(&s, tree); cmp.Diff(want, s.Hottest, cmpopts.EquateApprox(0, 1e-9)) != "" {
			t.Errorf("%s: %s", mode, cmp.Diff(want, s.Hottest))
		}
	}
}

// TestClassOrFunction: in a recording of allocations and other events, some leaves with the kernel's suffix are
// classes, and some are functions of the kernel.
func TestClassOrFunction(t *testing.T) {
	for name, class := range map[string]bool{
		"byte[]": true, "a.Cart": true, "Cart": true, "a.part.Cart": true, "shop.Order_Line": true, "a.Cart[][]": true,
		"ksys_write": false, "do_syscall_64.isra.0": false, "x.constprop.0": false, "foo.cold": false,
		"foo.part.0.cold": false, "foo.isra.0.constprop.12": false, "foo.llvm.1234567": false,
		"ZSTD_compressBlock_fast": false, "LZ4_decompress_safe": false, "HUF_readStats.constprop.0": false,
	} {
		if got := isClass(Name{Text: name, Kind: LabelKernel}); got != class {
			t.Errorf("%s: class %v", name, got)
		}
	}
	// A function with such a name below another one is never the class.
	const stacks = "a.Main.main_[0];Entry_[k];do_page_fault.isra.0_[k] 1\na.Main.main_[0];Entry_[k] 1\n"
	tree, err := ParseCollapsed(strings.NewReader(stacks))
	if err != nil {
		t.Fatal(err)
	}
	s := profile.Summary{Meta: profile.Meta{Mode: "page-faults,alloc"}}
	new(Hottest).Describe(&s, tree)
	want := []profile.Part{{Name: "Entry", Share: 0.5}, {Name: "kernel: do_page_fault.isra.0", Share: 0.5}}
	if d := cmp.Diff(want, s.Hottest, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Error(d)
	}
}

func TestStatesOfASummary(t *testing.T) {
	tree, err := ParseCollapsed(strings.NewReader("a.B.c;[parked: x.Lock] 3\na.B.d;[parked] 1\na.B.e;[running] 4\n"))
	if err != nil {
		t.Fatal(err)
	}
	var s profile.Summary
	new(Hottest).Describe(&s, tree)
	want := []profile.Part{{Name: "parked", Share: 0.5}, {Name: "running", Share: 0.5}}
	if d := cmp.Diff(want, s.States); d != "" {
		t.Error(d)
	}
	new(Hottest).Describe(&s, &Tree{Nodes: make([]TreeNode, 1)})
	if s.Hottest != nil || s.States != nil {
		t.Errorf("of nothing: %v %v", s.Hottest, s.States)
	}
}
