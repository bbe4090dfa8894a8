//go:build linux

package guard

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter lists calls that goprof never makes, not those that it makes: the next version of Go's runtime may use
// other harmless calls, and recordings must still work. A refused call returns EPERM.
//
// For a call that is always allowed the kernel does not run the filter. It finds these calls once, when the filter is
// installed (kernel/seccomp.c, seccomp_cache_prepare). So the calls of a pause, process_vm_readv, waitid and
// clock_gettime, are hardly slower.

// never are calls that goprof does not need when it looks at a process.
var never = []uint32{
	// Starting programs. (Threads are made by clone: see rules.)
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	// Changing the target's memory and threads. (process_vm_readv only reads.)
	unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	// The kernel.
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_USERFAULTFD, unix.SYS_REBOOT, unix.SYS_SYSLOG,
	// File systems and namespaces.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_SWAPON,
	unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_MKNODAT, unix.SYS_OPEN_BY_HANDLE_AT,
	// The machine.
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME,
	// Keys and users.
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID,
	unix.SYS_SETREGID,
	unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_SETGROUPS,
	// The network. A profile leaves goprof as a file.
	unix.SYS_SOCKETPAIR, unix.SYS_BIND, unix.SYS_LISTEN,
	// io_uring makes other calls without asking the filter.
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// looking are calls that goprof needs only when it looks at processes.
var looking = []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF,
	unix.SYS_PIDFD_OPEN, unix.SYS_KCMP}

// network are calls that only a goprof that sends profiles to servers needs.
var network = []uint32{unix.SYS_SOCKET, unix.SYS_CONNECT}

// ipOnly are the sockets that a goprof that sends may make: to other machines, not to the kernel or to programs of this
// machine.
var ipOnly = rule{unix.SYS_SOCKET, []test{{arg: 0, value: unix.AF_INET}, {arg: 0, value: unix.AF_INET6}},
	uint32(unix.EPERM)}

// rule allows a call only if an argument has one of some values, or has some bits.
type rule struct {
	call   uint32
	only   []test
	orElse uint32 // the errno that the call returns otherwise
}

type test struct {
	arg   int
	value uint32
	bits  bool // all bits of value must be set; otherwise the argument must be equal
}

// readOnly are the requests of ptrace that goprof makes (package sampler; session uses GETEVENTMSG to find out whether
// ptrace is forbidden). None writes: POKE*, SETREGS, SETREGSET, CONT, SINGLESTEP and ATTACH are not among them.
var readOnly = []test{
	{arg: 0, value: unix.PTRACE_GETREGSET}, {arg: 0, value: unix.PTRACE_INTERRUPT}, {arg: 0, value: unix.PTRACE_SEIZE},
	{arg: 0, value: unix.PTRACE_DETACH}, {arg: 0, value: unix.PTRACE_GETEVENTMSG},
}

// rules returns the calls that are allowed with some arguments. ptrace comes first, because each pause calls it and the
// filter checks the first rule first.
func rules(pid int) []rule {
	own := uint32(pid)
	return []rule{
		{unix.SYS_PTRACE, readOnly, uint32(unix.EPERM)},
		// Signals may go to goprof itself. Signal 0 only asks whether a thread exists.
		{unix.SYS_TGKILL, []test{{arg: 0, value: own}, {arg: 2, value: 0}}, uint32(unix.EPERM)},
		{unix.SYS_KILL, []test{{arg: 0, value: own}, {arg: 1, value: 0}}, uint32(unix.EPERM)},
		// Threads are allowed, processes are not. The arguments of clone3 are in memory, where no filter sees them. If
		// clone3 seems not to exist, programs use clone.
		{unix.SYS_CLONE, []test{{arg: 0, value: unix.CLONE_THREAD, bits: true}}, uint32(unix.EPERM)},
		{unix.SYS_CLONE3, nil, uint32(unix.ENOSYS)},
		// goprof's BPF programs copy frames of virtual threads for perf_event (sampler/perf/copy.go), choose whose
		// samples are taken (sampler/perf/chooser.go), and run at probes, at system calls and at wake-ups
		// (sampler/events, sampler/offcpu/wakeups.go). One runs on goprof's own thread (sampler/span/pointer.go). The
		// kernel checks each program. Without CAP_SYS_ADMIN no program can write into a process (bpf_probe_write_user
		// needs that). ToProbe keeps CAP_SYS_ADMIN, so there a program could: no filter sees what a program calls. A map
		// is memory of goprof's.
		{unix.SYS_BPF, []test{{arg: 0, value: unix.BPF_MAP_CREATE}, {arg: 0, value: unix.BPF_PROG_LOAD},
			{arg: 0, value: unix.BPF_MAP_LOOKUP_ELEM}, {arg: 0, value: unix.BPF_MAP_GET_NEXT_KEY},
			{arg: 0, value: unix.BPF_MAP_UPDATE_ELEM}, {arg: 0, value: unix.BPF_MAP_DELETE_ELEM},
			{arg: 0, value: unix.BPF_MAP_LOOKUP_AND_DELETE_ELEM}, {arg: 0, value: unix.BPF_RAW_TRACEPOINT_OPEN},
			{arg: 0, value: unix.BPF_PROG_TEST_RUN}},
			uint32(unix.EPERM)},
		{unix.SYS_PRLIMIT64, []test{{arg: 0, value: 0}, {arg: 0, value: own}}, uint32(unix.EPERM)},
	}
}

// Offsets in struct seccomp_data (include/uapi/linux/seccomp.h).
const (
	atCall = 0
	atArch = 4
	atArgs = 16
)

// x32 marks the calls of x86-64's other interface (arch/x86/include/uapi/asm/unistd.h, __X32_SYSCALL_BIT).
const x32 = 0x4000_0000

// auditArch has the kernel's numbers of the CPUs that goprof is built for.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// program returns the filter in the kernel's classic BPF, which only jumps forward. If to.sends is set, goprof may
// connect to other machines, but cannot listen. If to.looks is not set, goprof cannot look at a process.
func program(pid int, to purpose) []unix.SockFilter {
	allowed, refused := rules(pid), slices.Concat(never, oldForks)
	if to.sends {
		allowed = append(allowed, ipOnly)
	} else {
		refused = append(refused, network...)
	}
	if !to.looks {
		refused = append(refused, looking...)
		allowed = slices.DeleteFunc(allowed, func(r rule) bool { return slices.Contains(looking, r.call) })
	}
	refuse := ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	p := []unix.SockFilter{
		load(atArch), unlessEqual(auditArch[runtime.GOARCH], 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, refuse,
		load(atCall), {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: x32}, refuse,
	}
	for _, r := range allowed {
		// Skip the rule for another call.
		p = append(p, unlessEqual(r.call, uint8(3*len(r.only)+1)))
		for _, t := range r.only {
			match := uint16(unix.BPF_JEQ)
			if t.bits {
				match = unix.BPF_JSET
			}
			// The low half of the argument, because the kernel takes these arguments as int.
			p = append(p, load(atArgs+8*uint32(t.arg)), unix.SockFilter{Code: unix.BPF_JMP | match | unix.BPF_K,
				Jf: 1, K: t.value}, ret(unix.SECCOMP_RET_ALLOW))
		}
		p = append(p, ret(unix.SECCOMP_RET_ERRNO|r.orElse))
	}
	for _, call := range refused {
		p = append(p, unlessEqual(call, 1), refuse)
	}
	return append(p, ret(unix.SECCOMP_RET_ALLOW))
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func unlessEqual(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
}

func ret(what uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
}

// install puts the filter on all OS threads, and reports whether that worked. Without SPEC_ALLOW, kernels before 5.16
// would switch off a CPU's speculation for processes with a filter, which costs more than the filter.
func install(filter []unix.SockFilter) bool {
	if auditArch[runtime.GOARCH] == 0 {
		return false
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	different, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	return e == 0 && different == 0
}
