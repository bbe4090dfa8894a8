package pools

import (
	"slices"

	"goprof/profile"
	"goprof/profile/naming"
)

// AwaitsTask reports whether a task of an executor waits for another task that some thread must run. A FutureTask is
// such a task. A CompletableFuture is not, because it may be an answer from elsewhere.
func AwaitsTask(s *profile.Stack) bool {
	return calls(s, "java.util.concurrent.FutureTask.get") && calls(s, "java.util.concurrent.ThreadPoolExecutor.runWorker")
}

// MayRunTask reports whether a thread may be running a task: it works, or waits inside a task for something other than
// another task's result. Then a method of the program is on the stack.
func MayRunTask(t *profile.ThreadDump) bool {
	at := At(t)
	switch {
	case at.Site == "", at.Doing == Idle, at.Doing == ForResult:
		return false
	case at.Doing == Paused:
		return calls(&t.Stack, "java.util.concurrent.ThreadPoolExecutor.runWorker") ||
			calls(&t.Stack, "java.util.concurrent.ForkJoinPool.")
	}
	return true
}

// RunsEventLoop reports whether a thread serves many connections in one loop: Netty's, XNIO's (Undertow).
func RunsEventLoop(s *profile.Stack) bool {
	return calls(s, "io.netty.channel.nio.NioEventLoop.run", "io.netty.channel.epoll.EpollEventLoop.run",
		"io.netty.channel.SingleThreadIoEventLoop.run", "org.xnio.nio.WorkerThread.run")
}

// calls reports whether the stack has a method whose name begins with one of these prefixes.
func calls(s *profile.Stack, prefixes ...string) bool {
	return slices.ContainsFunc(javaOnly(s.Frames), func(name string) bool { return naming.BeginsWith(name, prefixes...) })
}
