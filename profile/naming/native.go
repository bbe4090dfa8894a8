package naming

import "regexp"

// Native frames that only pass calls on: how a thread begins, and how it waits. The lists are closed, like that of
// Java's plumbing. Functions without a name count if their library does nothing else.

// entries are functions of the C library, of the launcher and of HotSpot (8 to 27) with which a thread begins to run.
// The launcher has invokeStaticMainWithArgs and similar functions from JDK 21 on
// (src/java.base/share/native/libjli/java.c).
var entries = regexp.MustCompile(`^(?:_start|main|__libc_start_main.*|__libc_start_call_main|(?:__)?clone3?|__GI___clone3?|start_thread|start|` +
	`JLI_Launch|JavaMain|ThreadJavaMain|invoke(?:Static|Instance)Main(?:WithArgs|WithoutArgs)|ContinueInNewThread0?|CallJavaMainInNewThread|JVMInit|` +
	`thread_native_entry|java_start|Thread::call_run|JavaThread::(?:run|thread_main_inner)|thread_entry|` +
	`JavaCalls::call(?:_virtual|_static|_special|_helper)?|os::os_exception_wrapper|jni_(?:Call[A-Za-z]*Method[AV]?|invoke_static|invoke_nonstatic)|` +
	`(?:java|libjli\.so|libc\.so\.6|libpthread\.so\.0|ld-musl-[a-z0-9_]+\.so\.1)\+0x[0-9a-f]+)$`)

// futexes are functions of the C library in which a thread waits for a futex.
var futexes = regexp.MustCompile(`^(?:(?:__|___)?futex_[a-z_]*wait[a-z_0-9]*|__futex_abstimed_wait.*|__lll_lock_wait.*|__timedwait(?:_cp)?|__syscall_cp(?:_c|_asm)?|` +
	`(?:___|__)?pthread_(?:cond_(?:timed|clock)?wait|mutex_lock|clockjoin|join).*|__new_sem_wait.*|do_futex_wait.*|sem_(?:timed|clock)?wait.*)$`)

// waits are functions of HotSpot that call the functions in futexes.
var waits = regexp.MustCompile(`^(?:(?:os::)?Platform(?:Monitor|Mutex|Event|Parker)::(?:wait|park|lock|park_nanos|park_millis)|Parker::park|os::PlatformEvent::park.*|` +
	`Monitor::(?:wait|wait_without_safepoint_check|IWait|lock|ILock)|Mutex::(?:wait|lock|lock_contended).*|MonitorLocker::wait|PosixSemaphore::(?:wait|timedwait)|Semaphore::wait.*|ParkEvent::park|` +
	`ObjectMonitor::(?:wait|enter|EnterI|ReenterI|enter_internal|enter_with_contention_mark|reenter_internal|vm_exit)|ObjectSynchronizer::(?:wait|enter|jni_enter)|` +
	`JVM_MonitorWait|Unsafe_Park|JVM_Sleep|JavaThread::sleep(?:_nanos)?|os::sleep)$`)

// NativePlumbingOf returns the kind of plumbing of a native frame, by its name.
func NativePlumbingOf(name string) Plumbing {
	switch {
	case name == CallStub:
		return VMEntry
	case futexes.MatchString(name):
		return FutexCall
	case waits.MatchString(name):
		return WaitCall
	case entries.MatchString(name):
		return EntryCall
	}
	return VMCall
}
