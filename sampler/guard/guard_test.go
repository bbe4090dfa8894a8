//go:build linux

package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test program is also the process that enters the guard, because there is no way back: with childEnv it enters
// the guard, tries what childEnv names, and prints the results.
const childEnv = "GOPROF_GUARD_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		children[what]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var children = map[string]func(){"state": childState, "calls": childCalls, "write": childWrite, "weak": childState}

func runChild(t *testing.T, what string, as ...string) map[string]string {
	t.Helper()
	args := append(as, "/proc/self/exe")
	if args[0] != "/proc/self/exe" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		args[len(args)-1] = exe
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &stderr)
	}
	said := map[string]string{}
	for line := range strings.Lines(out.String()) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		said[key] = value
	}
	return said
}

// needThreads skips a test if a call cannot be made on all OS threads: that is so in a program with C in it, such as
// one with the race detector. goprof has no C.
func needThreads(t *testing.T) {
	t.Helper()
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_GETPPID, 0, 0, 0); e == unix.ENOTSUP {
		t.Skip("built with cgo")
	}
}

// onThreads keeps OS threads busy elsewhere, like those of goprof when it enters the guard.
func onThreads(n int) (end func()) {
	var block [2]int
	unix.Pipe(block[:])
	for range n {
		ready := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(ready)
			var b [1]byte
			syscall.Read(block[0], b[:]) // this thread is in the kernel
		}()
		<-ready
	}
	return func() { unix.Close(block[1]) }
}

func childState() {
	defer onThreads(5)()
	g := Enter(ToRecord)
	fmt.Printf("given: %v %v\n", g.NoNewPrivileges, g.Filter)
	fmt.Printf("dropped: %x\n", g.Capabilities)
	childSays()
}

func childSays() {
	started := make(chan struct{})
	go func() { // and one thread that is made afterwards
		runtime.LockOSThread()
		close(started)
		select {}
	}()
	<-started
	tasks, _ := filepath.Glob("/proc/self/task/*/status")
	fmt.Printf("threads: %d\n", len(tasks))
	seen := map[string]int{}
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		var state []string
		for _, key := range []string{"CapPrm", "CapEff", "CapInh", "NoNewPrivs", "Seccomp"} {
			state = append(state, key+"="+string(regexp.MustCompile(key + `:\t(\w+)`).FindSubmatch(text)[1]))
		}
		seen[strings.Join(state, " ")]++
	}
	for state, n := range seen {
		fmt.Printf("state %s: %d\n", state, n)
	}
}

// TestEveryThreadIsGuarded: the filter holds for threads that exist, in the kernel or not, and for later ones.
func TestEveryThreadIsGuarded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have capabilities")
	}
	needThreads(t)
	said := runChild(t, "state")
	if said["given"] != "true true" {
		t.Fatalf("%v", said)
	}
	keep, admin := ToRecord.forPerf()
	kept := keep.mask(^uint64(0)) & ours(t)
	want := fmt.Sprintf("state CapPrm=%016x CapEff=%016x CapInh=%016x NoNewPrivs=1 Seccomp=2", kept, kept, 0)
	if n, ok := said[want]; !ok || n != said["threads"] {
		t.Errorf("%v, want %q of all threads", said, want)
	}
	if kept&(1<<unix.CAP_SYS_PTRACE) == 0 ||
		!admin && kept&(1<<unix.CAP_SYS_ADMIN) != 0 && ours(t)&(1<<unix.CAP_PERFMON) != 0 {
		t.Errorf("%#x is kept", kept)
	}
}

func ours(t *testing.T) uint64 {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		t.Fatal(err)
	}
	return uint64(have[1].Effective)<<32 | uint64(have[0].Effective)
}

// TestWithoutPtraceAllIsKept: in a container without CAP_SYS_PTRACE goprof may look at processes that have no more
// capabilities than it has itself. A goprof that drops one would no longer see them.
func TestWithoutPtraceAllIsKept(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and setpriv")
	}
	said := runChild(t, "weak", "setpriv", "--bounding-set=-sys_ptrace")
	kept := ours(t) &^ (1 << unix.CAP_SYS_PTRACE)
	want := fmt.Sprintf("state CapPrm=%016x CapEff=%016x CapInh=%016x NoNewPrivs=1 Seccomp=2", kept, kept, 0)
	if said[want] != said["threads"] || said["dropped"] != "0" {
		t.Errorf("%v, want %q", said, want)
	}
}

// TestMask: Linux before 5.9 lacks the parts into which CAP_SYS_ADMIN was split. So does a goprof that was given
// only CAP_SYS_ADMIN. Root of a container lacks CAP_DAC_READ_SEARCH.
func TestMask(t *testing.T) {
	all := ^uint64(0)
	admin := uint64(1) << unix.CAP_SYS_ADMIN
	if ToRecord.mask(all)&admin != 0 || ToLook.mask(all)&admin != 0 {
		t.Error("CAP_SYS_ADMIN is kept without need")
	}
	if ToRecord.mask(all&^(1<<unix.CAP_PERFMON))&admin == 0 ||
		ToLook.mask(all&^(1<<unix.CAP_CHECKPOINT_RESTORE))&admin == 0 {
		t.Error("CAP_SYS_ADMIN is dropped, and its part is not there")
	}
	read, write := uint64(1)<<unix.CAP_DAC_READ_SEARCH, uint64(1)<<unix.CAP_DAC_OVERRIDE
	if ToLook.mask(all)&write != 0 || ToLook.mask(all&^read)&write == 0 {
		t.Error("CAP_DAC_OVERRIDE is kept where CAP_DAC_READ_SEARCH is, or dropped where it is not")
	}
}

// tried are calls, and what they return behind the filter. A call that is to return EPERM returns another error
// without the filter (one of its arguments). childCalls makes sure of that before it enters the guard.
var tried = []struct {
	name string
	call func() error
	want error // nil: any result but EPERM
}{
	{"execve", func() error { return syscall.Exec("/nowhere", nil, nil) }, unix.EPERM},
	{"fork", func() error { _, err := syscall.ForkExec("/nowhere", nil, nil); return err }, unix.EPERM},
	{"mount", func() error { return unix.Mount("", "/nowhere", "", 0, "") }, unix.EPERM},
	{"finit_module", func() error { return unix.FinitModule(-1, "", 0) }, unix.EPERM},
	{"bpf", raw(unix.SYS_BPF, 1000, 0, 0), unix.EPERM},
	{"process_vm_writev", raw(unix.SYS_PROCESS_VM_WRITEV, 1, 0, 0), unix.EPERM},
	{"ptrace POKEDATA", raw(unix.SYS_PTRACE, unix.PTRACE_POKEDATA, 1, 0), unix.EPERM},
	{"ptrace POKETEXT", raw(unix.SYS_PTRACE, unix.PTRACE_POKETEXT, 1, 0), unix.EPERM},
	{"ptrace SETREGSET", raw(unix.SYS_PTRACE, unix.PTRACE_SETREGSET, 1, 0), unix.EPERM},
	{"ptrace SETSIGINFO", raw(unix.SYS_PTRACE, unix.PTRACE_SETSIGINFO, 1, 0), unix.EPERM},
	{"ptrace CONT", raw(unix.SYS_PTRACE, unix.PTRACE_CONT, 1, 0), unix.EPERM},
	{"ptrace SINGLESTEP", raw(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, 1, 0), unix.EPERM},
	{"ptrace KILL", raw(unix.SYS_PTRACE, unix.PTRACE_KILL, 1<<30, 0), unix.EPERM},
	{"ptrace GETREGSET", raw(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, 1, unix.NT_PRSTATUS), nil},
	{"ptrace INTERRUPT", raw(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, 1, 0), nil},
	{"ptrace DETACH", raw(unix.SYS_PTRACE, unix.PTRACE_DETACH, 1, 0), nil},
	{"kill of another", raw(unix.SYS_KILL, 1<<30, uintptr(unix.SIGCONT), 0), unix.EPERM},
	{"kill with 0", raw(unix.SYS_KILL, 1, 0, 0), nil},
	{"tgkill of another", raw(unix.SYS_TGKILL, 1<<30, 1<<30, uintptr(unix.SIGCONT)), unix.EPERM},
	{"tgkill with 0", raw(unix.SYS_TGKILL, 1, 1, 0), nil},
	{"tgkill of itself", func() error { return unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGURG) }, nil},
	{"clone3", raw(unix.SYS_CLONE3, 0, 0, 0), unix.ENOSYS},
	{"prlimit of another", raw(unix.SYS_PRLIMIT64, 1<<30, unix.RLIMIT_CORE, 0), unix.EPERM},
	{"prlimit", func() error { var r unix.Rlimit; return unix.Getrlimit(unix.RLIMIT_NOFILE, &r) }, nil},
	{"socket", func() error { fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); unix.Close(fd); return err },
		unix.EPERM},
	{"io_uring_setup", raw(unix.SYS_IO_URING_SETUP, 0, 0, 0), unix.EPERM},
	{"setns", raw(unix.SYS_SETNS, ^uintptr(0), 0, 0), unix.EPERM},
	{"open", func() error { fd, err := unix.Open("/proc/self/status", unix.O_RDONLY, 0); unix.Close(fd); return err },
		nil},
	{"perf_event_open", raw(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0), nil},
}

func raw(call, a, b, c uintptr) func() error {
	return func() error {
		if _, _, e := unix.Syscall6(call, a, b, c, 0, 0, 0); e != 0 {
			return e
		}
		return nil
	}
}

func childCalls() {
	for _, c := range tried {
		fmt.Printf("before %s: %v\n", c.name, errors.Is(c.call(), unix.EPERM))
	}
	Enter(ToRecord)
	for _, c := range tried {
		err := c.call()
		fmt.Printf("%s: %v\n", c.name, c.want == nil && !errors.Is(err, unix.EPERM) || c.want != nil && errors.Is(err,
			c.want))
	}
}

func TestFilter(t *testing.T) {
	said := runChild(t, "calls")
	for _, c := range tried {
		if said["before "+c.name] != "false" && os.Geteuid() == 0 {
			t.Errorf("%s: EPERM without the filter: this proves nothing", c.name)
		}
		if said[c.name] != "true" {
			t.Errorf("%s: not as wanted (%v)", c.name, c.want)
		}
	}
}

// childWrite looks at a process as package sampler does and tries to change it, before and after it enters the
// guard.
func childWrite() {
	runtime.LockOSThread()
	victim := exec.Command("sleep", "600")
	// the guard keeps this process from ending the victim itself
	victim.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := victim.Start(); err != nil {
		fmt.Println("start:", err)
		return
	}
	pid := victim.Process.Pid
	for _, when := range []string{"before", "after"} {
		if when == "after" {
			Enter(ToRecord)
		}
		try := func(what string, request, addr, data uintptr) {
			_, _, e := unix.Syscall6(unix.SYS_PTRACE, request, uintptr(pid), addr, data, 0, 0)
			fmt.Printf("%s %s: %v\n", when, what, e == 0)
		}
		try("seize", unix.PTRACE_SEIZE, 0, 0)
		try("interrupt", unix.PTRACE_INTERRUPT, 0, 0)
		var status unix.WaitStatus
		unix.Wait4(pid, &status, unix.WALL, nil)
		var regs [512]byte
		vec := unix.Iovec{Base: &regs[0], Len: uint64(len(regs))}
		try("getregset", unix.PTRACE_GETREGSET, unix.NT_PRSTATUS, uintptr(unsafe.Pointer(&vec)))
		try("setregset", unix.PTRACE_SETREGSET, unix.NT_PRSTATUS, uintptr(unsafe.Pointer(&vec)))
		at := stackOf(pid)
		var word uint64
		local := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&word)), Len: 8}}
		remote := []unix.RemoteIovec{{Base: at, Len: 8}}
		n, _ := unix.ProcessVMReadv(pid, local, remote, 0)
		fmt.Printf("%s read: %v\n", when, n == 8)
		n, _ = unix.ProcessVMWritev(pid, local, remote, 0)
		fmt.Printf("%s write: %v\n", when, n == 8)
		try("poke", unix.PTRACE_POKEDATA, at, uintptr(word))
		try("detach", unix.PTRACE_DETACH, 0, 0)
		fmt.Printf("%s kill: %v\n", when, unix.Kill(pid, unix.SIGURG) == nil)
	}
}

// stackOf returns an address on a process's stack.
func stackOf(pid int) uintptr {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	var from uintptr
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "[stack]") {
			fmt.Sscanf(line, "%x-", &from)
		}
	}
	return from
}

// TestNothingCanBeWritten: the calls of a pause work behind the guard. No call that changes the target works.
func TestNothingCanBeWritten(t *testing.T) {
	said := runChild(t, "write")
	for what, after := range map[string]string{
		"seize": "true", "interrupt": "true", "getregset": "true", "read": "true", "detach": "true",
		"setregset": "false", "write": "false", "poke": "false", "kill": "false",
	} {
		if said["before "+what] != "true" {
			t.Errorf("%s does not work without the guard: %v", what, said)
		}
		if said["after "+what] != after {
			t.Errorf("%s from behind the guard: %s, want %s", what, said["after "+what], after)
		}
	}
}
