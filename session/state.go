//go:build linux

package session

import (
	"strings"

	"goprof/arch"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/sampler/look"
	"goprof/vmstructs"
)

// This file finds out what a thread did or waited for. The kernel knows files and sockets. The JVM knows locks and
// sleeps, which are only futexes for the kernel. If the JVM's state could not be read, because a collector was moving
// the thread's object, the topmost Java frame decides.

// stateOf returns the state of a thread at a look, and what the thread waits for, if that is known.
func stateOf(w *look.Waiting, stack *profile.Stack) (profile.State, string) {
	switch {
	case w.State == 'T' || w.State == 't':
		return profile.Stopped, ""
	case w.NoCPU:
		return profile.Runnable, ""
	case w.State == 'R':
		return profile.Running, ""
	case w.Call.HasFile() || w.Call == arch.CallPoll:
		return stateOfFile(w)
	}
	if s, ok := stateOfJava(w, stack); ok {
		return s, naming.ClassOf(w.Java.For)
	}
	switch {
	case w.Java.InVM:
		return profile.InVM, ""
	case w.Call == arch.CallSleep:
		return profile.Sleeping, ""
	}
	return profile.InNative, ""
}

// stateOfFile returns the state of a thread in a system call for a descriptor: waiting for a socket, for a file, or in
// native code. The string names the call.
func stateOfFile(w *look.Waiting) (profile.State, string) {
	what := w.Call.String()
	switch w.File {
	case look.Socket, look.Selector:
		return profile.Socket, what
	case look.RegularFile:
		return profile.File, what
	case look.Pipe:
		return profile.File, strings.TrimSpace("pipe " + what)
	case look.NoFile: // the kernel could not be asked
		switch w.Call {
		case arch.CallAccept, arch.CallConnect, arch.CallReceive, arch.CallSend, arch.CallSelect:
			return profile.Socket, what
		}
	}
	return profile.InNative, ""
}

// stateOfJava returns the state of a thread by what the JVM knows of it, or by its stack if the JVM's state could not
// be read. It returns false if neither shows what the thread waits for.
func stateOfJava(w *look.Waiting, stack *profile.Stack) (profile.State, bool) {
	if w.Java.Monitor {
		return profile.Blocked, true
	}
	if w.Java.Status != "" {
		s, ok := waits[vmstructs.WaitOfStatus(w.Java.Status)]
		return s, ok
	}
	if w.ByStack {
		return stateOfStack(stack)
	}
	if w.Call == arch.CallOther || w.Call >= arch.CallOpen {
		return 0, false
	}
	if w.Java.Notify {
		return profile.Waiting, true
	}
	return stateOfMethod(stack)
}

// waits maps the JVM's kinds of waits to states of threads.
var waits = map[vmstructs.Wait]profile.State{
	vmstructs.WaitsToEnter: profile.Blocked, vmstructs.WaitsForNotify: profile.Waiting,
	vmstructs.WaitsForUnpark: profile.Parked, vmstructs.WaitsForTime: profile.Sleeping,
}

// nativeWaits are functions of the C library that wait for sockets and files.
var nativeWaits = map[string]profile.State{"epoll_wait": profile.Socket, "epoll_pwait": profile.Socket,
	"accept": profile.Socket, "accept4": profile.Socket, "connect": profile.Socket, "recv": profile.Socket,
	"__libc_recv": profile.Socket, "recvfrom": profile.Socket, "recvmsg": profile.Socket, "send": profile.Socket,
	"sendmsg": profile.Socket, "poll": profile.Socket, "__poll": profile.Socket, "read": profile.File,
	"__libc_read": profile.File, "write": profile.File, "__libc_write": profile.File, "pread64": profile.File,
	"pwrite64": profile.File, "fsync": profile.File, "fdatasync": profile.File}

// stateOfStack returns the state by the stack alone, for a wait that was over before the JVM's state could be read.
func stateOfStack(stack *profile.Stack) (profile.State, bool) {
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if f.Kind.Java() {
			break
		}
		if f.Kind != profile.Native {
			continue
		}
		if vmstructs.EntersMonitor(f.Func.Name) {
			return profile.Blocked, true
		}
		if s, ok := nativeWaits[f.Func.Name]; ok {
			return s, true
		}
	}
	return stateOfMethod(stack)
}

// stateOfMethod returns the state by the topmost Java frame, if it is a method in which threads wait.
func stateOfMethod(stack *profile.Stack) (profile.State, bool) {
	for i := range stack.Frames {
		if f := &stack.Frames[i]; f.Kind.Java() {
			s, ok := waits[vmstructs.WaitOfMethod(f.Func.Name)]
			return s, ok
		}
	}
	return 0, false
}
