package arch

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCallNumbers holds the numbers of this machine's CPU against those that the kernel's headers gave x/sys, and
// both tables against each other: what one CPU has and the other lacks must be known to be so.
func TestCallNumbers(t *testing.T) {
	want := map[int64]Call{
		unix.SYS_READ: CallRead, unix.SYS_PREAD64: CallRead, unix.SYS_READV: CallRead, unix.SYS_PREADV: CallRead,
		unix.SYS_PREADV2: CallRead, unix.SYS_GETDENTS64: CallRead, unix.SYS_COPY_FILE_RANGE: CallRead, unix.SYS_SPLICE: CallRead,
		unix.SYS_WRITE: CallWrite, unix.SYS_PWRITE64: CallWrite, unix.SYS_WRITEV: CallWrite, unix.SYS_PWRITEV: CallWrite,
		unix.SYS_PWRITEV2: CallWrite, unix.SYS_SENDFILE: CallWrite,
		unix.SYS_ACCEPT: CallAccept, unix.SYS_ACCEPT4: CallAccept, unix.SYS_CONNECT: CallConnect,
		unix.SYS_RECVFROM: CallReceive, unix.SYS_RECVMSG: CallReceive, unix.SYS_RECVMMSG: CallReceive,
		unix.SYS_SENDTO: CallSend, unix.SYS_SENDMSG: CallSend, unix.SYS_SENDMMSG: CallSend,
		unix.SYS_FSYNC: CallSync, unix.SYS_FDATASYNC: CallSync, unix.SYS_SYNC_FILE_RANGE: CallSync,
		unix.SYS_FLOCK: CallFile, unix.SYS_FTRUNCATE: CallFile, unix.SYS_FALLOCATE: CallFile,
		unix.SYS_PPOLL: CallPoll, unix.SYS_EPOLL_PWAIT: CallSelect, unix.SYS_EPOLL_PWAIT2: CallSelect,
		unix.SYS_FUTEX: CallFutex, unix.SYS_FUTEX_WAITV: CallFutex,
		unix.SYS_NANOSLEEP: CallSleep, unix.SYS_CLOCK_NANOSLEEP: CallSleep, unix.SYS_RESTART_SYSCALL: CallRestart,
	}
	const onlyAMD64 = 2 // poll and epoll_wait
	if len(AMD64.Calls)-onlyAMD64 != len(ARM64.Calls) || len(ARM64.Calls) != len(want) {
		t.Errorf("%d calls on amd64, %d on arm64, %d known", len(AMD64.Calls), len(ARM64.Calls), len(want))
	}
	cpu := ByName(runtime.GOARCH)
	if cpu == nil {
		t.Skipf("no table for %s", runtime.GOARCH)
	}
	for n, call := range want {
		if cpu.Calls[n] != call {
			t.Errorf("call %d is %q, want %q", n, cpu.Calls[n], call)
		}
	}
}
