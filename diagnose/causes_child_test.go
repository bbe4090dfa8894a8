//go:build linux

package diagnose

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/session"
	"goprof/testdata/host"
)

// The test program is also a goprof with fewer rights, and the process at which that goprof looks: started with
// childEnv it does what its words say, and ends.
const childEnv = "GOPROF_DIAGNOSE_TEST_CHILD"

func init() {
	if words := strings.Fields(os.Getenv(childEnv)); len(words) > 0 {
		runtime.LockOSThread() // so main is the thread that leads the process
		if err := child(words); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// child obeys one word after the other.
func child(words []string) error {
	for i, word := range words {
		var err error
		switch word {
		case "list":
			for _, j := range (Host{}).JVMs() {
				problem := "-"
				if j.Problem != nil {
					problem = j.Problem.Name
				}
				fmt.Println(j.PID, problem, j.Name())
			}
		case "doctor": // a pid follows
			pid, _ := strconv.Atoi(words[i+1])
			fmt.Print(reported(Host{}.Examine(pid)))
			return nil
		case "explain": // a pid follows
			pid, _ := strconv.Atoi(words[i+1])
			_, err := session.Attach(pid)
			fmt.Println(explained(pid, err))
			return nil
		case "noptrace":
			err = filter(unix.SECCOMP_RET_KILL_PROCESS, unix.SYS_PTRACE)
		case "noseize": // no ptrace request that can stop a thread
			err = filterPtrace(unix.SECCOMP_RET_KILL_PROCESS, unix.PTRACE_ATTACH, unix.PTRACE_SEIZE, unix.PTRACE_INTERRUPT)
		case "drop": // CAP_SYS_PTRACE: exec takes it away if the bounding set lacks it
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0); err != nil {
				return err
			}
			os.Setenv(childEnv, strings.Join(words[i+1:], " "))
			return unix.Exec("/proc/self/exe", []string{"child"}, os.Environ())
		case "dropperf": // the capabilities for perf_event, in the same way
			for _, c := range []uintptr{unix.CAP_PERFMON, unix.CAP_SYS_ADMIN} {
				if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
					return err
				}
			}
			os.Setenv(childEnv, strings.Join(words[i+1:], " "))
			return unix.Exec("/proc/self/exe", []string{"child"}, os.Environ())
		case "proc": // in a PID namespace: /proc as it is there
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
				return err
			}
		case "noperf":
			err = filter(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM), unix.SYS_PERF_EVENT_OPEN)
		case "engine": // a pid follows
			pid, _ := strconv.Atoi(words[i+1])
			for _, e := range session.Engines {
				c, err := Host{}.ChooseEngine(e, pid, 0)
				if err != nil {
					fmt.Println(e, "error:", Host{}.Explain(pid, err))
				} else {
					fmt.Printf("%s: engine %s %s\n", e, c.Engine, c.Note)
				}
			}
			return nil
		case "seccomp":
			err = filter(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM), unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV)
		case "fewfiles": // one more file can be opened
			err = useUpFiles()
		case "undumpable":
			err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		case "trace": // a pid follows
			pid, _ := strconv.Atoi(words[i+1])
			if err := unix.PtraceSeize(pid); err != nil {
				return err
			}
			fmt.Println("READY")
			readLine()
			return nil
		case "traceall": // a pid follows
			if err := seizeAll(words[i+1]); err != nil {
				return err
			}
			fmt.Println("READY")
			readLine()
			return nil
		case "sleep":
			fmt.Println("READY")
			readLine()
		case "map": // a file follows
			if err := mapFile(words[i+1]); err != nil {
				return err
			}
			fmt.Println("READY")
			readLine()
			return nil
		case "exec":
			fmt.Println("READY")
			readLine()
			return unix.Exec("/bin/sleep", []string{"sleep", "60"}, os.Environ())
		case "inner": // a number follows: run the rest under that number, as pid 1 of a namespace
			if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(words[i+1]), 0); err != nil {
				return err
			}
			cmd := childCommand(nil, words[i+2:]...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			return cmd.Run()
		default:
			return fmt.Errorf("what is %q?", word)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return nil
}

// seizeAll seizes all threads of a process. Meanwhile some threads may end, and others begin.
func seizeAll(pid string) error {
	seized := map[string]bool{}
	for {
		tasks, _ := filepath.Glob("/proc/" + pid + "/task/*")
		before := len(seized)
		for _, task := range tasks {
			if seized[task] {
				continue
			}
			tid, _ := strconv.Atoi(filepath.Base(task))
			if err := unix.PtraceSeize(tid); err != nil && err != unix.ESRCH {
				return err
			}
			seized[task] = true
		}
		if len(seized) == before {
			return nil
		}
	}
}

// useUpFiles leaves room for one more file.
func useUpFiles() error {
	// Go's poller wants files of its own and would end the program without them.
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return err
	}
	f.Close()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 32, Max: 32}); err != nil {
		return err
	}
	last := -1
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
		if err != nil {
			return unix.Close(last)
		}
		last = fd
	}
}

// mapFile maps a library as the loader does.
func mapFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	return err
}

func readLine() {
	var b [1]byte
	os.Stdin.Read(b[:])
}

func explained(pid int, err error) string {
	if err == nil {
		return "nothing stands in the way"
	}
	c := Host{Command: "goprof dump --pid " + strconv.Itoa(pid)}.Explain(pid, err)
	return fmt.Sprintf("%s %s\n%s\n%s", c.Class, c.Name, c.Why, c.Remedy)
}

// filter makes system calls fail from now on, or kill the process (seccomp(2)).
func filter(action uint32, calls ...uint32) error {
	return install(append(
		[]unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}, // seccomp_data.nr
		oneOf(action, calls)...))
}

// filterPtrace is filter for some requests of ptrace.
func filterPtrace(action uint32, requests ...uint32) error {
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PTRACE, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // seccomp_data.args[0]
	}
	return install(append(prog, oneOf(action, requests)...))
}

// oneOf compares the loaded word with values.
func oneOf(action uint32, values []uint32) (prog []unix.SockFilter) {
	for i, v := range values {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(values) - i), K: v})
	}
	return append(prog,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

func install(prog []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const setModeFilter, threadSync = 1, 1 // SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, threadSync, uintptr(unsafe.Pointer(&fprog))); e != 0 {
		return e
	}
	return nil
}

const nobody = 65534

// asNobody starts a process as a user without rights.
var asNobody = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}

func childCommand(attr *syscall.SysProcAttr, words ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(words, " "))
	cmd.SysProcAttr = attr
	return cmd
}

// runChild returns what a child prints.
func runChild(t *testing.T, attr *syscall.SysProcAttr, words ...string) string {
	t.Helper()
	out, err := childCommand(attr, words...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
	return string(out)
}

// startChild starts a child that waits for its input to end, and returns its pid.
func startChild(t *testing.T, attr *syscall.SysProcAttr, words ...string) int {
	t.Helper()
	return host.StartReady(t, childCommand(attr, words...))
}
