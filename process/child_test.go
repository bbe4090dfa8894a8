//go:build linux

package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test program is also the process that tests look at. If childEnv is set, the program does what the variable says,
// prints "ready" and facts for the test, and ends when its input ends.
const childEnv = "GOPROF_PROCESS_TEST_CHILD"

func init() {
	if os.Getenv(childEnv) != "" {
		runtime.LockOSThread() // so that main runs on the leader of the process
	}
}

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		if err := child(what, bufio.NewReader(os.Stdin)); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(what string, in *bufio.Reader) error {
	verb, arg, _ := strings.Cut(what, " ")
	switch verb {
	case "map", "memfd":
		return childMap(verb, arg, in)
	case "leaderless":
		go func() {
			fmt.Println("ready")
			in.ReadString('\n')
			os.Exit(0)
		}()
		syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	case "sleep":
		fmt.Println("ready")
		in.ReadString('\n')
	case "open":
		return childOpen(arg)
	case "chroot":
		if err := unix.Chroot(arg); err != nil {
			return err
		}
		fmt.Println("ready")
		in.ReadString('\n')
	}
	return errors.New("what?")
}

// childMap maps a whole file so that it can be executed.
func childMap(verb, path string, in *bufio.Reader) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var fd int
	if verb == "memfd" {
		if fd, err = unix.MemfdCreate("jit code", 0); err == nil {
			_, err = unix.Write(fd, b)
		}
	} else {
		fd, err = unix.Open(path, unix.O_RDONLY, 0)
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	in.ReadString('\n')
	m, err := unix.Mmap(fd, 0, len(b), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	fmt.Printf("%p\n", &m[0])
	in.ReadString('\n')
	return nil
}

// childOpen tries to open a process as another user.
func childOpen(arg string) error {
	pid, _ := strconv.Atoi(arg)
	if err := syscall.Setuid(65534); err != nil {
		return err
	}
	p, err := Open(pid)
	if err == nil {
		p.Close()
	}
	fmt.Println("ready")
	fmt.Printf("%t: %v\n", errors.Is(err, ErrNotPermitted), err)
	return nil
}

// childProcess is the child as the test sees it.
type childProcess struct {
	t    testing.TB
	pid  int
	in   interface{ Write([]byte) (int, error) }
	out  *bufio.Reader
	wait func() error
}

func startChild(t testing.TB, what string, attr *syscall.SysProcAttr) *childProcess {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	cmd.SysProcAttr = attr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in := startCmd(t, cmd)
	c := &childProcess{t: t, pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out), wait: cmd.Wait}
	if line := c.line(); line != "ready" {
		t.Fatalf("the child said %q", line)
	}
	return c
}

func (c *childProcess) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("from the child: %q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// goOn lets the child take its next step.
func (c *childProcess) goOn() { c.in.Write([]byte("\n")) }
