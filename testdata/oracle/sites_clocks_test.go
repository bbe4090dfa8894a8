//go:build linux

package oracle

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// TestTimeNamespaces: the JVM's clock is a day ahead of the machine's, and goprof's own is in the second part, too. In
// the first part all engines work. In the second part goprof cannot compare the kernel's records with its clock. It
// does without them, or refuses, and says why: at first waits came out as 55 hours, and no sample counted.
func TestTimeNamespaces(t *testing.T) {
	t.Parallel()
	needSites(t)
	host.NeedPerf(t)
	goprof := buildGoprof(t)
	ahead := []string{"unshare", "--time", "--monotonic", "86400", "--boottime", "86400", "--fork", "--kill-child"}
	if out, err := exec.Command(ahead[0], append(slices.Clone(ahead[1:]), "true")...).CombinedOutput(); err != nil {
		t.Skipf("no time namespaces here: %v %s", err, out)
	}
	jdks := jvmtest.JDKs(t)
	line := slices.Concat(ahead, jvmtest.CommandLine(t, jdks[len(jdks)-1], "truth.Shares", "--", "2", "1", "6"))
	pid := strconv.Itoa(host.OnlyChild(t, host.StartReady(t, exec.Command(line[0], line[1:]...))))
	record := []string{goprof, "record", "--pid", pid, "-o", "-"}
	for _, flags := range [][]string{{"--engine", "perf"}, {"--engine", "ptrace"}, {"--mode", "wall"}} {
		if r := recordShares(t, slices.Concat(record, flags)...); !strings.Contains(r.out, "truth.Shares.") {
			t.Errorf("%v: %+v", flags, r)
		}
	}
	shortWaits(t, runIfSampled(t, append(slices.Clone(record), "--event", "off-cpu", "-d", "1")...))

	inside := append(ahead, record...)
	if r := recordShares(t, inside...); !strings.Contains(r.out, "truth.Shares.") {
		t.Errorf("the engine that is chosen: %+v", r)
	}
	why := "goprof is in a time namespace"
	runIt(t, append(slices.Clone(inside), "--engine", "perf", "-d", "1")...).wantError(t, 1, why, "--engine ptrace")
	runIt(t, append(slices.Clone(inside), "--event", "alloc", "-d", "1")...).wantError(t, 16, why)
	waits := runIfSampled(t, append(slices.Clone(inside), "--event", "off-cpu", "-d", "1")...)
	shortWaits(t, waits)
	if !strings.Contains(waits.err, why) {
		t.Errorf("off-cpu does not say why it looks at threads now and then: %s", waits.err)
	}
	agentRecords(t, goprof, nil, "")
	agentRecords(t, goprof, ahead, why)
}

// agentRecords wants the agent to have samples of truth.Shares, and to say so much.
func agentRecords(t *testing.T, goprof string, before []string, says string) {
	t.Helper()
	dir, found := t.TempDir(), false
	var r ran
	for tries := 0; tries < 10 && !found && r.code == 0; tries++ {
		// --foreground: timeout does not repeat its signal, which goprof would take for a second request to end
		r = runIt(t, slices.Concat(before, []string{"timeout", "--foreground", "--preserve-status", "-s", "INT", "6", goprof,
			"agent", "--match", "Shares", "--files", dir, "--every", "2s", "--max-cpu", "0"})...)
		files, _ := filepath.Glob(filepath.Join(dir, "*.pb.gz"))
		for _, name := range files {
			found = found || strings.Contains(runIt(t, "zcat", name).out, "truth.Shares.") // names of methods
		}
	}
	if r.code != 0 || !found || !strings.Contains(r.err, says) {
		t.Errorf("the agent has samples: %v, exit code %d\n%s", found, r.code, r.err)
	}
}

// shortWaits wants no thread to wait for longer than some seconds. Lines end with nanoseconds.
func shortWaits(t *testing.T, r ran) {
	t.Helper()
	if r.code != 0 {
		t.Errorf("off-cpu: %+v", r)
	}
	for line := range strings.Lines(r.out) {
		fields := strings.Fields(line)
		ns, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
		if err != nil || ns > 600e9 {
			t.Errorf("%s (%v)", line, err)
		}
	}
}
