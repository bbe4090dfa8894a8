//go:build linux

// Package guard gives up the rights that goprof does not need to look at a process. An attacker who later takes over
// goprof, for example through a bug in reading the target, cannot start programs, cannot change the target, and cannot
// load code into the kernel. docs/security.md has the table.
//
// Enter takes a list of capabilities to keep, and returns what was given up. If the kernel lacks something, or goprof
// was built with cgo, Enter still does the rest. The guard only limits the damage of a bug elsewhere, so no recording
// fails because of the guard. The guard is not for programs that start others: a child would inherit the restrictions.
package guard

import (
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Given is what Enter has given up.
type Given struct {
	// NoNewPrivileges: no program that this process executes gets more rights than this process.
	NoNewPrivileges bool
	// Filter: the kernel refuses the system calls of the table in filter.go.
	Filter bool
	// Capabilities that were dropped, as bits.
	Capabilities uint64
	// AdminForPerf: CAP_SYS_ADMIN was kept because this kernel refuses perf_event without it.
	AdminForPerf bool
}

// Keep are capabilities, by their numbers.
type Keep []uint

// ToLook are the capabilities for looking at a target: for the files of /proc/PID, its memory and its mapped files.
var ToLook = Keep{unix.CAP_SYS_PTRACE, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_DAC_READ_SEARCH}

// ToDump is ToLook with real-time priority, so that the stops of a dump are short.
var ToDump = append(ToLook[:len(ToLook):len(ToLook)], unix.CAP_SYS_NICE)

// ToDumpAndWrite is ToDump for dump --redact-map, which also writes into a folder that was found to be writable before.
var ToDumpAndWrite = append(ToDump[:len(ToDump):len(ToDump)], unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER)

// ToWatch is ToDump with the kernel's notes of which thread was on a CPU.
var ToWatch = append(ToDump[:len(ToDump):len(ToDump)], unix.CAP_PERFMON)

// ForPerf is for BPF programs and for rings of perf events, which are locked memory. ForProbes is for setting probes.
// ForFolders is for writing into another user's folder, and over a file there, that were found to be writable before.
var (
	ForPerf    = Keep{unix.CAP_BPF, unix.CAP_IPC_LOCK}
	ForProbes  = Keep{unix.CAP_SYS_ADMIN}
	ForFolders = Keep{unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER}
)

// ToRecord is ToWatch with perf events of new threads, and with writing the result.
var ToRecord = slices.Concat(ToWatch, ForPerf, ForFolders)

// ToRecordKernel is ToRecord with the names of the kernel's functions: /proc/kallsyms shows addresses only with
// CAP_SYSLOG.
var ToRecordKernel = append(ToRecord[:len(ToRecord):len(ToRecord)], unix.CAP_SYSLOG)

// ToProbe is ToRecord with probes (sampler/events/probe.go). For probes the kernel demands all of CAP_SYS_ADMIN
// (kernel/events/core.c, perf_uprobe_event_init). The filter forbids everything else that CAP_SYS_ADMIN permits against
// a process, except BPF programs that write (filter.go).
var ToProbe = slices.Concat(ToRecord, ForProbes)

// ToProbeKernel is ToProbe with the names of the kernel's functions.
var ToProbeKernel = append(ToProbe[:len(ToProbe):len(ToProbe)], unix.CAP_SYSLOG)

// Enter gives up the capabilities that are not kept, in all OS threads of this process, for good. To drop capabilities,
// Go sends each thread a signal and waits for all threads. So call Enter before any thread reads from a process,
// because such a read may hang.
func Enter(keep Keep) (g Given) { return enter(keep, purpose{looks: true}) }

// EnterSending is Enter for a goprof that may connect to servers, to send profiles.
func EnterSending(keep Keep) (g Given) { return enter(keep, purpose{looks: true, sends: true}) }

// purpose is what goprof does besides reading files.
type purpose struct {
	looks bool // goprof looks at processes
	sends bool // goprof sends profiles to servers
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
	// The filter sets this on all other threads (kernel/seccomp.c, seccomp_sync_threads). Without a filter, Go does.
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

// keepsAll reports whether all capabilities are kept. Without CAP_SYS_PTRACE, goprof may look only at processes whose
// capabilities it all has (security/commoncap.c, cap_ptrace_access_check). So each capability may be needed for a look.
// A command that looks at no process drops the capabilities that it does not need.
func keepsAll(have capset, to purpose) bool {
	return to.looks && have.effective&(1<<unix.CAP_SYS_PTRACE) == 0
}

// dropCapabilities reduces the capabilities of all OS threads to those to keep, and returns the dropped ones.
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

// capset are the capabilities of an OS thread: those in effect, and those that it may take.
type capset struct{ effective, permitted uint64 }

func capabilities() (c capset, err error) {
	header, have := c.words()
	if err := unix.Capget(&header, &have[0]); err != nil {
		return c, err
	}
	return capset{uint64(have[1].Effective)<<32 | uint64(have[0].Effective),
		uint64(have[1].Permitted)<<32 | uint64(have[0].Permitted)}, nil
}

// words returns a capset in the form that capset(2) takes.
func (c capset) words() (unix.CapUserHeader, [2]unix.CapUserData) {
	return unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3},
		[2]unix.CapUserData{capabilityWord(c.effective, c.permitted), capabilityWord(c.effective>>32, c.permitted>>32)}
}

// capabilityWord returns 32 bits of the sets in that form.
func capabilityWord(effective, permitted uint64) unix.CapUserData {
	return unix.CapUserData{Effective: uint32(effective), Permitted: uint32(permitted)}
}

// mask returns the bits to keep. Newer kernels have parts of CAP_SYS_ADMIN as capabilities (CAP_PERFMON in Linux 5.8,
// CAP_CHECKPOINT_RESTORE in 5.9). If goprof lacks such a part, it keeps CAP_SYS_ADMIN. Docker gives root in a container
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
