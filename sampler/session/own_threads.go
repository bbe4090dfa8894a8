//go:build linux

package session

import (
	"regexp"
	"strings"

	"goprof/profile"
)

// Which threads are the JVM's own, and idle. They are most of a small program's threads, and what they wait for is
// nobody's question: so wall-clock recordings leave them out, unless they are asked for. A thread that does anything
// is never left out, and neither is one of which it is not known whose it is.
//
// Names of threads prove nothing: a program may call its own as it likes. The frames tell. A thread without any Java
// frame is the JVM's if all its frames are of the JVM, of the launcher or of the C library. A thread that a native
// library has begun has a frame of that library. The few threads that the JVM begins in Java stand in classes of their
// own, java.lang.ref.Reference$ReferenceHandler and the like.

// isIdleOwn tells whether a thread in that state is one of the JVM's own that has nothing to do.
func isIdleOwn(state profile.State, stack *profile.Stack) bool {
	switch state {
	case profile.Running, profile.Runnable, profile.Blocked, profile.Stopped:
		return false
	}
	java, own := false, false
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if !f.Kind.Java() {
			continue
		}
		java = true
		switch {
		case ownHomes.MatchString(f.Func.Name):
			own = true
		case !ownWaits.MatchString(f.Func.Name):
			return false
		}
	}
	if java {
		return own
	}
	return isNativeOwn(stack)
}

// isNativeOwn tells it of a thread without Java frames.
func isNativeOwn(stack *profile.Stack) bool {
	own := false
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if f.Kind != profile.Native {
			return false // frames that are not known may be anybody's
		}
		switch module, _, _ := strings.Cut(f.Func.Module, " "); {
		case module == "libjvm.so":
			own = true
			if operations.MatchString(f.Func.Name) {
				return false
			}
		case module == "libjli.so" || module == "java":
			own = true
		case !systemImages.MatchString(module):
			return false
		}
	}
	return own
}

// ownHomes are the classes of threads that the JVM begins in Java: for references, and since JDK 21 for virtual
// threads.
var ownHomes = regexp.MustCompile(`^(?:java\.lang\.ref\.(?:Reference|Finalizer)\$|java\.lang\.ref\.ReferenceQueue\.|jdk\.internal\.ref\.CleanerImpl\.|` +
	`sun\.nio\.ch\.Poller|java\.lang\.VirtualThread\.(?:unblockVirtualThreads|takeVirtualThreadListToUnblock)$)`)

// ownWaits are what else stands on the stacks of these threads while they wait.
var ownWaits = regexp.MustCompile(`^(?:java\.lang\.ref\.|java\.lang\.Object\.wait|java\.lang\.Thread\.run|` +
	`jdk\.internal\.misc\.InnocuousThread\.run$|sun\.misc\.InnocuousThread\.run$|(?:jdk\.internal|sun)\.misc\.Unsafe\.park$|` +
	`java\.util\.concurrent\.locks\.|java\.util\.concurrent\.ForkJoinPool\.(?:managedBlock|unmanagedBlock|compensatedBlock)$|` +
	`sun\.nio\.ch\.(?:EPoll|EPollPoller)\b)`)

// operations are what the VM's thread is about while the program stands still: waiting there is no idleness.
var operations = regexp.MustCompile(`^(?:VM_|VM_Operation|SafepointSynchronize::|VMThread::evaluate_operation)`)

// systemImages are the images of the C library and the loader, glibc's and musl's.
var systemImages = regexp.MustCompile(`^(?:libc[.-]|libpthread[.-]|ld-|\[?(?:linux-)?vdso|libc\.musl)`)
