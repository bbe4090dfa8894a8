//go:build linux

package session

import (
	"regexp"
	"strings"

	"goprof/profile"
	"goprof/vmstructs"
)

// This file finds idle threads of the JVM itself. Most threads of a small program are such threads, and no user asks
// what they wait for. So wall-clock recordings leave them out, unless they are asked for. A thread that does anything
// is never left out, and neither is a thread whose owner is not known.
//
// Names of threads prove nothing: a program may give its threads any name. So the frames decide. A thread without any
// Java frame is the JVM's if all its frames are in the JVM, the launcher or the C library. A thread that a native
// library has started has a frame of that library. The few threads that the JVM starts in Java run methods of classes
// of their own, such as java.lang.ref.Reference$ReferenceHandler.
//
// There is one exception: of a Java thread without Java frames, a look without a stop shows only the first frames. Then
// the name decides, such as Attach Listener: no thread of a program has both such a name and no Java frames.

// isIdleOwn reports whether a thread in this state is an idle thread of the JVM itself. For a Java thread with one of
// the JVM's names, gap is the index at which a look without a stop left out frames. Otherwise it is -1.
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
			return false // an unknown frame may belong to any code
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

// systemImages are the images of the C library and the loader (glibc and musl).
var systemImages = regexp.MustCompile(`^(?:libc[.-]|libpthread[.-]|ld-|\[?(?:linux-)?vdso|libc\.musl)`)
