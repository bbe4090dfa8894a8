package exit

import (
	"fmt"
	"strings"
)

// Meaning is the meaning of an exit code, with the situations that cause it.
type Meaning struct {
	Code    Code
	Meaning string
	Causes  []Cause
}

// Cause is a situation that ends with a code.
type Cause struct {
	// Names are the names of the cause in "goprof list --json" and "goprof doctor --json" (diagnose.Cause.Name).
	Names  []string
	When   string
	Remedy string // what usually helps
}

// Codes is the documented table. Help, the manual page and tests are made from it.
var Codes = []Meaning{
	{OK, "done; a recording that ended because its target did, too", []Cause{
		{[]string{"library-replaced", "library-deleted", "library-unreadable"}, "some native functions have no names, and a note says so: the file of a library is gone since it was loaded", "sudo goprof ..."},
	}},
	{General, "any other error, wrong usage among them", []Cause{
		{nil, "a flag, an argument or a command that does not exist", "COMMAND --help"},
		{nil, "several JVMs have the name, or the number in a container, that was given", "--pid with one of those listed"},
		{nil, "the program after -- cannot be started", "its path"},
		{nil, "top without a terminal", "goprof top PID --once"},
		{[]string{"no-virtual"}, "dump --virtual of a JVM that has no virtual threads", "goprof dump --pid PID"},
		{[]string{"fd-limit"}, "goprof may not open more files", "sudo prlimit --pid $$ --nofile=65536"},
		{[]string{"tables-full"}, "an agent reads so many JVMs that there is no room for another one's symbols", "goprof agent --max-jvms 100"},
		{[]string{"starved"}, "the machine is short of CPU: goprof got none in time", "once more, later"},
		{[]string{"no-perf", "no-bpf", "perf-failed", "perf-rings", "time-namespace"}, "--engine perf or --event, and the kernel's perf_event or BPF cannot do that, or the rings would need more memory than goprof takes", "--engine ptrace"},
		{[]string{"hangs"}, "the process hangs in the kernel and cannot be read", "cat /proc/PID/stack"},
		{[]string{"unknown"}, "any other cause", "goprof doctor --pid PID"},
	}},
	{NoSuchProcess, "no such process, or no JVM of that name", []Cause{
		{[]string{"no-process"}, "it has ended, or runs outside goprof's container", "goprof list"},
		{nil, "no JVM has that in its main class or jar", "goprof list --args"},
		{[]string{"thread-id"}, "it is the number of a thread", "the process's number, which the message has"},
		{[]string{"inner-pid"}, "it is a number inside a container", "the host's number, which the message has"},
	}},
	{NotJVM, "the process is not a HotSpot JVM, or not one that can be read", []Cause{
		{[]string{"not-java"}, "another program: a start script, a wrapper", "goprof list"},
		{[]string{"starting"}, "its JVM is still starting", "once more, or goprof record --wait NAME"},
		{[]string{"openj9", "zero", "native-image"}, "Eclipse OpenJ9, HotSpot's Zero VM, a GraalVM native image", "another profiler"},
		{[]string{"no-symbols", "unsupported", "bad-tables"}, "its libjvm.so does not export what goprof needs", "goprof doctor --pid PID"},
		{[]string{"other-cpu"}, "neither x86-64 nor aarch64, or 32 bits", ""},
		{[]string{"kernel-thread"}, "it is a thread of the kernel", "goprof list"},
	}},
	{NotPermitted, "something does not let us look at the process", []Cause{
		{[]string{"other-user", "other-group", "more-capabilities", "not-dumpable"}, "another user's, or one with more rights", "sudo goprof ..."},
		{[]string{"owner-only"}, "CAP_SYS_PTRACE without CAP_DAC_READ_SEARCH, with --mode wall or off-cpu", "sudo goprof ..."},
		{[]string{"no-capability"}, "root without CAP_SYS_PTRACE, as in a container", "docker run --cap-add SYS_PTRACE"},
		{[]string{"yama"}, "kernel.yama.ptrace_scope is not 0", "sudo goprof ..."},
		{[]string{"seccomp"}, "a seccomp filter on goprof", "docker run --security-opt seccomp=unconfined"},
		{[]string{"user-namespace"}, "a container with users of its own", "sudo goprof ... on the host"},
		{[]string{"security-module"}, "SELinux, AppArmor", "sudo dmesg | grep -iE 'apparmor|avc'"},
		{[]string{"no-proc", "other-proc"}, "/proc is missing, or another pid namespace's", "mount -t proc proc /proc"},
		{[]string{"hidden"}, "another user's, and /proc is mounted with hidepid", "sudo goprof ..."},
		{[]string{"not-permitted"}, "anything else that the kernel forbids", "goprof doctor --pid PID"},
		{[]string{"perf-paranoid", "perf-memory"}, "--engine perf without CAP_PERFMON, on Debian's kernels CAP_SYS_ADMIN: kernel.perf_event_paranoid, the limit of locked memory", "sudo sysctl kernel.perf_event_paranoid=2, or what is told"},
		{[]string{"kernel-names"}, "--wakers, and /proc/kallsyms has no addresses",
			"kernel.kptr_restrict at 0 or 1, and CAP_SYSLOG"},
		{[]string{"perf-nested"}, "--engine perf in a PID namespace", "--engine ptrace"},
		{[]string{"perf-seccomp", "perf-module", "perf-refused"}, "--engine perf under a seccomp filter, SELinux, AppArmor, or for no known reason", "--engine ptrace"},
		{[]string{"probe-capability", "bpf-capability", "bpf-memory", "bpf-seccomp"}, "probes or BPF programs without CAP_SYS_ADMIN, CAP_BPF, locked memory, or under a filter", "the command in the message"},
		{[]string{"traced"}, "a debugger or strace traces it already", "end that one; the message has its pid"},
	}},
	{TargetGone, "the process ended, or became another program, before there was anything to write", []Cause{
		{[]string{"gone", "zombie"}, "it ended", "goprof list"},
		{[]string{"exec"}, "it became another program", "the same command once more"},
	}},
	{NoSamples, "the recording holds no samples", []Cause{
		{nil, "the process used no CPU time, or less than a sample stands for; the message says which", "goprof dump --pid PID shows what its threads wait for"},
		{nil, "the JVM is stopped", "kill -CONT PID"},
		{nil, "the JVM is frozen by its cgroup, as docker pause does it; the message says which", "the command in the message"},
		{nil, "no thread that --thread chooses used CPU time", "goprof dump --pid PID shows the threads' names"},
		{nil, "it was too short for its rate", "-d or --rate"},
		{nil, "filters leave none of a recording that is read; the message says which", "fewer of --from, --to, --thread, --include ..."},
	}},
	{BadInput, "an input file is missing or is not what it should be", []Cause{
		{nil, "a line that is not \"stack count\"; the message says which", "a file of goprof record"},
		{nil, "an empty file, or one that is no text", "a file of goprof record"},
		{nil, "a JFR file or a pprof profile that is damaged, or asks for more than is read; the message says where", "a file that is whole"},
		{nil, "an event, a weight or a filter that needs what the file does not hold", "what it holds; the message lists that"},
	}},
	{OutputFailed, "the result could not be written", []Cause{
		{nil, "a folder that is missing or read-only, a full disk", "-o elsewhere"},
		{nil, "a disk that became full while JFR was recorded: the message says how much is lost, and the file is whole up to there", "-o elsewhere"},
		{nil, "a symbolic link: goprof writes through none", "the name that it leads to"},
		{nil, "another user's file or pipe in a folder that all may write to", "-o in a folder of your own"},
		{nil, "a pipe without a reader", "cat PIPE > FILE &, before"},
	}},
	{Incomplete, "a dump lacks the stacks of some threads, locks what some wait for, or a snap some parts; what there is has been written", []Cause{
		{nil, "they had no CPU to stop on: more threads want one than there are", "goprof dump --wait-stop 1m"},
		{nil, "the kernel holds them up (state D)", "goprof dump --nonblocking"},
		{nil, "goprof snap could not have a part, or was interrupted; the last lines name it", "the command in README.txt of the file"},
		{nil, "goprof locks found no deadlock, and threads that seem to wait for a lock ran meanwhile, or a collector was at work", "goprof locks PID, once more"},
	}},
	{Changed, "goprof diff --exit-code: a change is significant; what there is to write has been written", []Cause{
		{nil, "something takes another share than before, and noise alone would not do that", "goprof diff BEFORE AFTER -o diff.html"},
	}},
	{Deadlocked, "goprof locks: threads of the JVM are deadlocked; what there is to write has been written", []Cause{
		{nil, "each of some threads waits for a lock that the next one holds, and the last one for one of the first's", ""},
	}},
	{Found, "goprof triage has found something; what there is to say has been written", []Cause{
		{nil, "one finding or more stands on the page", "the command behind \"next:\""},
	}},
	{BadCore, "--core: the file holds no HotSpot JVM that can be read", []Cause{
		{nil, "it is no core file of a 64-bit Linux process on x86-64 or aarch64, or is cut off before its threads", "the whole file"},
		{nil, "it is a core file of another program, or of a JVM that is not HotSpot", ""},
		{nil, "it does not hold libjvm.so, and the file of that build is not where it was", "--root DIR or --debug-dir DIR with the JVM's files"},
		{nil, "that file lies below a folder that only another user may enter", "--debug-dir with that folder: goprof keeps the right to read it then"},
	}},
	{NamesLeft, "goprof redact --verify: a word that must not be there is left; the file has been written", []Cause{
		{nil, "the policy allows the word, or a name that it is part of", "a policy without that line: docs/redaction.md"},
		{nil, "the word is one of goprof's own, or part of a name of the JDK's", "a longer word in WORDLIST"},
	}},
	{NoEvent, "the event that --event names is not available here", []Cause{
		{nil, "goprof may not set probes: no CAP_SYS_ADMIN, a limit, or a seccomp filter; the message says which", "the command in the message"},
		{nil, "the library has no such function, or no symbols that say where it is", "goprof events PID"},
		{nil, "the machine has no such counter: virtual machines mostly have none of the CPU's", "goprof events PID"},
		{nil, "there is no event of that name", "goprof events PID"},
	}},
	{Undelivered, "goprof ship: a server has not taken all of a recording; the message says which, and why", []Cause{
		{nil, "it cannot be reached, or says no: a wrong URL, a token, a certificate", "the same command once more; --spool keeps what is left"},
	}},
}

// Help returns the table as text.
func Help() string {
	var b strings.Builder
	b.WriteString("goprof's exit codes never change their meaning (2 has none):\n\n")
	for _, m := range Codes {
		fmt.Fprintf(&b, "  %-2d %s\n", m.Code, m.Meaning)
		for _, c := range m.Causes {
			fmt.Fprintf(&b, "       - %s\n", c.When)
			if c.Remedy != "" {
				fmt.Fprintf(&b, "           try: %s\n", c.Remedy)
			}
		}
	}
	b.WriteString("\nErrors are written to standard error, as \"goprof: what: why\", and where a command\nmends them or shows more, a line \"try: command\" follows.")
	return b.String()
}
