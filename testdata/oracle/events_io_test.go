//go:build linux

package oracle

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// TestFilesAndPeers: calls that read and write are counted by file and peer, as often as the program itself has made
// them and with as many bytes. The time of calls that are slow is what the program's clock says.
func TestFilesAndPeers(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
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
			reads := checkIO(t, command, want, sum.IO)
			if peerIsWaitedFor(command) {
				checkSlowReads(t, command, p, reads)
			}
			s.Close()
		}
	})
}

// checkIO compares sums with what the program has printed. It returns how long reads took by the program's clock.
func checkIO(t *testing.T, command string, want []string, io *profile.IO) (reads int64) {
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
		if op == "read" {
			reads += nanos
		}
		if op == "wait" && got.Calls >= calls { // the JVM's own threads wait, too
			continue
		}
		if got.Calls != calls || got.Bytes != bytes {
			t.Errorf("%s: %s %s: %d calls, %d bytes; the program made %d, of %d", command, op, target, got.Calls, got.Bytes,
				calls, bytes)
		}
		// The program's clock also counts the way into the kernel and back. The peer sleeps 20 ms before each answer: that is
		// most of it, unless the program has no CPU between its write and its read.
		if int64(got.Took) > nanos {
			t.Errorf("%s: %s %s took %v; by the program's clock %v", command, op, target, got.Took, time.Duration(nanos))
		}
		if op == "read" && peerIsWaitedFor(command) && int64(got.Took) < nanos/2 {
			t.Errorf("%s: %s %s took %v; by the program's clock %v", command, op, target, got.Took, time.Duration(nanos))
		}
	}
	for _, l := range io.Lost {
		if !strings.HasPrefix(l.Why, "waits for several") {
			t.Errorf("%s: %+v", command, l)
		}
	}
	return reads
}

// checkSlowReads demands that slow reads, which took so long by the program's clock, became samples below the method
// that reads. The frames of a virtual thread that has gone on by now may be missing.
func checkSlowReads(t *testing.T, command string, p *profile.Profile, took int64) {
	t.Helper()
	found := int64(0)
	p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, n int64) {
		if strings.HasPrefix(path[len(path)-1], "[read: 127.0.0.1:") && (strings.Contains(command, "virtual") ||
			strings.Contains(strings.Join(path, ";"), "truth.FilesAndPeers.ask")) {
			found += n
		}
	})
	if found < took/2 {
		t.Errorf("%s: reads of the slow peer have %d ns; by the program's clock %d", command, found, took)
	}
}

// peerIsWaitedFor reports whether a command's reads wait for the peer. Of a selector the selector waits.
func peerIsWaitedFor(command string) bool {
	return strings.HasPrefix(command, "peer") && !strings.Contains(command, "selector")
}
