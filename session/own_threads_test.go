//go:build linux

package session

import (
	"slices"
	"strings"
	"testing"

	"goprof/profile"
)

// TestIdleOwnThreads: stacks of real JVMs, root first. A word with a slash is a native function of that image. A
// word with a dot and no slash is a Java method. "?" stands for unknown frames.
func TestIdleOwnThreads(t *testing.T) {
	const begin = "libc.so.6/__clone3 libc.so.6/start_thread libjvm.so/thread_native_entry libjvm.so/Thread::call_run "
	const futex = " libjvm.so/Monitor::wait libc.so.6/pthread_cond_wait libc.so.6/__futex_abstimed_wait_common"
	const java = begin + "libjvm.so/JavaThread::run "
	for what, c := range map[string]struct {
		state profile.State
		stack string
		want  bool
	}{
		"a collector's worker": {profile.InNative, begin + "libjvm.so/GangWorker::loop" + futex, true},
		"without symbols, glibc 2.31": {profile.InNative,
			"libpthread.so.0/start_thread libjvm.so/libjvm.so+0x1f libpthread-2.31.so/pthread_cond_wait", true},
		"musl": {profile.InNative,
			"ld-musl-x86_64.so.1/start libjvm.so/thread_native_entry libc.musl-x86_64.so.1/__timedwait_cp", true},
		"the launcher": {profile.InNative,
			"java/main libjli.so/JLI_Launch libc.so.6/__pthread_clockjoin_ex", true},
		"another launcher":         {profile.InNative, "jsvc/main libc.so.6/__pthread_clockjoin_ex", false},
		"a compiler that compiles": {profile.Running, begin + "libjvm.so/C2Compiler::compile_method", false},
		"a worker without a CPU":   {profile.Runnable, begin + "libjvm.so/GangWorker::loop" + futex, false},
		"the finalizer": {profile.Waiting, java +
			"java.lang.ref.Finalizer$FinalizerThread.run java.lang.ref.ReferenceQueue.remove " +
			"java.lang.Object.wait" + futex, true},
		"the reference handler": {profile.InVM, java +
			"java.lang.ref.Reference$ReferenceHandler.run java.lang.ref.Reference.waitForReferencePendingList" +
			futex, true},
		"the cleaner, 25": {profile.Parked, java +
			"java.lang.Thread.run jdk.internal.misc.InnocuousThread.run jdk.internal.ref.CleanerImpl.run " +
			"java.lang.ref.ReferenceQueue.remove java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await " +
			"jdk.internal.misc.Unsafe.park" + futex, true},
		"a finalizer of the program": {profile.Sleeping, java +
			"java.lang.ref.Finalizer$FinalizerThread.run shop.Cart.finalize java.lang.Thread.sleep" + futex, false},
		"a finalizer that is blocked": {profile.Blocked, java +
			"java.lang.ref.Finalizer$FinalizerThread.run java.lang.ref.ReferenceQueue.remove" + futex, false},
		"the program's own queue": {profile.Waiting, java +
			"shop.Cache.clean java.lang.ref.ReferenceQueue.remove java.lang.Object.wait" + futex, false},
		"a pool": {profile.Parked, java +
			"java.lang.Thread.run java.util.concurrent.ThreadPoolExecutor.getTask " +
			"java.util.concurrent.locks.LockSupport.park" + futex, false},
		"main, asleep": {profile.Sleeping, java + "shop.Main.main java.lang.Thread.sleep" + futex, false},
		"a library's thread": {profile.InNative,
			"libc.so.6/start_thread librocksdb.so/run libc.so.6/pthread_cond_wait", false},
		"the same, attached": {profile.InNative,
			"libc.so.6/start_thread libshop.so/run libjvm.so/jni_DetachCurrentThread" + futex, false},
		"frames that nobody knows":   {profile.InNative, "? libjvm.so/Monitor::wait libc.so.6/pthread_cond_wait", false},
		"nothing known":              {profile.InNative, "", false},
		"only the C library":         {profile.InNative, "libc.so.6/start_thread libc.so.6/nanosleep", false},
		"the VM's thread in a pause": {profile.InNative, begin + "libjvm.so/VM_G1CollectForAllocation::doit" + futex, false},
		"and before one": {profile.Sleeping, begin +
			"libjvm.so/SafepointSynchronize::begin libc.so.6/nanosleep", false},
		"stopped with all others": {profile.Stopped, begin + "libjvm.so/GangWorker::loop" + futex, false},
	} {
		if got := isIdleOwn(c.state, -1, stackOf(c.stack)); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestIdleAttachListener: a look without a stop shows only the first frames of a Java thread of the JVM that waits in
// native code. Its name shows that it is the JVM's. A program's thread with that name has Java frames, or those of its
// library.
func TestIdleAttachListener(t *testing.T) {
	const accept = "gap libjvm.so/LinuxAttachListener::dequeue libc.so.6/accept"
	for _, c := range []struct {
		stack  string
		vmJava bool
		want   bool
	}{
		{accept, true, true},
		{accept, false, false},
		{"gap libjvm.so/libjvm.so+0x1f libc.so.6/accept", true, true},
		{"gap libnet.so/NET_Accept libc.so.6/accept", true, false},
		{"shop.Main.run libnet.so/NET_Accept libc.so.6/accept", true, false},
		{"gap libc.so.6/accept", true, false},
		{"? libjvm.so/LinuxAttachListener::dequeue libc.so.6/accept", true, false},
	} {
		stack, gap := stackOf(c.stack), -1
		if c.vmJava {
			gap = slices.IndexFunc(stack.Frames, func(f profile.Frame) bool { return f.Func.Name == "gap" })
		}
		if got := isIdleOwn(profile.InNative, gap, stack); got != c.want {
			t.Errorf("%q, a name of the JVM's: %v: %v", c.stack, c.vmJava, got)
		}
	}
}

// stackOf makes a stack from words, root first.
func stackOf(words string) *profile.Stack {
	s := &profile.Stack{}
	for _, word := range strings.Fields(words) {
		f := profile.Frame{Func: &profile.Func{Name: word}, Kind: profile.C2}
		if image, name, native := strings.Cut(word, "/"); native {
			f.Func.Module, f.Func.Name, f.Kind = image, name, profile.Native
		} else if word == "?" || word == "gap" {
			f.Kind = profile.Gap
		}
		s.Frames = append([]profile.Frame{f}, s.Frames...)
	}
	return s
}
