//go:build linux

package session

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test program is also a goprof with fewer rights, and the process that one looks at:
// started with childEnv it does what its words say, and ends.
const childEnv = "GOPROF_SESSION_TEST_CHILD"

func init() {
	if words := strings.Fields(os.Getenv(childEnv)); len(words) > 0 {
		runtime.LockOSThread() // main is then the thread that leads the process
		if err := child(words); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// child does one word after the other.
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
		case "explain": // a pid follows
			pid, _ := strconv.Atoi(words[i+1])
			_, err := Attach(pid)
			fmt.Println(explained(pid, err))
			return nil
		case "noptrace":
			err = filter(unix.SECCOMP_RET_KILL_PROCESS, unix.SYS_PTRACE)
		case "seccomp":
			err = filter(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM), unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV)
		case "fewfiles":
			err = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 8, Max: 8})
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
		case "sleep":
			fmt.Println("READY")
			readLine()
		case "exec":
			fmt.Println("READY")
			readLine()
			return unix.Exec("/bin/sleep", []string{"sleep", "60"}, nil)
		default:
			return fmt.Errorf("what is %q?", word)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return nil
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

// filter makes system calls fail, or kill, from now on (seccomp(2)).
func filter(action uint32, calls ...uint32) error {
	var prog []unix.SockFilter
	prog = append(prog, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}) // seccomp_data.nr
	for i, nr := range calls {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(calls) - i), K: nr})
	}
	prog = append(prog,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
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

// runChild returns what a child has to say.
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
	return startReady(t, childCommand(attr, words...))
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}
