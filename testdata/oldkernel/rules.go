//go:build linux

package oldkernel

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// What kernels refuse, errno by call. Each rule was seen on such a kernel (make test-kernels), or is told by the source
// that it names.

// Debian's perf_event_open wants CAP_SYS_ADMIN (sampler/guard/trial.go). As there, flags that do not exist are refused
// first.
var Debian = Rule{unix.SYS_PERF_EVENT_OPEN, func(c *call) unix.Errno {
	if s := status(c.tid); c.args[4] < 1<<4 && !s.Can(unix.CAP_SYS_ADMIN) {
		return unix.EACCES
	}
	return 0
}}

// CountedBPF counts BPF maps and programs as locked memory. The default limit of 64 KB is too little for any of
// goprof's programs with its map.
var CountedBPF = Rule{unix.SYS_BPF, func(c *call) unix.Errno {
	var limit unix.Rlimit
	if c.args[0] != unix.BPF_MAP_CREATE && c.args[0] != unix.BPF_PROG_LOAD || c.args[2] > 1<<12 ||
		unix.Prlimit(int(status(c.tid).TGID), unix.RLIMIT_MEMLOCK, nil, &limit) != nil || limit.Cur > 64<<10 {
		return 0
	}
	return unix.EPERM
}}

// Before517 has no bpf_loop (Linux 5.17, kernel/bpf/verifier.c, check_helper_call: "invalid func").
var Before517 = []Rule{{unix.SYS_BPF, func(c *call) unix.Errno { return c.refuseHelper(181) }}}

// Before511 counts BPF programs as locked memory (kernel/bpf/syscall.c, bpf_charge_memlock).
var Before511 = append([]Rule{CountedBPF}, Before517...)

// Before55 is Linux 5.4: no openat2 (fs/open.c, Linux 5.6), no faccessat2 (5.8), no maps that can be mapped
// (kernel/bpf/arraymap.c, array_map_alloc_check, 5.5), and no bpf_probe_read_user (kernel/trace/bpf_trace.c, 5.5).
var Before55 = append([]Rule{absent(unix.SYS_OPENAT2), absent(unix.SYS_FACCESSAT2),
	{unix.SYS_BPF, func(c *call) unix.Errno {
		const mmapable = 1 << 10 // BPF_F_MMAPABLE of map_flags, the fifth number of union bpf_attr
		if attr := c.bytes(c.args[1], 20); c.args[0] == unix.BPF_MAP_CREATE && len(attr) == 20 &&
			binary.NativeEndian.Uint32(attr[16:])&mmapable != 0 {
			return unix.EINVAL
		}
		return c.refuseHelper(112)
	}}}, Before511...)

// Before417 is Linux 4.14: no pidfd_open (kernel/pid.c, 5.3), and no uprobes that perf_event_open sets
// (kernel/events/core.c, perf_uprobe_event_init, 4.17).
var Before417 = append([]Rule{absent(unix.SYS_PIDFD_OPEN), {unix.SYS_OPENAT, func(c *call) unix.Errno {
	const source = "/sys/bus/event_source/devices/uprobe/type\x00"
	if bytes.Equal(c.bytes(c.args[1], len(source)), []byte(source)) {
		return unix.ENOENT
	}
	return 0
}}}, Before55...)

// Refuses is a filter that answers a call so, whoever asks.
func Refuses(number uint32, e unix.Errno) Rule {
	return Rule{number, func(*call) unix.Errno { return e }}
}

// absent is a kernel that does not have a call.
func absent(number uint32) Rule { return Refuses(number, unix.ENOSYS) }

// refuseHelper refuses BPF programs that call a helper which the kernel does not have.
func (c *call) refuseHelper(helper int32) unix.Errno {
	const size, call = 8, 0x85 // struct bpf_insn; BPF_JMP | BPF_CALL
	attr := c.bytes(c.args[1], 16)
	if c.args[0] != unix.BPF_PROG_LOAD || len(attr) < 16 {
		return 0
	}
	code := c.bytes(binary.NativeEndian.Uint64(attr[8:]), size*min(int(binary.NativeEndian.Uint32(attr[4:])), 1<<16))
	for ; len(code) >= size; code = code[size:] {
		if code[0] == call && int32(binary.NativeEndian.Uint32(code[4:])) == helper {
			return unix.EINVAL
		}
	}
	return 0
}
