//go:build linux

// Package oldkernel lets tests run a program under the refusals of other kernels (rules.go).
//
// A seccomp filter of the program hands some calls over to the test (seccomp_unotify(2)). The test looks at the rights
// and limits that the calling thread has, as those kernels would, and refuses the call or lets it pass.
//
// Only tests import it.
package oldkernel

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// Rule refuses calls.
type Rule struct {
	call   uint32
	refuse func(c *call) unix.Errno // 0: the call passes
}

// call is a call of a thread of the program: struct seccomp_notif (include/uapi/linux/seccomp.h).
type call struct {
	id         uint64
	tid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

const passes = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE

// The requests of a listener: _IOWR('!', 0, struct seccomp_notif) and _IOWR('!', 1, struct seccomp_notif_resp).
var (
	receive = uintptr(0xc000_2100 | unsafe.Sizeof(call{})<<16)
	reply   = uintptr(0xc000_2101 | unsafe.Sizeof(answer{})<<16)
)

// bytes copies memory of the calling thread; nil: it cannot be read.
func (c *call) bytes(from uint64, n int) []byte {
	b := make([]byte, n)
	local, remote := []unix.Iovec{{Base: &b[0], Len: uint64(n)}}, []unix.RemoteIovec{{Base: uintptr(from), Len: n}}
	got, err := unix.ProcessVMReadv(int(c.tid), local, remote, 0)
	if err != nil {
		return nil
	}
	return b[:got]
}

func status(tid uint32) procfs.Status {
	b, err := procfs.Read(fmt.Sprintf("/proc/%d/status", tid), procfs.MaxFile)
	if err != nil {
		return procfs.Status{}
	}
	return procfs.ParseStatus(b)
}

// childEnv has the test program become the program that is asked for, behind a filter. Its value is the numbers of the
// calls.
const childEnv = "GOPROF_OLDKERNEL_CHILD"

func init() {
	if calls, is := os.LookupEnv(childEnv); is {
		fmt.Fprintln(os.Stderr, "oldkernel:", become(calls))
		os.Exit(125)
	}
}

// become puts the filter on, gives its listener to the test, and executes the program.
func become(calls string) error {
	runtime.LockOSThread()
	os.Unsetenv(childEnv)
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	for word := range strings.FieldsSeq(calls) {
		var number uint32
		fmt.Sscan(word, &number)
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	listener, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return e
	}
	const toTest = 3 // the first of exec.Cmd.ExtraFiles
	if err := unix.Sendmsg(toTest, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	unix.CloseOnExec(int(listener))
	unix.CloseOnExec(toTest)
	return unix.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// limit is how long a program may take.
const limit = 2 * time.Minute

// Run runs a program under the rules. It returns what the program writes, and its exit code.
func Run(t testing.TB, rules []Rule, words ...string) (out string, code int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		t.Skip(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	cmd := exec.CommandContext(ctx, self, append([]string{program}, words[1:]...)...)
	var calls []string
	for _, r := range rules {
		calls = append(calls, fmt.Sprint(r.call))
	}
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(calls, " "))
	cmd.ExtraFiles = []*os.File{theirs}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	listener, err := receiveFile(pair[0])
	if err != nil {
		cmd.Wait()
		t.Fatalf("no filter: %v: %s", err, &said)
	}
	defer unix.Close(listener)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	serve(listener, rules, ended)
	return said.String(), cmd.ProcessState.ExitCode()
}

func receiveFile(socket int) (int, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, b[:], oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return -1, fmt.Errorf("no descriptor: %w", unix.EBADMSG)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// serve answers until the program has ended.
func serve(listener int, rules []Rule, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		default:
		}
		polled := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if n, _ := unix.Poll(polled, 20); n == 0 || polled[0].Revents&unix.POLLIN == 0 {
			continue
		}
		var c call
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), receive, uintptr(unsafe.Pointer(&c))); e != 0 {
			continue // the thread is gone
		}
		a := answer{id: c.id, flags: passes}
		for _, r := range rules {
			if r.call != uint32(c.number) {
				continue
			}
			if e := r.refuse(&c); e != 0 {
				a.errno, a.flags = -int32(e), 0
				break
			}
		}
		unix.Syscall(unix.SYS_IOCTL, uintptr(listener), reply, uintptr(unsafe.Pointer(&a)))
	}
}
