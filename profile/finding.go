package profile

// FindingID is a problem of a JVM. The names never change, because scripts rely on them.
type FindingID string

const (
	CPUHot          FindingID = "cpu-hot"
	GCBusy          FindingID = "gc-busy"
	HeapFull        FindingID = "heap-full"
	Deadlocked      FindingID = "deadlock"
	LockContention  FindingID = "lock-contention"
	WaitingRemote   FindingID = "waiting-remote"
	CPUThrottled    FindingID = "cpu-throttled"
	CPUShort        FindingID = "cpu-short"
	Swapping        FindingID = "swapping"
	CodeCacheFull   FindingID = "code-cache-full"
	SafepointStall  FindingID = "safepoint-stall"
	Exceptions      FindingID = "exceptions"
	ClassLoading    FindingID = "class-loading"
	ThreadLeak      FindingID = "thread-leak"
	FDLimit         FindingID = "fd-limit"
	FinalizerBehind FindingID = "finalizer-behind"
	Pinned          FindingID = "pinned"
	PoolStuck       FindingID = "pool-stuck"
	NativeGrowth    FindingID = "native-growth"
	DirectFull      FindingID = "direct-memory"
	MallocKept      FindingID = "malloc-kept"
	MemoryLimit     FindingID = "memory-limit"
	CompilerBehind  FindingID = "compiler-behind"
	StandsStill     FindingID = "stopped"
)

// FindingIDs are all findings. Among equally likely findings, the earlier one comes first, because it is more often the
// cause of the later one.
var FindingIDs = []FindingID{Deadlocked, StandsStill, SafepointStall, HeapFull, MemoryLimit, CPUThrottled, Swapping,
	FDLimit, CodeCacheFull, DirectFull, LockContention, WaitingRemote, PoolStuck, Pinned, FinalizerBehind, NativeGrowth,
	ThreadLeak, ClassLoading, MallocKept, CompilerBehind, Exceptions, GCBusy, CPUHot, CPUShort}

// Severity is how bad a finding is for the program.
type Severity string

const (
	Critical Severity = "critical" // the program, or a part of it, does not continue
	Warning  Severity = "warning"  // the program continues, but slower than it could, or not for long
	Notice   Severity = "notice"   // worth knowing; possibly as intended
)

// Finding is one problem of a JVM.
type Finding struct {
	ID       FindingID `json:"id"`
	Severity Severity  `json:"severity"`
	Claim    string    `json:"claim"`    // one sentence with its figures
	Evidence []string  `json:"evidence"` // observations, possibly with text of the target
	Next     string    `json:"next"`     // a command
}

// Triage is the result of a look at a JVM.
type Triage struct {
	// Findings are sorted by likelihood.
	Findings []Finding `json:"findings"`
	// Notes are what a reader must know about the look itself.
	Notes []string `json:"notes"`
	// Unknown are the facts that could not be read.
	Unknown []Unknown `json:"unknown"`
}

// Unknown is a finding that could be neither found nor ruled out, because facts could not be read.
type Unknown struct {
	ID  FindingID `json:"id"`
	Why string    `json:"why"`
}
