//go:build linux

// Package guard gives up the rights that goprof does not need to look at a process. An attacker who then takes goprof
// over (for example by a mistake in how it reads its target) cannot start programs, cannot change the target, and
// cannot load code into the kernel. docs/security.md holds the table.
//
// It takes a list of capabilities to keep, and returns an account of what was given up. If the kernel lacks something,
// or goprof was built with cgo, Enter still does the rest. The guard only limits the damage of a mistake elsewhere, so
// no recording fails because of it. It is not for programs that start others: a child would inherit all of it.
package guard

import (
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Given is what was given up.
type Given struct {
	// NoNewPrivileges: no program that this process executes gets more rights than it has.
	NoNewPrivileges bool
	// Filter: the kernel refuses the system calls that the table in filter.go names.
	Filter bool
	// Capabilities that were dropped, by their numbers' bits.
	Capabilities uint64
	// AdminForPerf: CAP_SYS_ADMIN was kept because this kernel refuses perf_event without it.
	AdminForPerf bool
}

// Keep are capabilities, by their numbers.
type Keep []uint

// ToLook are the capabilities that looking at a target needs, from beginning to end: for files of /proc/PID, its memory
// and its mapped files.
var ToLook = Keep{unix.CAP_SYS_PTRACE, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_DAC_READ_SEARCH}

// ToDump also stops threads: it keeps real-time priority, so that the stop is short.
var ToDump = append(ToLook[:len(ToLook):len(ToLook)], unix.CAP_SYS_NICE)

// ToDumpAndWrite also writes a file into a folder that was found to be writable before: dump --redact-map.
var ToDumpAndWrite = append(ToDump[:len(ToDump):len(ToDump)], unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER)

// ToWatch also reads the kernel's notes of which thread was on a CPU.
var ToWatch = append(ToDump[:len(ToDump):len(ToDump)], unix.CAP_PERFMON)

// ForPerf is needed for rings of perf events, which are locked memory, and ForProbes to set probes. ForFolders is
// needed to write into another user's folder, and over a file there, which were found to be writable before.
var (
	ForPerf    = Keep{unix.CAP_BPF, unix.CAP_IPC_LOCK}
	ForProbes  = Keep{unix.CAP_SYS_ADMIN}
	ForFolders = Keep{unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER}
)

// ToRecord also opens perf events of new threads, and writes the result.
var ToRecord = slices.Concat(ToWatch, ForPerf, ForFolders)

// ToRecordKernel also reads the names of the kernel's functions: /proc/kallsyms shows addresses only with CAP_SYSLOG.
var ToRecordKernel = append(ToRecord[:len(ToRecord):len(ToRecord)], unix.CAP_SYSLOG)

// ToProbe also sets probes (sampler/events/probe.go). For probes the kernel demands all of CAP_SYS_ADMIN
// (kernel/events/core.c, perf_uprobe_event_init). The filter forbids everything else that CAP_SYS_ADMIN permits against
// a process, except BPF programs that write (filter.go).
var ToProbe = slices.Concat(ToRecord, ForProbes)

// ToProbeKernel also sets probes, and reads the names of the kernel's functions.
var ToProbeKernel = append(ToProbe[:len(ToProbe):len(ToProbe)], unix.CAP_SYSLOG)

// Enter gives up the capabilities that are not kept, in all OS threads of this process, for good. Go drops the
// capabilities of each thread by a signal, and waits for all threads. So Enter is called before any thread reads a
// process that may hang.
func Enter(keep Keep) (g Given) { return enter(keep, purpose{looks: true}) }

// EnterSending is Enter for a goprof that sends profiles to servers: it may connect to them.
func EnterSending(keep Keep) (g Given) { return enter(keep, purpose{looks: true, sends: true}) }

// purpose is what goprof does besides reading files.
type purpose struct {
	looks bool // at processes
	sends bool // profiles to servers
}

// enter drops capabilities, installs the filter, and returns what was given up.
func enter(keep Keep, to purpose) (g Given) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if to.looks {
		raiseLockedMemory(keep)
		keep, g.AdminForPerf = keep.forPerf()
	}
	g.Capabilities = dropCapabilities(keep, to)
	// The filter brings this to all other threads (kernel/seccomp.c, seccomp_sync_threads). If there is no
	// filter, Go does.
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return g
	}
	g.Filter = install(program(unix.Getpid(), to))
	if !g.Filter {
		_, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
		g.NoNewPrivileges = e == 0
		return g
	}
	g.NoNewPrivileges = true
	return g
}

// keepsAll reports whether all capabilities are kept. Without CAP_SYS_PTRACE the kernel lets goprof look only at a
// process that has no capability which goprof lacks (security/commoncap.c, cap_ptrace_access_check). So each capability
// may be needed for a look. A command that looks at no process drops the capabilities that it does not need.
func keepsAll(have capset, to purpose) bool {
	return to.looks && have.effective&(1<<unix.CAP_SYS_PTRACE) == 0
}

// dropCapabilities reduces the capabilities of all OS threads to those that are kept, and returns those that are gone.
func dropCapabilities(keep Keep, to purpose) (gone uint64) {
	have, err := capabilities()
	if err != nil || keepsAll(have, to) {
		return 0
	}
	mask := keep.mask(have.permitted)
	header, want := capset{have.effective & mask, have.permitted & mask}.words()
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)),
		uintptr(unsafe.Pointer(&want[0])), 0)
	if e != 0 {
		return 0
	}
	return have.permitted &^ mask
}

// capset are the capabilities of an OS thread: those that count, and those that it may take.
type capset struct{ effective, permitted uint64 }

// capabilities are those of this OS thread.
func capabilities() (c capset, err error) {
	header, have := c.words()
	if err := unix.Capget(&header, &have[0]); err != nil {
		return c, err
	}
	return capset{uint64(have[1].Effective)<<32 | uint64(have[0].Effective),
		uint64(have[1].Permitted)<<32 | uint64(have[0].Permitted)}, nil
}

// words are a capset as the kernel wants it.
func (c capset) words() (unix.CapUserHeader, [2]unix.CapUserData) {
	return unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3},
		[2]unix.CapUserData{capabilityWord(c.effective, c.permitted), capabilityWord(c.effective>>32, c.permitted>>32)}
}

// capabilityWord is 32 bits of the sets as capset(2) wants them.
func capabilityWord(effective, permitted uint64) unix.CapUserData {
	return unix.CapUserData{Effective: uint32(effective), Permitted: uint32(permitted)}
}

// mask returns the bits to keep. Newer kernels split CAP_SYS_ADMIN up (CAP_PERFMON in Linux 5.8, CAP_CHECKPOINT_RESTORE
// in 5.9). If goprof lacks a part that is to be kept, it keeps CAP_SYS_ADMIN. Docker gives root of a container
// CAP_DAC_OVERRIDE, but not CAP_DAC_READ_SEARCH (moby, oci/caps, DefaultCapabilities). There only CAP_DAC_OVERRIDE
// opens /proc/PID/syscall of another user's process.
func (k Keep) mask(have uint64) (mask uint64) {
	for _, c := range k {
		mask |= 1 << c
	}
	parts := mask & (1<<unix.CAP_PERFMON | 1<<unix.CAP_CHECKPOINT_RESTORE)
	if have&parts != parts {
		mask |= 1 << unix.CAP_SYS_ADMIN
	}
	if read := mask & (1 << unix.CAP_DAC_READ_SEARCH); have&read != read {
		mask |= 1 << unix.CAP_DAC_OVERRIDE
	}
	return mask
}
