package postmortem

import "fmt"

// The numbers of signals on Linux, which are the same on both CPUs (include/uapi/asm-generic/signal.h). Package syscall
// has those of the system that goprof runs on.
const (
	sigTrap  = 5
	sigAbort = 6
)

var signalNames = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", sigTrap: "SIGTRAP", sigAbort: "SIGABRT", 7: "SIGBUS",
	8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM",
	15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}

// deadly are the signals for which the kernel writes a core file (signal(7)).
var deadly = map[int]bool{3: true, 4: true, sigTrap: true, sigAbort: true, 7: true, 8: true, 11: true, 24: true,
	25: true, 31: true}

// faults are the signals that come with an address.
var faults = map[int]bool{4: true, sigTrap: true, 7: true, 8: true, 11: true}

func signalName(n int) string {
	if name := signalNames[n]; name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

// reasons are the meanings of si_code (include/uapi/asm-generic/siginfo.h).
var reasons = map[[2]int]string{
	{11, 1}: "SEGV_MAPERR: nothing is mapped there", {11, 2}: "SEGV_ACCERR: it may not be accessed so",
	{11, 3}: "SEGV_BNDERR", {11, 4}: "SEGV_PKUERR: a protection key", {11, 128}: "no canonical address",
	{7, 1}: "BUS_ADRALN: it is not aligned", {7, 2}: "BUS_ADRERR: the file that is mapped there is shorter by now",
	{7, 3}: "BUS_OBJERR", {7, 4}: "BUS_MCEERR_AR: the machine's memory is damaged",
	{4, 1}: "ILL_ILLOPC: no such instruction", {4, 2}: "ILL_ILLOPN", {8, 1}: "FPE_INTDIV: a division by zero",
	{8, 2}: "FPE_INTOVF", {5, 1}: "TRAP_BRKPT: a breakpoint",
}

// The descriptions of signals that were sent.
const (
	SentByKill   = "sent by kill"
	SentByTgkill = "sent by tgkill: by abort or raise, or by another process"
	SentByQueue  = "sent by sigqueue"
)

// reasonOfSignal returns why a signal was sent. It is "" if that is not known.
func reasonOfSignal(signal, code int) string {
	switch {
	case code == 0:
		return SentByKill
	case code == -6:
		return SentByTgkill
	case code == -1:
		return SentByQueue
	}
	return reasons[[2]int{signal, code}]
}
