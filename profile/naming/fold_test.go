package naming

import (
	"slices"
	"strings"
	"testing"

	"goprof/profile"
)

// TestPlumbingOf: methods in the list of plumbing, by their names in old and new JVMs, and methods that are not in it.
func TestPlumbingOf(t *testing.T) {
	for what, names := range map[Plumbing]string{
		Lambda: `P$$Lambda.run P$$Lambda$12.run P$$Lambda$10+0x00007f5028003448.run P$$Lambda+0x00007f99a8001228.run
			P$$Lambda/0x00007f99a8001228.run P$$Lambda$14/1364335809.run scala.runtime.java8.JFunction1$mcVI$sp.apply`,
		MethodHandles: `java.lang.invoke.LambdaForm$DMH.invokeStatic_I_I java.lang.invoke.LambdaForm$BMH.reinvoke java.lang.invoke.LambdaForm$MH+0x00007f5028002800.invoke_MT
			java/lang/invoke/LambdaForm$MH/0x00007f5028002800.invoke java.lang.invoke.Invokers$Holder.linkToCallSite
			java.lang.invoke.DirectMethodHandle$Holder.newInvokeSpecial java.lang.invoke.MethodHandle.invokeWithArguments
			java.lang.invoke.Invokers.checkGenericType java.lang.invoke.MethodHandle.linkToStatic
			jdk.internal.foreign.abi.DowncallStub+0x00007f5028002800.invoke java.lang.invoke.LambdaForm.interpretWithArguments`,
		Reflection: `java.lang.reflect.Method.invoke java.lang.reflect.Constructor.newInstanceWithCaller java/lang/reflect/Method.invoke
			sun.reflect.DelegatingMethodAccessorImpl.invoke jdk.internal.reflect.GeneratedMethodAccessor.invoke
			jdk.internal.reflect.GeneratedMethodAccessor17.invoke jdk.internal.reflect.DirectMethodHandleAccessor.invokeImpl
			jdk.internal.reflect.DirectConstructorHandleAccessor.newInstance sun.reflect.NativeMethodAccessorImpl.invoke`,
		IntoVM: `sun.reflect.NativeMethodAccessorImpl.invoke0 jdk.internal.reflect.NativeConstructorAccessorImpl.newInstance0
			jdk.internal.reflect.DirectMethodHandleAccessor$NativeAccessor.invoke0`,
		Stream: `java.util.stream.ReferencePipeline$3$1.accept java.util.stream.AbstractPipeline.copyInto
			java.util.Spliterators$ArraySpliterator.forEachRemaining java.util.ArrayList$ArrayListSpliterator.forEachRemaining
			java.util.stream.ForEachOps$ForEachOp$OfRef.accept java.util.Spliterator$OfInt.forEachRemaining`,
		GroovyCalls: `org.codehaus.groovy.vmplugin.v8.IndyInterface.fromCache groovy.lang.MetaMethod.doMethodInvoke groovy.lang.Closure.call
			org.codehaus.groovy.runtime.callsite.CallSiteArray.defaultCall org.codehaus.groovy.runtime.dgm$207.doMethodInvoke`,
		RubyCalls: `org.jruby.runtime.callsite.CachingCallSite.call org.jruby.internal.runtime.methods.CompiledIRMethod.call
			org.jruby.RubyArray$INVOKER$i$0$0$each.call shop.invokeOther31:blocky org.jruby.runtime.Block.yield`,
		NoPlumbing: `P.lambda$main$0 P.run java.lang.Thread.run java.lang.reflect.Method.getName java.lang.invoke.InnerClassLambdaMetafactory.spinInnerClass
			java.lang.invoke.MethodHandleNatives.linkCallSite java.util.stream.Collectors.lambda$toMap$0 java.lang.invoke.LambdaForm.compileToBytecode
			java.util.HashMap.forEach com.example.reflect.Method.invoke jdk.internal.reflect.ReflectionFactory.newMethodAccessor
			jdk.proxy2.$Proxy12.find org.codehaus.groovy.runtime.DefaultGroovyMethods.each org.jruby.RubyArray.each
			com.example.Spliterator.tryAdvance main . .x`,
	} {
		for _, name := range strings.Fields(names) {
			if got := PlumbingOf(name); got != what {
				t.Errorf("%s is %d %s, not %d %s", name, got, got, what, what)
			}
		}
	}
}

// foldCases are stacks, root first: capital letters are plumbing, n is native code, c the call stub.
var foldCases = []struct{ what, stack, want string }{
	{"nothing to fold", "abc", "abc"},
	{"a run", "aMMb", "a[M]b"},
	{"the root", "MMb", "[M]b"},
	{"two runs", "aMbLc", "a[M]b[L]c"},
	{"the leaf stays", "aMM", "a[M]M"},
	{"a leaf alone stays", "aM", "aM"},
	{"only plumbing", "M", "M"},
	{"empty", "", ""},
	{"whoever knows more names the run", "aRMMb", "a[R]b"},
	{"and lambdas in a stream", "aSSLb", "a[S]b"},
	{"through the VM", "aRRIvvcb", "a[R]b"},
	{"through the VM into more", "aRIvcMMb", "a[R]b"},
	{"in the VM", "aRIvv", "a[R]vv"},
	{"in the stub", "aRIvvc", "a[R]vvc"},
	{"the VM at its own work", "aRIvvxvcb", "a[R]vvxvcb"},
	{"native code elsewhere", "avvcb", "avvcb"},
	{"called by a handle", "aMvvcb", "a[M]vvcb"},
	{"into the VM as leaf", "aRI", "a[R]I"},
	{"a thread's entry", "eeeca", "[e]a"},
	{"below its thread", "teeca", "t[e]a"},
	{"of the VM's own thread", "eeevv", "[e]vv"},
	{"with a library's frames", "eevecab", "[e]vecab"},
	{"not above Java", "aeecb", "aeecb"},
	{"not behind a cut", "xeeca", "xeeca"},
	{"the entry as leaf", "ee", "[e]e"},
	{"one call of Java only", "eecvcb", "[e]vcb"},
	{"the waiting of a leaf", "awff", "a[f]"},
	{"of an entry too", "eef", "[e][f]"},
	{"of a thread that is nothing else", "ff", "[f]"},
	{"the VM's waits alone stay", "aww", "aww"},
	{"waiting that is no leaf", "afb", "afb"},
	{"plumbing that waits", "aRRf", "a[R]R[f]"},
	{"through the VM, by entries", "aRIecb", "a[R]b"},
}

func TestFold(t *testing.T) {
	letters := map[rune]Plumbing{'M': MethodHandles, 'L': Lambda, 'R': Reflection, 'S': Stream, 'I': IntoVM, 'v': VMCall,
		'c': VMEntry, 'e': EntryCall, 'f': FutexCall, 'w': WaitCall, 't': Label}
	name := map[Plumbing]string{}
	for letter, what := range letters {
		name[what] = string(letter)
	}
	name[ThreadEntry], name[FutexWait] = "e", "f"
	for _, c := range foldCases {
		var stack []Plumbing
		for _, letter := range c.stack {
			stack = append(stack, letters[letter])
		}
		var got strings.Builder
		Fold(stack, func(i int) { got.WriteByte(c.stack[i]) },
			func(_ int, what Plumbing) { got.WriteString("[" + name[what] + "]") })
		if got.String() != c.want {
			t.Errorf("%s: %q became %q, not %q", c.what, c.stack, got.String(), c.want)
		}
	}
}

// TestNativePlumbing: names of native functions in JVMs from 8 on, and in two C libraries.
func TestNativePlumbing(t *testing.T) {
	for what, names := range map[Plumbing]string{
		EntryCall: `__clone3 clone start_thread thread_native_entry java_start Thread::call_run JavaThread::run JavaThread::thread_main_inner
			thread_entry JavaCalls::call_virtual JavaCalls::call_helper JavaCalls::call os::os_exception_wrapper JavaMain ThreadJavaMain invokeStaticMainWithArgs
			jni_CallStaticVoidMethod jni_invoke_static main __libc_start_main __libc_start_call_main _start java+0x12a1 libc.so.6+0x8f1f`,
		FutexCall: `__futex_abstimed_wait_common __futex_abstimed_wait_common64 pthread_cond_wait pthread_cond_timedwait
			pthread_cond_wait@@GLIBC_2.3.2 __new_sem_wait_slow64.constprop.0 do_futex_wait.constprop.1 __lll_lock_wait __pthread_clockjoin_ex futex_wait_cancelable`,
		WaitCall: `Parker::park os::PlatformEvent::park PlatformEvent::park os::PlatformMonitor::wait Monitor::wait Monitor::wait_without_safepoint_check
			PosixSemaphore::wait ObjectMonitor::wait JVM_MonitorWait Unsafe_Park ObjectMonitor::EnterI`,
		VMEntry: `call_stub`,
		VMCall: `G1ParTask::work GangWorker::run VMThread::run JavaThread::check_safepoint JavaCallsX::call libshop.so+0x1f Shop_main mainloop
			pthread_cond_signal futex_wake memcpy JVM_Load`,
	} {
		for _, name := range strings.Fields(names) {
			if got := NativePlumbingOf(name); got != what {
				t.Errorf("%s is %d, not %d", name, got, what)
			}
		}
	}
}

// TestFolder: a whole stack in the walker's form, leaf first.
func TestFolder(t *testing.T) {
	frame := func(name string, kind profile.Kind) profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: name}, Kind: kind, Line: 7}
	}
	frames := []profile.Frame{
		frame("java.lang.reflect.Method.invoke", profile.C2), // the leaf
		frame("P.refl", profile.Interpreted),
		frame(CallStub, profile.Stub),
		frame("libjvm.so+0x7ca343", profile.Native),
		frame("sun.reflect.NativeMethodAccessorImpl.invoke0", profile.NativeMethod),
		frame("java.lang.reflect.Method.invoke", profile.Inlined),
		frame("P$$Lambda$3.run", profile.C1),
		frame("P.main", profile.Interpreted),
		frame(CallStub, profile.Stub),
		frame("java.lang.reflect.Method.invoke", profile.Native), // a native function with the same name
	}
	want := []string{"java.lang.reflect.Method.invoke", "P.refl", "[reflection]", "P.main", CallStub,
		"java.lang.reflect.Method.invoke"}
	var f Folder
	for range 2 { // in the second round all functions are known
		s := profile.Stack{Frames: slices.Clone(frames)}
		f.Stack(&s)
		var got []string
		for i := range s.Frames {
			got = append(got, s.Frames[i].Func.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
		if fold := s.Frames[2]; fold.Kind != profile.Gap || fold.BCI != -1 || fold.Line != 0 || !IsFold(fold.Func.Name) {
			t.Errorf("the fold is %+v", fold)
		}
		if s.Frames[1] != frames[1] {
			t.Error("what stays has changed")
		}
	}
	// The last three frames are a carrier's, which are in no run.
	s := profile.Stack{Frames: slices.Clone(frames), Carrier: len(frames) - 3}
	f.Stack(&s)
	if virtual, carrier, ok := s.Split(); !ok || len(virtual.Frames) != 3 || len(carrier.Frames) != 3 {
		t.Errorf("of %d frames, the carrier's begin at %d", len(s.Frames), s.Carrier)
	}
	allocs := testing.AllocsPerRun(100, func() {
		s := profile.Stack{Frames: f.stackOf(frames)}
		f.Stack(&s)
	})
	if allocs > 0 {
		t.Errorf("%v allocations for a stack of known functions", allocs)
	}
	for _, name := range []string{"", "[no unwind info: x]", "reflection"} {
		if IsFold(name) {
			t.Errorf("%q is no fold", name)
		}
	}
}

var scratch [32]profile.Frame

func (f *Folder) stackOf(frames []profile.Frame) []profile.Frame {
	return scratch[:copy(scratch[:], frames)]
}
