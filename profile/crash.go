package profile

// Causes of a crash of the JVM. Each is a finding, like those of a triage.
const (
	NativeMemory   FindingID = "native-memory"
	CrashOnOOM     FindingID = "crash-on-oom"
	SignalSent     FindingID = "signal-sent"
	StackOverflow  FindingID = "stack-overflow"
	BusError       FindingID = "bus-error"
	CompilerCrash  FindingID = "compiler-crash"
	CompiledCrash  FindingID = "compiled-code-crash"
	CollectorCrash FindingID = "collector-crash"
	UnsafeAccess   FindingID = "unsafe-access"
	NativeCrash    FindingID = "native-crash"
	JVMCrash       FindingID = "jvm-crash"
	ContainerLimit FindingID = "container-limit"
)

// CrashIDs are all causes of crashes.
var CrashIDs = []FindingID{NativeMemory, CrashOnOOM, SignalSent, StackOverflow, BusError, CompilerCrash, UnsafeAccess,
	CollectorCrash, CompiledCrash, NativeCrash, JVMCrash, ContainerLimit}
