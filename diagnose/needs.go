//go:build linux

package diagnose

import (
	"fmt"
)

// need is something that goprof needs from the machine. Three things are made from needs: doctor's checks of the
// machine, the kernel versions in error messages, and the table in docs/evidence/support.md.
type need struct {
	name  string // of the check. Names are in the JSON output, so they do not change
	wants string // rights, settings and options of the kernel
	since string // the first Linux that has it; empty: all kernels that goprof supports have it
	tried string // how goprof tests it
	lost  string // what is lost without it
}

// checked is a need with its check on this machine. Without a check, goprof tries the need only where it uses it:
// either only speed is lost without it, or another check covers it.
type checked struct {
	check func(h Host, r *Report, n *need, pid int)
	how   kind
	*need
}

type kind bool

const (
	reads kind = false // reads only files, which a faked host has, too
	tries kind = true  // makes system calls. For a process of another CPU they would give wrong answers
)

// The needs that errors mention, too.
var (
	needProbes = need{name: "probes", since: "4.17",
		wants: "CONFIG_UPROBE_EVENTS, CAP_SYS_ADMIN",
		tried: "a probe in a file without a name is asked for, and the BPF program that would run there is loaded",
		lost:  "--event alloc, exceptions, library:function ..."}
	needSwitches = need{name: "context switches", since: "4.17", wants: "perf events that see the kernel",
		tried: "as perf, and by the kernel's version",
		lost:  "exact waits: --event off-cpu and lock look at threads 20 times a second instead"}
	needBPF = need{name: "BPF programs", since: "5.5",
		wants: "bpf_probe_read_user, and maps that can be mapped; CAP_BPF and CAP_PERFMON, before 5.8 CAP_SYS_ADMIN",
		tried: "programs are loaded (probes; each recording of virtual threads by perf)",
		lost:  "probes; with perf, frames of virtual threads in the heap that were not read in time"}
	// kernel/bpf/memalloc.c and syscall.c: since then the memory controller counts BPF memory.
	needBPFMemory = need{name: "BPF memory", since: "5.11",
		wants: "before that, locked memory: CAP_SYS_RESOURCE or a higher RLIMIT_MEMLOCK",
		tried: "the limit is raised, and a program is loaded (probes, perf on CPUs)",
		lost:  "what needs BPF programs"}
)

// needs returns all needs, in the order of doctor's lines.
func needs() []checked {
	return []checked{
		{Host.checkCPU, reads, &need{name: "cpu", wants: "x86-64 or aarch64", tried: "goprof was built for it",
			lost: "everything"}},
		{Host.checkKernel, reads, &need{name: "kernel", wants: "Linux; 5.10 to 7.2 were tried",
			tried: "`/proc/sys/kernel/osrelease`",
			lost:  "what the rows below say of their own kernels"}},
		{Host.checkCapabilities, reads, &need{name: "capabilities", wants: "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
			tried: "`/proc/self/status`", lost: "processes of other users; without the second one --mode wall, off-cpu and " +
				"dump --nonblocking of those"}},
		{Host.checkYama, reads, &need{name: "yama", wants: "kernel.yama.ptrace_scope 0, or CAP_SYS_PTRACE and not 3",
			tried: "`/proc/sys/kernel/yama`", lost: "everything"}},
		{Host.checkSeccomp, reads, &need{name: "seccomp",
			wants: "no filter on goprof that forbids ptrace or process_vm_readv",
			since: "3.4", tried: "goprof asks about a tracee that does not exist, and reads a byte of its own memory",
			lost: "everything; without ptrace alone, stacks of dumps, and recordings where perf does not work"}},
		{Host.checkModules, reads, &need{name: "security module", wants: "no AppArmor profile on goprof that forbids ptrace",
			tried: "`/proc/self/attr/current`; the profile's rules cannot be read", lost: "perhaps everything"}},
		{Host.checkNamespaces, reads, &need{name: "namespaces", wants: "the host's namespaces of pids and users",
			tried: "`/proc/self/ns`", lost: "processes outside of goprof's container; perf on CPUs"}},
		{Host.checkMapFiles, reads, &need{name: "map_files", since: "5.9",
			wants: "CAP_CHECKPOINT_RESTORE on the host; before 5.9 CAP_SYS_ADMIN",
			tried: "goprof opens a file that it has mapped itself",
			lost:  "of a library that was replaced on disk since the JVM started, only exported functions have names"}},
		{Host.checkFiles, reads, &need{name: "open files",
			wants: fmt.Sprintf("a hard limit of %d or more (ulimit -Hn)", fewFiles),
			tried: "getrlimit", lost: "speed with many threads"}},
		{Host.checkRealTime, tries, &need{name: "real-time",
			wants: "CAP_SYS_NICE or RLIMIT_RTPRIO; in cgroups of version 1 cpu.rt_runtime_us above 0",
			tried: "an OS thread takes the priority and gives it back",
			lost: "short stops beside other threads that want the CPUs: looks are left out where a stop could last, and " +
				"--engine auto takes perf there"}},
		{Host.checkCPULimit, tries, &need{name: "cpu limit",
			wants: "no cpu.max (cpu.cfs_quota_us) on goprof's own control group",
			tried: "the files of that group and those above it",
			lost:  "looks, once the limit is used up: goprof stands still then, and begins no stop that it could not end"}},
		{Host.checkSchedstat, tries, &need{name: "schedstat", wants: "CONFIG_SCHED_INFO",
			tried: "`/proc/self/schedstat`",
			lost: "times in ns: threads are charged by the clock's ticks, and waits for a CPU " +
				"are not known"}},
		{Host.checkPressure, tries, &need{name: "pressure", since: "4.20",
			wants: "CONFIG_PSI; psi=1 on the kernel's command line where that is off by default (RHEL)",
			tried: "`/proc/pressure/cpu`", lost: "what triage says of waits for CPU, memory and disks"}},
		{Host.checkPerf, tries, &need{name: "perf",
			wants: "CAP_PERFMON and CAP_BPF, and the host's namespace of pids; CAP_SYS_ADMIN on kernels of Debian and Ubuntu " +
				"while kernel.perf_event_paranoid is above 2",
			tried: "an event of a CPU that never begins is opened, with the rights that a recording keeps, and the program " +
				"that chooses its samples is loaded",
			lost: "--engine perf, agent --whole-host, and --kernel for CPU time"}},
		{Host.checkWide, tries, &need{name: "perf on CPUs", wants: "the same",
			tried: "as `record --engine auto` chooses",
			lost:  "nothing but the cost of stops: --engine auto stops threads by ptrace"}},
		{Host.checkSwitches, tries, &needSwitches},
		{Host.checkRings, tries, &need{name: "locked memory",
			wants: "CAP_IPC_LOCK, or as much as kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK permit a user",
			tried: "a ring of perf events is mapped, and unmapped",
			lost:  "room for samples: with smaller rings fewer samples are taken, which counts for the others"}},
		{nil, reads, &needBPF},
		{nil, reads, &needBPFMemory},
		{nil, reads, &need{name: "BPF loops", since: "5.17", wants: "bpf_loop, and CAP_BPF",
			tried: "each recording by perf loads the program",
			lost:  "goprof's own CPU time: samples are looked at outside of the kernel"}},
		{Host.checkProbes, tries, &needProbes},
		{Host.checkTracepoints, tries, &need{name: "tracepoints",
			wants: "tracefs, mounted and readable; no lockdown for confidentiality",
			tried: "`/sys/kernel/tracing/events`", lost: "--event group:tracepoint"}},
		{Host.checkCounters, tries, &need{name: "counters",
			wants: "a CPU with counters that the kernel may use; virtual machines mostly have none",
			tried: "a counter of cycles is opened on goprof itself", lost: "--event cycles, cache-misses ..."}},
		{Host.checkKernelNames, tries, &need{name: "kernel names",
			wants: "CAP_SYSLOG and kernel.kptr_restrict below 2, or 0",
			tried: "`/proc/kallsyms`", lost: "names of the kernel's functions with --kernel"}},
		{nil, reads, &need{name: "openat2", since: "5.6", wants: "a seccomp filter, if any, that permits it",
			tried: "at each open",
			lost:  "speed: goprof follows the target's paths name by name"}},
		{nil, reads, &need{name: "pidfd", since: "5.3", wants: "a seccomp filter, if any, that permits it",
			tried: "at each process",
			lost:  "early notice of a process's end: goprof looks at its files in /proc instead"}},
		{nil, reads, &need{name: "short slices", since: "6.12", wants: "the scheduler EEVDF",
			tried: "each sampling thread asks for them",
			lost:  "an earlier turn on the CPU where goprof has no real-time priority"}},
	}
}

// missing says which kernels have the feature that this kernel lacks.
func (n *need) missing(what string) string {
	return fmt.Sprintf("this kernel has no %s (Linux %s on, %s)", what, n.since, n.wants)
}

// none reports whether a kernel is too old for the need.
func (n *need) none(release string) bool { return older(release, n.since) }
