//go:build linux

package session

import (
	"regexp"
	"strings"

	"goprof/profile"
	"goprof/vmstructs"
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
		case vmstructs.IsHomeOfVMThread(f.Func.Name):
			own = true
		case !vmstructs.IsWaitOfVMThread(f.Func.Name):
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
