//go:build linux

package oracle

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// TestFilesAndPeers: calls that read and write are counted by file and peer, as often as the program itself has made
// them and with as many bytes. The time of calls that are slow is what the program's clock says.
func TestFilesAndPeers(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.FilesAndPeers")
		commands := []string{"files 60 " + t.TempDir(), "lookup 40", "peer blocking 20 20", "peer timeout 20 20",
			"peer channel 20 20", "peer selector 20 20"}
		if jdk.Version >= 21 {
			commands = append(commands, "peer virtual 20 20")
		}
		for _, command := range commands { // classes are loaded, files are there
			jvm.Command(strings.Replace(command, " 20 20", " 2 1", 1))
		}
		for _, command := range commands {
			s := attach(t, jvm.PID)
			var want []string
			p, sum := recordEvent(t, s, findEvent(t, s, profile.EventIO, 0), func() { want = jvm.Command(command) })
			checkIO(t, command, want, sum.IO)
			if strings.HasPrefix(command, "peer") && !strings.Contains(command, "selector") {
				checkSlowReads(t, command, p)
			}
			s.Close()
		}
	})
}

// checkIO compares sums with what the program has printed.
func checkIO(t *testing.T, command string, want []string, io *profile.IO) {
	t.Helper()
	if io == nil {
		t.Fatalf("%s: no sums", command)
	}
	for _, line := range want {
		var op, target string
		var calls, bytes, nanos int64
		if _, err := fmt.Sscan(line, &op, &target, &calls, &bytes, &nanos); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got := profile.IOSum{}
		for i := range io.Sums {
			if k := &io.Sums[i]; k.Op == op && k.Target == target {
				got.Calls, got.Bytes, got.Took = got.Calls+k.Calls, got.Bytes+k.Bytes, got.Took+k.Took
			}
		}
		apart := math.Abs(float64(int64(got.Took)-nanos)) / float64(nanos)
		t.Logf("%s: %s %s: %d calls, %d bytes, %v: %.2f %% from the program's clock", command, op, target, got.Calls,
			got.Bytes, got.Took, 100*apart)
		if op == "wait" && got.Calls >= calls { // the JVM's own threads wait, too
			continue
		}
		if got.Calls != calls || got.Bytes != bytes {
			t.Errorf("%s: %s %s: %d calls, %d bytes; the program made %d, of %d", command, op, target, got.Calls, got.Bytes,
				calls, bytes)
		}
		// The program's clock counts the way into the kernel, too.
		if slow := nanos/calls > 2e6; slow && apart > 0.05*float64(jvmtest.Slow(1)) {
			t.Errorf("%s: %s %s took %v; by the program's clock %d", command, op, target, got.Took, nanos)
		}
	}
	for _, l := range io.Lost {
		if !strings.HasPrefix(l.Why, "waits for several") {
			t.Errorf("%s: %+v", command, l)
		}
	}
}

// checkSlowReads demands that each slow read became a sample, below the method that reads.
func checkSlowReads(t *testing.T, command string, p *profile.Profile) {
	t.Helper()
	found := int64(0)
	p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, n int64) {
		if strings.HasPrefix(path[len(path)-1], "[read: 127.0.0.1:") && strings.Contains(strings.Join(path, ";"),
			"truth.FilesAndPeers.ask") {
			found += n
		}
	})
	if least := int64(20 * 20e6); found < least {
		t.Errorf("%s: reads of the slow peer have %d ns, want at least %d", command, found, least)
	}
}
