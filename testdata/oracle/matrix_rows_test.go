//go:build linux

package oracle

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
)

// matrixRow is one way to run a JVM. A JDK whose java refuses or ignores the flags has no such way.
type matrixRow struct {
	name  string
	flags []string
	// ready makes what the row needs besides, and returns the flags that use it, or why this JDK or this machine
	// has no such way.
	ready func(t *testing.T, jdk jvmtest.JDK, flags []string) (more []string, why string)
	// run fills the cell; nil is matrixShadow.
	run func(t *testing.T, jdk jvmtest.JDK, flags []string, stops int) string
}

// matrixHeap makes all collectors work while they are watched.
const matrixHeap = "-Xmx200m"

// matrixRows are the collectors, each with all else at its default, and the modes, one at a time.
var matrixRows = []matrixRow{
	{name: "default", flags: []string{matrixHeap}},
	{name: "Serial", flags: []string{matrixHeap, "-XX:+UseSerialGC"}},
	{name: "Parallel", flags: []string{matrixHeap, "-XX:+UseParallelGC"}},
	{name: "G1", flags: []string{matrixHeap, "-XX:+UseG1GC"}},
	{name: "CMS", flags: []string{matrixHeap, "-XX:+UseConcMarkSweepGC"}},
	{name: "Shenandoah", flags: []string{matrixHeap, "-XX:+UseShenandoahGC"}},
	{name: "Shenandoah, generational", flags: []string{matrixHeap, "-XX:+UseShenandoahGC",
		"-XX:ShenandoahGCMode=generational"}},
	{name: "ZGC", flags: []string{matrixHeap, "-XX:+UseZGC"}},
	{name: "ZGC, +ZGenerational", flags: []string{matrixHeap, "-XX:+UseZGC", "-XX:+ZGenerational"}},
	{name: "Epsilon", flags: []string{"-Xmx6g", "-XX:+UseEpsilonGC"}}, // it collects nothing
	{name: "-Xint", flags: []string{"-Xint"}},
	{name: "C1 only", flags: []string{"-XX:TieredStopAtLevel=1"}},
	{name: "-TieredCompilation", flags: []string{"-XX:-TieredCompilation"}},
	{name: "Graal's compiler", flags: []string{"-Xmx400m"}, ready: withGraal, run: matrixGraal},
	{name: "-UseOnStackReplacement", flags: []string{"-XX:-UseOnStackReplacement"}},
	{name: "+UseCountedLoopSafepoints", flags: []string{"-XX:+UseCountedLoopSafepoints"}},
	{name: "+DebugNonSafepoints", flags: []string{"-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"}},
	{name: "-UseCompressedOops", flags: []string{"-XX:-UseCompressedOops"}},
	{name: "-UseCompressedClassPointers", flags: []string{"-XX:-UseCompressedClassPointers"}},
	{name: "+UseCompactObjectHeaders", flags: []string{"-XX:+UseCompactObjectHeaders"}},
	{name: "-UseCompactObjectHeaders", flags: []string{"-XX:-UseCompactObjectHeaders"}},
	{name: "LockingMode=0", flags: []string{"-XX:LockingMode=0"}},
	{name: "LockingMode=1", flags: []string{"-XX:LockingMode=1"}},
	{name: "LockingMode=2", flags: []string{"-XX:LockingMode=2"}},
	{name: "-SegmentedCodeCache", flags: []string{"-XX:-SegmentedCodeCache"}},
	{name: "code cache of 6 MB", flags: []string{"-XX:ReservedCodeCacheSize=6m"}},
	{name: "code cache of 240 MB", flags: []string{"-XX:ReservedCodeCacheSize=240m"}},
	{name: "-Xshare:off", flags: []string{"-Xshare:off"}},
	{name: "-Xshare:on", flags: []string{"-Xshare:on"}},
	{name: "archive of its own classes", flags: []string{matrixHeap}, ready: withClassArchive},
	{name: "AOT cache", flags: []string{matrixHeap}, ready: withAOTCache},
	{name: "transparent huge pages", flags: []string{matrixHeap, "-XX:+UseTransparentHugePages"}},
	{name: "large pages", flags: []string{matrixHeap, "-XX:+UseLargePages"}},
	{name: "-Xss256k", flags: []string{"-Xss256k"}, run: matrixShallow},
	{name: "-Xss1g", flags: []string{"-Xss1g"}},
	{name: "-Xss1g, 100,000 calls deep", flags: []string{"-Xss1g"}, run: matrixDeep},
	{name: "+PreserveFramePointer", flags: []string{"-XX:+PreserveFramePointer"}},
	{name: "+DisableAttachMechanism", flags: []string{"-XX:+DisableAttachMechanism"}},
	{name: "JVMTI agent", flags: []string{matrixHeap}, ready: withAgent("events")},
	{name: "JVMTI agent, every call", flags: []string{matrixHeap}, ready: withAgent("calls")},
	{name: "debugger's agent",
		flags: []string{"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0"}},
	{name: "JFR, settings=profile", flags: []string{matrixHeap}, ready: withJFR},
}

// withJFR has a JVM record itself, into a folder that goes with the test: one that is halted leaves what it has there.
func withJFR(t *testing.T, _ jvmtest.JDK, _ []string) (more []string, why string) {
	return []string{"-XX:StartFlightRecording=settings=profile", "-Djava.io.tmpdir=" + t.TempDir()}, ""
}

// What a JVM prints of a flag that it does not have any more, or that this machine cannot serve, but
// starts all the same.
var ignoredFlag = regexp.MustCompile(`(?i)(ignoring option|is obsolete|support was removed|requires UseCompressed|` +
	`Failed to reserve shared memory|(UseLargePages|UseTransparentHugePages) disabled|huge ?pages? (is|are) not|cannot use JVMCI).*`)

// refuses asks a JDK's java whether it takes these flags. It returns its reason if not.
func refuses(jdk jvmtest.JDK, flags []string) string {
	cmd := exec.Command(jdk.Tool("java"), append(slices.Clone(flags), "-version")...)
	cmd.Dir = os.TempDir() // not where this test's sources are
	out, err := cmd.CombinedOutput()
	if why := ignoredFlag.Find(out); why != nil {
		return string(why)
	}
	if err == nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "Picked up") && !strings.HasPrefix(line, "Error occurred") &&
			!strings.Contains(line, "was deprecated") {
			return line
		}
	}
	return err.Error()
}
