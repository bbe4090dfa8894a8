//go:build linux

package session

import (
	"regexp"
	"strings"

	"goprof/profile"
	"goprof/vmstructs"
)

// This file finds the JVM's own threads that are idle. Most threads of a small program are such threads, and no user
// asks what they wait for. So wall-clock recordings leave them out, unless they are asked for. A thread that does
// anything is never left out, and neither is a thread whose owner is not known.
//
// Names of threads prove nothing: a program may give its threads any name. So the frames decide. A thread without any
// Java frame is the JVM's if all its frames are in the JVM, the launcher or the C library. A thread that a native
// library has begun has a frame of that library. The few threads that the JVM begins in Java run methods of classes of
// their own, such as java.lang.ref.Reference$ReferenceHandler.
//
// A Java thread of the JVM without Java frames has a name of the JVM's, such as Attach Listener. No thread of a program
// has both such a name and no Java frames. A look without a stop shows only the first frame of such a thread.

// isIdleOwn reports whether a thread in this state is one of the JVM's own that has nothing to do. If the thread is a
// Java thread with a name of the JVM's, gap is the index at which a look without a stop left frames out. Otherwise it
// is -1.
func isIdleOwn(state profile.State, gap int, stack *profile.Stack) bool {
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
		case vmstructs.IsHomeOfVMThread(f.Func.Name):
			own = true
		case !vmstructs.IsWaitOfVMThread(f.Func.Name):
			return false
		}
	}
	if java {
		return own
	}
	return isNativeOwn(stack, gap)
}

// isNativeOwn is isIdleOwn for a thread without Java frames.
func isNativeOwn(stack *profile.Stack, gap int) bool {
	own := false
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if i == gap {
			continue
		}
		if f.Kind != profile.Native {
			return false // a frame that is not known may belong to any code
		}
		switch module, _, _ := strings.Cut(f.Func.Module, " "); {
		case module == "libjvm.so":
			own = true
			if vmstructs.IsOperation(f.Func.Name) {
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

// systemImages are the images of the C library and the loader, glibc's and musl's.
var systemImages = regexp.MustCompile(`^(?:libc[.-]|libpthread[.-]|ld-|\[?(?:linux-)?vdso|libc\.musl)`)
