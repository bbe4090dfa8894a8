package jvmtest

import "testing"

// Cost is why a test is left out of `make quick`, which is `go test -short`.
type Cost string

// All the reasons there are. What costs none of these is in `make quick`.
const (
	StartsJVM      Cost = "starts a JVM"
	StartsBrowser  Cost = "starts a browser"
	StartsTool     Cost = "starts a tool that reads large files" // gdb, objdump, readelf, strip
	Builds         Cost = "runs a compiler"                      // gcc, go build
	RunsPrograms   Cost = "watches running programs"             // of C, under ptrace or perf
	TakesLong      Cost = "takes more than a second of CPU time"
	NeedsNamespace Cost = "starts programs in namespaces"
)

// NotQuick skips a test in `make quick`. Helpers call it that start what costs; a test calls it itself only
// where no helper does. GOPROF_REQUIRE_JVM changes nothing here: who says -short wants no JVM.
func NotQuick(t testing.TB, cost Cost) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in make quick: " + string(cost))
	}
}
