//go:build linux

package diagnose

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/session"
	"goprof/testdata/host"
)

// TestExplain brings about the causes of failures that this machine can have.
func TestExplain(t *testing.T) {
	pid := startChild(t, nil, "sleep")
	wantCause(t, runChild(t, nil, "explain", itoa(pid)), "not a JVM not-java", "libjvm.so", "goprof list")
	wantCause(t, explain(endedPID(t)), "no process no-process", "no such process", "goprof list")
	wantCause(t, explain(otherThread()), "no process thread-id", "a thread of process "+itoa(os.Getpid()),
		"--pid "+itoa(os.Getpid()))
	wantCause(t, runChild(t, nil, "fewfiles", "explain", itoa(pid)), "unexplained fd-limit", "open more files",
		"ulimit -n")
}

func TestExplainForbidden(t *testing.T) {
	host.NeedRoot(t)
	ours, theirs := startChild(t, nil, "sleep"), startChild(t, asNobody, "sleep")
	t.Run("other user", func(t *testing.T) {
		wantCause(t, runChild(t, asNobody, "explain", itoa(ours)), "forbidden other-user", "belongs to user 0 (root)",
			"sudo ")
	})
	t.Run("same user", func(t *testing.T) {
		wantCause(t, runChild(t, asNobody, "explain", itoa(theirs)), "not a JVM not-java", "", "")
	})
	t.Run("no capability", func(t *testing.T) {
		wantCause(t, runChild(t, nil, "drop", "explain", itoa(theirs)), "forbidden no-capability", "as in a container",
			"--cap-add")
		wantCause(t, runChild(t, nil, "drop", "explain", itoa(ours)), "forbidden no-capability", "as in a container",
			"--cap-add")
	})
	t.Run("more capabilities", func(t *testing.T) {
		able := *asNobody
		able.AmbientCaps = []uintptr{unix.CAP_NET_BIND_SERVICE}
		pid := startChild(t, &able, "sleep")
		wantCause(t, runChild(t, asNobody, "explain", itoa(pid)), "forbidden more-capabilities", "0x400", "sudo ")
	})
	t.Run("not dumpable", func(t *testing.T) {
		pid := startChild(t, asNobody, "undumpable", "sleep")
		wantCause(t, runChild(t, asNobody, "explain", itoa(pid)), "forbidden not-dumpable", "PR_SET_DUMPABLE", "sudo ")
		wantCause(t, runChild(t, nil, "explain", itoa(pid)), "not a JVM not-java", "", "")
	})
	t.Run("seccomp", func(t *testing.T) {
		for _, who := range []*syscall.SysProcAttr{nil, asNobody} {
			wantCause(t, runChild(t, who, "seccomp", "explain", itoa(theirs)), "forbidden seccomp", "on goprof itself",
				"seccomp=unconfined")
		}
		// The process of another user stays another user's.
		wantCause(t, runChild(t, asNobody, "seccomp", "explain", itoa(ours)), "forbidden other-user", "", "")
	})
}

// TestExplainTraced: the tracer is named, whether it traces the process or one of its threads.
func TestExplainTraced(t *testing.T) {
	pid := startChild(t, nil, "sleep")
	wantCause(t, explained(pid, ErrTraced), "forbidden traced", "another process traced it", "goprof dump")
	tracer := startChild(t, nil, "trace", itoa(pid))
	want := fmt.Sprintf("process %d (", tracer)
	wantCause(t, explained(pid, ErrTraced), "forbidden traced", want, "kill "+itoa(tracer))

	threaded := startChild(t, nil, "sleep")
	tids, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", threaded))
	if err != nil || len(tids) < 2 {
		t.Fatalf("%v %v", tids, err)
	}
	tracer = startChild(t, nil, "trace", filepath.Base(tids[len(tids)-1]))
	wantCause(t, explained(threaded, ErrTraced), "forbidden traced", fmt.Sprintf("process %d (", tracer),
		"kill "+itoa(tracer))
}

// TestTraced: recording is refused only if other tracers hold all threads.
func TestTraced(t *testing.T) {
	free, partly, wholly := startChild(t, nil, "sleep"), startChild(t, nil, "sleep"), startChild(t, nil, "sleep")
	startChild(t, nil, "trace", itoa(partly))
	startChild(t, nil, "traceall", itoa(wholly))
	for pid, want := range map[int]error{free: nil, partly: nil, wholly: ErrTraced, endedPID(t): nil} {
		if err := (Host{}).Traced(pid); err != want {
			t.Errorf("%d of free %d, partly %d, wholly %d: %v, want %v", pid, free, partly, wholly, err, want)
		}
	}
}

// TestFilterKills: other tests learn from these filters that no thread was stopped. The filters do kill.
func TestFilterKills(t *testing.T) {
	pid := startChild(t, nil, "sleep")
	for _, filter := range []string{"noptrace", "noseize"} {
		err := childCommand(nil, filter, "trace", itoa(pid)).Run()
		var exit *exec.ExitError
		if !asExit(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
			t.Errorf("ptrace under %s ended with %v", filter, err)
		}
	}
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*exit = e
	return ok
}

func TestExplainInnerPID(t *testing.T) {
	host.NeedRoot(t)
	// No process of the host has numbers as high as this. Which one it becomes is up to the kernel.
	high := host.MaxPID(t) - 999
	outer := startChild(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, "inner", itoa(high), "sleep")
	pid := host.OnlyChild(t, outer)
	status, ok := Host{}.status(pid)
	if !ok || len(status.NSPID) < 2 {
		t.Fatalf("%+v", status)
	}
	inner := status.NSPID[len(status.NSPID)-1]
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", inner)); err == nil {
		t.Skipf("%d is a process of the host, too", inner)
	}
	wantCause(t, explain(inner), "no process inner-pid", fmt.Sprintf("here that process is %d", pid), "--pid "+itoa(pid))
}

func TestExplainZombie(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	// WNOWAIT: the ended process stays a zombie.
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	wantCause(t, explain(cmd.Process.Pid), "gone zombie", fmt.Sprintf("its parent (%d)", os.Getpid()), "goprof list")
}

func TestExplainGoneAndExec(t *testing.T) {
	cmd := childCommand(nil, "exec")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	in.Close()
	host.WaitFor(t, "exec", func() bool {
		// the kernel changes the name some moments after the memory
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return p.Refresh() != nil && string(name) == "sleep\n"
	})
	wantCause(t, explained(pid, p.Refresh()), "gone exec", "became another program (sleep)", "goprof dump")
	cmd.Process.Kill()
	cmd.Wait()
	wantCause(t, explained(pid, p.Refresh()), "gone gone", "it ended", "goprof list")
}

func TestExplainKernelThread(t *testing.T) {
	comm, err := os.ReadFile("/proc/2/comm")
	if err != nil || strings.TrimSpace(string(comm)) != "kthreadd" {
		t.Skip("kernel threads are not seen here")
	}
	host.NeedRoot(t)
	wantCause(t, explain(2), "not a JVM kernel-thread", "kthreadd", "goprof list")
}

// TestExplainOtherVMs: programs that look like a JVM from afar.
func TestExplainOtherVMs(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libj9vm29.so")
	host.CopyFile(t, library, "/proc/self/exe")
	wantCause(t, explain(startChild(t, nil, "map", library)), "not a JVM openj9", "OpenJ9", "jcmd ")

	empty := filepath.Join(dir, "libjvm.so")
	host.CopyFile(t, empty, "/proc/self/exe")
	wantCause(t, explain(startChild(t, nil, "map", empty)), "not a JVM no-symbols", "gHotSpotVMStructs", "goprof doctor")

	wantCause(t, explain(startSleep(t, nativeImageFile(t))), "not a JVM native-image", "GraalVM", "perf record")

	// The launcher, before it has loaded libjvm.so.
	launcher := filepath.Join(dir, "java")
	host.CopyFile(t, launcher, "/bin/sleep")
	wantCause(t, explain(startSleep(t, launcher)), "not a JVM starting", "still starting", "sleep 1; goprof dump")
}

// explain tries to attach and prints the result: class and name, why, remedy.
func explain(pid int) string {
	s, err := session.Attach(pid)
	if err == nil {
		s.Close()
	}
	return explained(pid, err)
}

func wantCause(t *testing.T, got, name, why, remedy string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 3 || lines[0] != name || !strings.Contains(lines[1], why) || !strings.Contains(lines[2], remedy) {
		t.Errorf("got\n%s\nwant %s: ...%s...; try ...%s...", got, name, why, remedy)
	}
}

// endedPID is the number of a process that has ended.
func endedPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("/bin/true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// otherThread is a thread of this process that does not lead it.
func otherThread() int {
	tids, _ := os.ReadDir("/proc/self/task")
	for _, tid := range tids {
		if n, _ := strconv.Atoi(tid.Name()); n != os.Getpid() {
			return n
		}
	}
	return 0
}

// startSleep runs a copy of sleep, and waits until it sleeps. Before that, the kernel may not have mapped it yet.
func startSleep(t *testing.T, path string) int {
	t.Helper()
	cmd := exec.Command(path, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	host.WaitFor(t, "asleep", func() bool {
		s, _ := Host{}.status(cmd.Process.Pid)
		return s.State == 'S'
	})
	return cmd.Process.Pid
}
