package naming

import (
	"path"
	"strings"

	"goprof/profile"
)

// WayIntoJava counts the frames at the root of a stack that only bring a new thread to its first Java method:
//
//	call_stub, JavaCalls::call_helper ... thread_native_entry, start_thread, __clone3
//	call_stub, JavaCalls::call_helper, jni_CallStaticVoidMethod, JavaMain, start_thread, __clone3
//
// The code of each must be in the JVM itself, in its launcher or in the C library. WayIntoJava returns 0 if a frame of
// another library is among them (a program that starts a JVM, an attached C thread), or if the root was not reached.
func WayIntoJava(s *profile.Stack) int {
	if s.Truncated != profile.Whole {
		return 0
	}
	for i := len(s.Frames) - 1; i > 0; i-- {
		f := &s.Frames[i]
		switch {
		case f.Func == nil:
			return 0
		case f.Kind == profile.Stub && f.Func.Name == CallStub:
			if s.Frames[i-1].Kind.Java() {
				return len(s.Frames) - i
			}
			return 0
		case f.Kind != profile.Native || !startsThreads(f.Func.Module):
			return 0
		}
	}
	return 0
}

// startsThreads reports whether a file is one of those that bring a thread to Java. Before 2.34, glibc had its threads
// in a library of its own. musl's threads are in its loader.
func startsThreads(module string) bool {
	switch name := path.Base(module); name {
	case "libjvm.so", "libjli.so", "java", "libc.so.6", "libpthread.so.0":
		return true
	default:
		return strings.HasPrefix(name, "libc-2.") || strings.HasPrefix(name, "libpthread-2.") ||
			strings.HasPrefix(name, "ld-musl-") || strings.HasPrefix(name, "libc.musl-")
	}
}
