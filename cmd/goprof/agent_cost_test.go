//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// smallJVM are flags of a JVM of which many fit onto a machine.
var smallJVM = []string{"-Xmx16m", "-Xss256k", "-Xint", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

// What the agent costs should be, as shares of one CPU, and as bytes.
const (
	busyMost, idleMost = 0.005, 0.003
	idleBytes          = 120e6
	costFor            = 50 * time.Second
)

// TestAgentCost measures what docs/evidence/fleet.md and docs/evidence/performance.md say of a low rate. A machine
// that is shared makes the same work dearer, so make test leaves it out. Each line is a figure:
//
//	GOPROF_PROVE=1 go test ./cmd/goprof -run TestAgentCost -v
func TestAgentCost(t *testing.T) {
	if os.Getenv("GOPROF_PROVE") != "1" {
		t.Skip("figures, measured for some minutes: set GOPROF_PROVE=1")
	}
	jdk := jvmtest.JDKs(t)[0]
	t.Run("record", func(t *testing.T) { costOfRecord(t, jdk) })
	t.Run("busy", func(t *testing.T) { costOfBusy(t, jdk) })
	if before := os.Getenv("GOPROF_BEFORE"); before != "" {
		t.Run("turns", func(t *testing.T) { costInTurns(t, jdk, before) })
	}
	t.Run("idle", func(t *testing.T) { costOfIdle(t, jdk) })
	t.Run("first", func(t *testing.T) { firstFiles(t, jdk) })
}

// costOfRecord: one record at 19 Hz over 15 s.
func costOfRecord(t *testing.T, jdk jvmtest.JDK) {
	jvm := jvmtest.Start(t, jdk, "truth.Shares", "-Xmx64m", "--", "1", "7")
	for _, seconds := range []string{"0.2", "15", "15"} { // the first one is mostly its start
		cmd := exec.Command("goprof", "record", fmt.Sprint(jvm.PID), "-r", "19", "-d", seconds,
			"-o", filepath.Join(t.TempDir(), "x.txt"))
		if told, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, told)
		}
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		t.Logf("record at 19 Hz for %s s: %.0f ms of CPU", seconds, 1e3*used.Seconds())
	}
}

// costOfBusy: two JVMs that are busy all the time.
func costOfBusy(t *testing.T, jdk jvmtest.JDK) {
	port := freePort(t)
	a := startAgent(t, append(ofShares, "--every", "15s", "--max-cpu", "0", "--listen", port)...)
	for seed := range 2 {
		jvm := jvmtest.Start(t, jdk, "truth.Shares", "-Xmx64m", "--", "1", fmt.Sprint(seed))
		defer a.await(t, jvm.PID)
	}
	a.awaitRecorded(t, port, 2)
	if used := a.costOf(t, port); used > busyMost {
		t.Errorf("two busy JVMs: more than %.1f %% of a CPU", 100*busyMost)
	}
}

// costInTurns: an older goprof and this one, in turns beside the same two busy JVMs. On a busy machine only the ratios
// of a turn count.
func costInTurns(t *testing.T, jdk jvmtest.JDK, before string) {
	for seed := range 2 {
		jvmtest.Start(t, jdk, "truth.Shares", "-Xmx64m", "--", "1", fmt.Sprint(seed))
	}
	for turn := range 5 {
		programs, used := []string{before, "goprof"}, map[string]float64{}
		if turn%2 == 1 {
			slices.Reverse(programs)
		}
		for _, program := range programs {
			port := freePort(t)
			a := startAgentOf(t, program, append(ofShares, "--every", "15s", "--max-cpu", "0", "--listen", port)...)
			a.awaitRecorded(t, port, 2)
			used[program] = a.costOf(t, port)
			a.end(t)
		}
		t.Logf("turn %d: %.2f of what it was", turn, used["goprof"]/used[before])
	}
}

// costOfIdle: fifty that do nothing.
func costOfIdle(t *testing.T, jdk jvmtest.JDK) {
	for range 50 {
		jvmtest.Start(t, jdk, "truth.Guest", append(smallJVM, "--", "0")...)
	}
	time.Sleep(15 * time.Second) // what they have used to start counts for a batch's time
	port := freePort(t)
	a := startAgent(t, "--every", "15s", "--listen", port, "--match", "main=Guest")
	a.awaitJVMs(t, port, "idle", 50)
	if used := a.costOf(t, port); used > idleMost {
		t.Errorf("50 idle JVMs: more than %.1f %% of a CPU", 100*idleMost)
	}
	if bytes := scrape(t, port)["goprof_agent_resident_bytes"]; bytes > idleBytes {
		t.Errorf("50 idle JVMs: %.0f MB", bytes/1e6)
	}
}

// firstFiles: from the start of a JVM, which is busy from then on, to its first file.
func firstFiles(t *testing.T, jdk jvmtest.JDK) {
	const every = 5 * time.Second
	a := startAgent(t, append(ofShares, "--every", every.String(), "--max-cpu", "1%")...)
	a.awaitFolder(t)
	for seed := range 5 {
		began := time.Now()
		jvm := jvmtest.Start(t, jdk, "truth.Shares", "-Xmx64m", "--", "1", fmt.Sprint(seed))
		a.await(t, jvm.PID)
		took := time.Since(began)
		t.Logf("the first file came %.1f s after the start", took.Seconds())
		if took > 2*every {
			t.Errorf("that is more than two intervals of %v", every)
		}
		jvm.Kill()
	}
}

// awaitRecorded waits until so many JVMs are recorded, and the costs of that are over.
func (a *liveAgent) awaitRecorded(t *testing.T, port string, jvms float64) {
	t.Helper()
	a.awaitJVMs(t, port, "recorded", jvms)
	time.Sleep(5 * time.Second)
}

// awaitJVMs waits until so many JVMs are in a state.
func (a *liveAgent) awaitJVMs(t *testing.T, port, state string, jvms float64) {
	t.Helper()
	name := fmt.Sprintf("goprof_agent_jvms{state=%q}", state)
	for end := time.Now().Add(agentLimit); scrape(t, port)[name] < jvms; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %v JVMs are %s\n%s", jvms, state, &a.log)
		}
	}
}

// costOf is the share of a CPU that an agent uses, with the pauses.
func (a *liveAgent) costOf(t *testing.T, port string) float64 {
	t.Helper()
	before, began := scrape(t, port), time.Now()
	time.Sleep(costFor)
	after, passed := scrape(t, port), time.Since(began).Seconds()
	of := func(name string) float64 { return after["goprof_agent_"+name] - before["goprof_agent_"+name] }
	own, pauses := of("cpu_seconds_total"), of("pause_seconds_total")
	t.Logf("in %.0f s: %.2f %% of a CPU, of which %.2f the sampling thread and %.2f pauses; %.0f samples, %.0f visits; "+
		"%.0f MB", passed, 100*(own+pauses)/passed, 100*of("sampling_cpu_seconds_total")/passed, 100*pauses/passed,
		of("samples_total"), of("cpu_visits_total"), after["goprof_agent_resident_bytes"]/1e6)
	return (own + pauses) / passed
}
