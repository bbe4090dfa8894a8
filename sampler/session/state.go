//go:build linux

package session

import (
	"regexp"
	"strings"

	"goprof/arch"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/sampler/look"
	"goprof/vmstructs"
)

// What a thread did or waited for, put together from what the kernel, the JVM and the stack tell. The kernel knows
// files and sockets; the JVM knows locks and sleeps, which all are futexes to the kernel; and where the JVM's word
// could not be had (a collector was moving the thread's object) the topmost Java frame tells.

// stateOf is the state of a thread that was looked at, and for what it waits, as far as that was asked for.
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

// stateOfFile tells sockets from files.
func stateOfFile(w *look.Waiting) (profile.State, string) {
	what := w.Call.String()
	switch w.File {
	case look.Socket, look.Selector:
		return profile.Socket, what
	case look.RegularFile:
		return profile.File, what
	case look.Pipe:
		return profile.File, strings.TrimSpace("pipe " + what)
	case look.NoFile: // it could not be asked
		switch w.Call {
		case arch.CallAccept, arch.CallConnect, arch.CallReceive, arch.CallSend, arch.CallSelect:
			return profile.Socket, what
		}
	}
	return profile.InNative, ""
}

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
	if w.Call == arch.CallOther {
		return 0, false
	}
	if w.Java.Notify {
		return profile.Waiting, true
	}
	return stateOfMethod(stack)
}

// waits are the states of threads by how they wait.
var waits = map[vmstructs.Wait]profile.State{
	vmstructs.WaitsToEnter: profile.Blocked, vmstructs.WaitsForNotify: profile.Waiting,
	vmstructs.WaitsForUnpark: profile.Parked, vmstructs.WaitsForTime: profile.Sleeping,
}

// entersMonitor are HotSpot's functions in which a thread waits to enter a monitor (runtime/objectMonitor.cpp,
// synchronizer.cpp, lightweightSynchronizer.cpp).
var entersMonitor = regexp.MustCompile(`^(?:ObjectMonitor::(?:enter|reenter|EnterI|enter_internal|ReenterI)|` +
	`(?:Object|Lightweight)Synchronizer::(?:enter|inflate_and_enter|fast_enter|slow_enter))`)

// nativeWaits are functions of the C library that wait for sockets and files.
var nativeWaits = map[string]profile.State{"epoll_wait": profile.Socket, "epoll_pwait": profile.Socket,
	"accept": profile.Socket, "accept4": profile.Socket, "connect": profile.Socket, "recv": profile.Socket,
	"__libc_recv": profile.Socket, "recvfrom": profile.Socket, "recvmsg": profile.Socket, "send": profile.Socket,
	"sendmsg": profile.Socket, "poll": profile.Socket, "__poll": profile.Socket, "read": profile.File,
	"__libc_read": profile.File, "write": profile.File, "__libc_write": profile.File, "pread64": profile.File,
	"pwrite64": profile.File, "fsync": profile.File, "fdatasync": profile.File}

// stateOfStack tells the state by the stack alone: of a wait that was over before anybody could ask the JVM.
func stateOfStack(stack *profile.Stack) (profile.State, bool) {
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if f.Kind.Java() {
			break
		}
		if f.Kind != profile.Native {
			continue
		}
		if entersMonitor.MatchString(f.Func.Name) {
			return profile.Blocked, true
		}
		if s, ok := nativeWaits[f.Func.Name]; ok {
			return s, true
		}
	}
	return stateOfMethod(stack)
}

// stateOfMethod tells the state by the topmost Java frame, if it is a method in which threads wait.
func stateOfMethod(stack *profile.Stack) (profile.State, bool) {
	for i := range stack.Frames {
		if f := &stack.Frames[i]; f.Kind.Java() {
			s, ok := waits[vmstructs.WaitOfMethod(f.Func.Name)]
			return s, ok
		}
	}
	return 0, false
}
