package ptrace

// Outcome is the result of one look at a thread.
type Outcome uint8

const (
	// Taken: the snapshot is whole.
	Taken Outcome = iota
	// Pending is not final: the thread was told to stop and has not stopped yet. The Tracer keeps the snapshot. Collect
	// gives it back with another Outcome.
	Pending
	// ThreadGone: the thread has ended.
	ThreadGone
	// ProcessGone: the process has ended.
	ProcessGone
	// Zombie: the leader has ended and other threads live on. A zombie has no stack.
	Zombie
	// NotPermitted: the kernel does not let goprof trace this process.
	NotPermitted
	// AlreadyTraced: another process traces the thread.
	AlreadyTraced
	// TimedOut: a thread that was told to stop has not stopped by the end.
	TimedOut
	// Missed: the thread stopped late and was released without a look. Either Go kept this OS thread waiting
	// (releaser.go), or a read of another thread's memory was late.
	Missed
	// Silent: the thread's memory did not answer in time, so goprof released the thread, or left it alone
	// (Tracer.Silent).
	Silent
	// ReadLate: as Silent, but the read was late because there was no CPU (silent.go).
	ReadLate
	// Backlog: no stop was asked for, because too many are pending.
	Backlog
	// Unadmitted: the stop was not begun, because it might not have ended in time (admit.go).
	Unadmitted
	// Running: an unstopped look found the thread on a CPU.
	Running
	// Moved: an unstopped look was void at each try, because the thread ran meanwhile.
	Moved
	// QueueFull: there was no free snapshot, because the walker is behind. The thread was not stopped.
	QueueFull
	// RingFull: the kernel had no room for a sample (Perf).
	RingFull
	// Throttled: the kernel found that samples came too often, and took none for a while (Perf).
	Throttled
	// NoRegisters: the kernel could not report the thread's registers (Perf).
	NoRegisters
	// WrongThread: a Tracer was called from another OS thread than before.
	WrongThread
	// Failed: a system call failed in a way that has no name here (Tracer.Err).
	Failed

	NumOutcomes = int(iota)
)

var outcomeNames = [NumOutcomes]string{
	Taken:         "taken",
	Pending:       "pending",
	ThreadGone:    "thread gone",
	ProcessGone:   "process gone",
	Zombie:        "zombie",
	NotPermitted:  "not permitted",
	AlreadyTraced: "already traced",
	TimedOut:      "timed out",
	Missed:        "let go before the look",
	Silent:        "memory does not answer",
	ReadLate:      "memory read too late",
	Backlog:       "too many stops pending",
	Unadmitted:    "no CPU to end the stop",
	Running:       "running",
	Moved:         "moved",
	QueueFull:     "queue full",
	RingFull:      "ring full",
	Throttled:     "throttled",
	NoRegisters:   "no registers",
	WrongThread:   "wrong OS thread",
	Failed:        "failed",
}

func (o Outcome) String() string {
	if int(o) < NumOutcomes {
		return outcomeNames[o]
	}
	return "unknown outcome"
}
