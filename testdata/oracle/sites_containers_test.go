//go:build linux

package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// atRest are threads that stand still in every JVM, in Java and in the VM itself.
var atRest = []string{"main", "Reference Handler", "Finalizer", "Signal Dispatcher", "VM Thread"}

// TestContainers: wherever a JVM is, its stacks have the names that they have here, down to functions that only
// the whole table of symbols has. So they do for one who may not open mapped files but by their names.
func TestContainers(t *testing.T) {
	t.Parallel()
	needSites(t)
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		here := jvmtest.Start(t, jdk, "truth.Shares", "--", "1", "1", "6")
		want, _ := dumpAtRest(t, []string{goprof}, here.PID)
		last := len(sites) - 1 // all at once
		for _, at := range append(slices.Clone(jvmtest.Drawn(t, 2, sites[:last])), sites[last]) {
			t.Run(at.name, func(t *testing.T) {
				c := at.start(t, jdk, "", "truth.Shares", "--", "1", "1", "6")
				c.checkCommands(t, jdk, append(slices.Clone(weak), goprof), want)
				if at.name == allAtOnce {
					c.checkCommands(t, jdk, []string{goprof}, want)
				}
			})
		}
	})
}

// checkCommands runs all that look at a JVM.
func (c container) checkCommands(t *testing.T, jdk jvmtest.JDK, goprof []string, want map[string]string) {
	t.Helper()
	run := func(args ...string) ran { return runIt(t, append(slices.Clone(goprof), args...)...) }
	stacks, said := dumpAtRest(t, goprof, c.pid)
	sameStacks(t, stacks, want)
	if said != "" {
		t.Errorf("dump says %s", said)
	}
	recorded := recordShares(t, slices.Concat(goprof, []string{"record", "--pid", strconv.Itoa(c.pid), "-o", "-"})...)
	if recorded.code != 0 || !strings.Contains(recorded.out, "truth.Shares.") ||
		strings.Contains(recorded.err, "library-") {
		t.Errorf("record: %d %s\n%s", recorded.code, recorded.err, recorded.out)
	}
	var listed struct {
		JVMs []struct {
			PID             int
			Version, Vendor string
			Problem         *struct{ Why string }
		}
	}
	if list := run("list", "--json"); json.Unmarshal([]byte(list.out), &listed) != nil {
		t.Fatal(list)
	}
	found := false
	for _, j := range listed.JVMs {
		found = found || j.PID == c.pid && j.Problem == nil && j.Version != "" && j.Vendor == jdk.Vendor(t)
	}
	if !found {
		t.Errorf("%d is not listed, or not as it should: %+v", c.pid, listed)
	}
	if doctor := run("doctor", "--pid", strconv.Itoa(c.pid)); doctor.code != 0 ||
		!strings.Contains(doctor.out, "ok    symbols") && hasSymbols(jdk) {
		t.Errorf("doctor: %d %s%s", doctor.code, doctor.out, doctor.err)
	}
}

// dumpAtRest dumps until two dumps in a row show the same: a program that has just got ready, or a collector, may
// still run. Without real-time priority goprof leaves threads that run without a stack, and others without their
// native frames, where others want the CPUs: such a dump is taken again. It returns the names on the stacks of
// threads that stand still, and what the last dump said beside.
func dumpAtRest(t *testing.T, command []string, pid int) (stacks map[string]string, said string) {
	t.Helper()
	const tries = 40
	for try := range tries {
		before := stacks
		dump := runIt(t, append(slices.Clone(command), "dump", "--pid", strconv.Itoa(pid), "--json")...)
		if dump.code == notComplete && try < tries-1 {
			continue
		}
		stacks, said = stacksOf(t, dump), dump.err
		if maps.Equal(before, stacks) && !strings.Contains(dump.out, "[native frames that only a stop can tell]") {
			break
		}
	}
	return stacks, said
}

func stacksOf(t *testing.T, dump ran) map[string]string {
	t.Helper()
	var all struct{ Threads []dumpedThread }
	if err := json.Unmarshal([]byte(dump.out), &all); err != nil || dump.code != 0 {
		t.Fatalf("%v, exit code %d\n%s", err, dump.code, dump.err)
	}
	stacks := map[string]string{}
	for _, name := range atRest {
		th := threadNamed(t, all.Threads, name)
		if th.Truncated != "" || th.Error != "" && th.Error != profile.StopTimeout.String() {
			t.Errorf("%s: truncated %q, error %q\n%s", name, th.Truncated, th.Error, dumpedText(&th))
		}
		var names []string
		for _, f := range th.Frames {
			names = append(names, f.Name)
		}
		stacks[name] = strings.Join(names, "\n")
	}
	return stacks
}

func sameStacks(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, stack := range want {
		if got[name] != stack {
			t.Errorf("%s:\n%s\nwant\n%s", name, got[name], stack)
		}
	}
}

// TestInnerPIDs: two containers have a process 1 each. None is chosen but by its name.
func TestInnerPIDs(t *testing.T) {
	t.Parallel()
	needSites(t)
	goprof := buildGoprof(t)
	jdk := jvmtest.JDKs(t)[0]
	// Names of our own: other processes 1 may run on this machine, those of another run of this test too.
	shares, named := fmt.Sprintf("inner-%d-shares.jar", os.Getpid()), fmt.Sprintf("inner-%d-named.jar", os.Getpid())
	pid := sites[1]
	one := pid.start(t, jdk, "", jvmtest.PublicJar(t, shares, "truth.Shares"), "-cp", "none", "-jar", "--", "1", "1", "6")
	two := pid.start(t, jdk, "", jvmtest.PublicJar(t, named, "truth.Named"), "-cp", "none", "-jar")
	for _, args := range [][]string{{"dump", "--ns-pid", "1"}, {"record", "--ns-pid", "1", "-d", "1"},
		{"doctor", "--ns-pid", "1"}} {
		r := runIt(t, append([]string{goprof}, args...)...)
		r.wantError(t, 1, "JVMs have the number 1 in a container", strconv.Itoa(one.pid)+" "+shares,
			strconv.Itoa(two.pid)+" "+named, "try: goprof "+args[0]+" --pid ")
	}
	if r := runIt(t, goprof, "dump", "--ns-pid", "1", strings.ToUpper(named)); r.code != 0 ||
		!strings.Contains(r.out, "truth.Named") {
		t.Errorf("%+v", r)
	}
	if r := recordShares(t, goprof, "record", "--ns-pid", "1", shares, "-o", "-"); r.code != 0 ||
		!strings.Contains(r.out, "truth.Shares.") {
		t.Errorf("%+v", r)
	}
	runIt(t, goprof, "dump", "--ns-pid", "1", "no such thing").wantError(t, 3,
		`have the number 1 in a container and "no such thing"`)
	runIt(t, goprof, "dump", "--ns-pid", strconv.Itoa(host.MaxPID(t)-1)).wantError(t, 3, "goprof list")
	runIt(t, goprof, "dump", "--ns-pid", "0").wantError(t, 1, "0 is no process id")
	runIt(t, goprof, "dump", "--ns-pid", "1", "--pid", strconv.Itoa(one.pid)).wantError(t, 1, "exclude each other")
	runIt(t, goprof, "record", "--ns-pid", "1", "--pid", strconv.Itoa(one.pid)).wantError(t, 1, "exclude each other")
}
