package cpus

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
)

// TestCallNumbers compares the numbers of this machine's CPU with those that x/sys has from the kernel's headers,
// and the tables of both CPUs with each other. A call that only one CPU has must be listed as such.
func TestCallNumbers(t *testing.T) {
	want := map[int64]arch.Call{
		unix.SYS_READ: arch.CallRead, unix.SYS_PREAD64: arch.CallRead, unix.SYS_READV: arch.CallRead,
		unix.SYS_PREADV:  arch.CallRead,
		unix.SYS_PREADV2: arch.CallRead, unix.SYS_GETDENTS64: arch.CallRead, unix.SYS_COPY_FILE_RANGE: arch.CallRead,
		unix.SYS_SPLICE: arch.CallRead,
		unix.SYS_WRITE:  arch.CallWrite, unix.SYS_PWRITE64: arch.CallWrite, unix.SYS_WRITEV: arch.CallWrite,
		unix.SYS_PWRITEV:  arch.CallWrite,
		unix.SYS_PWRITEV2: arch.CallWrite, unix.SYS_SENDFILE: arch.CallWrite,
		unix.SYS_ACCEPT: arch.CallAccept, unix.SYS_ACCEPT4: arch.CallAccept, unix.SYS_CONNECT: arch.CallConnect,
		unix.SYS_RECVFROM: arch.CallReceive, unix.SYS_RECVMSG: arch.CallReceive, unix.SYS_RECVMMSG: arch.CallReceive,
		unix.SYS_SENDTO: arch.CallSend, unix.SYS_SENDMSG: arch.CallSend, unix.SYS_SENDMMSG: arch.CallSend,
		unix.SYS_FSYNC: arch.CallSync, unix.SYS_FDATASYNC: arch.CallSync, unix.SYS_SYNC_FILE_RANGE: arch.CallSync,
		unix.SYS_FLOCK: arch.CallFile, unix.SYS_FTRUNCATE: arch.CallFile, unix.SYS_FALLOCATE: arch.CallFile,
		unix.SYS_PPOLL: arch.CallPoll, unix.SYS_EPOLL_PWAIT: arch.CallSelect, unix.SYS_EPOLL_PWAIT2: arch.CallSelect,
		unix.SYS_FUTEX: arch.CallFutex, unix.SYS_FUTEX_WAITV: arch.CallFutex,
		unix.SYS_NANOSLEEP: arch.CallSleep, unix.SYS_CLOCK_NANOSLEEP: arch.CallSleep,
		unix.SYS_RESTART_SYSCALL: arch.CallRestart,
		unix.SYS_OPENAT:          arch.CallOpenAt, unix.SYS_OPENAT2: arch.CallOpenAt, unix.SYS_CLOSE: arch.CallClose,
		unix.SYS_DUP3: arch.CallReplace, unix.SYS_EPOLL_CTL: arch.CallEpoll,
	}
	const onlyAMD64 = 5 // poll, epoll_wait, open, creat and dup2
	if len(amd64.CPU.Calls)-onlyAMD64 != len(arm64.CPU.Calls) || len(arm64.CPU.Calls) != len(want) {
		t.Errorf("%d calls on amd64, %d on arm64, %d known", len(amd64.CPU.Calls), len(arm64.CPU.Calls), len(want))
	}
	cpu := Here()
	if cpu == nil {
		t.Skipf("no table for %s", runtime.GOARCH)
	}
	for n, call := range want {
		if cpu.Calls[n] != call {
			t.Errorf("call %d is %q, want %q", n, cpu.Calls[n], call)
		}
	}
}
