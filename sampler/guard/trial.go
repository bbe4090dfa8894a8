//go:build linux

package guard

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Finding out which rights perf_event needs, while goprof still has all of its rights.
//
// Linux permits perf_event with CAP_PERFMON. Kernels of Debian and Ubuntu permit it only with CAP_SYS_ADMIN while
// kernel.perf_event_paranoid is above 2, and 3 or 4 is their default (Debian's patch
// security-perf-allow-further-restriction-of-perf_event_open, in kernel/events/core.c, perf_event_open). On these
// goprof keeps CAP_SYS_ADMIN.

// With calls f on an OS thread that has only the capabilities that Enter would keep. Afterwards the OS thread has its
// old capabilities back. admin reports whether CAP_SYS_ADMIN is kept because perf_event needs it here.
func With(keep Keep, f func()) (admin bool) {
	raiseLockedMemory(keep)
	keep, admin = keep.forPerf()
	keep.alone(f)
	return admin
}

// forPerf returns k with CAP_SYS_ADMIN added if perf_event is wanted, is refused without CAP_SYS_ADMIN, and is
// permitted with it.
func (k Keep) forPerf() (all Keep, admin bool) {
	if !k.has(unix.CAP_PERFMON) || k.has(unix.CAP_SYS_ADMIN) {
		return k, false
	}
	refused := false
	k.alone(func() { refused = !mayOpenEvent() })
	if refused && mayOpenEvent() {
		return append(k[:len(k):len(k)], unix.CAP_SYS_ADMIN), true
	}
	return k, false
}

func (k Keep) has(capability uint) bool {
	return k.mask(^uint64(0))&(1<<capability) != 0
}

// alone calls f on an OS thread that has no other capabilities, unless goprof keeps all of its capabilities anyway.
func (k Keep) alone(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	have, err := capabilities()
	if err != nil || keepsAll(have, purpose{looks: true}) {
		f()
		return
	}
	if setCapabilities(capset{have.effective & k.mask(have.permitted), have.permitted}) == nil {
		defer setCapabilities(have)
	}
	f()
}

// mayOpenEvent opens an event of this OS thread that counts nothing. If perf_event is permitted at all, a process may
// look at itself.
func mayOpenEvent() bool {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER5,
		Config: unix.PERF_COUNT_SW_DUMMY, Bits: unix.PerfBitDisabled}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// raiseLockedMemory raises the limit of locked memory as far as permitted. Before Linux 5.11 the kernel counts BPF maps
// and programs against this limit, whatever capabilities goprof has, and the default of 64 KB is too little for one
// program (kernel/bpf/syscall.c, bpf_charge_memlock).
func raiseLockedMemory(keep Keep) {
	var limit unix.Rlimit
	if !keep.has(unix.CAP_BPF) || unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil {
		return
	}
	all := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &all) != nil { // needs CAP_SYS_RESOURCE
		limit.Cur = limit.Max
		unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)
	}
}
