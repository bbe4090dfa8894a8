//go:build linux

package heapdump_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"runtime/metrics"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/heap/heapdump"
	"goprof/process"
	"goprof/testdata/jvmtest"
	"goprof/testdata/lies"
	"goprof/vmstructs"
)

const (
	// mostReads is about ten times the reads of an undamaged dump of this JVM.
	mostReads = 8 << 20
	// mostMemory is the most memory that a dump of a damaged heap may use.
	mostMemory = 300 << 20
)

// TestHostile: damaged classes, fields, names, headers and lists cost a bounded number of reads and bounded memory. The
// dump ends with an error, or reports what it lacks.
func TestHostile(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.HeapHeld", "-Xmx64m")
		if err := unix.Kill(jvm.PID, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Kill(jvm.PID, unix.SIGCONT) })
		p, err := process.Open(jvm.PID)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		l := &lies.Liar{Target: p, Most: mostReads}
		vm, err := vmstructs.Open(l)
		if err != nil {
			t.Fatal(err)
		}
		l.Listen = true
		if _, err := heapdump.Write(io.Discard, vm, heapdump.Options{}); err != nil {
			t.Fatal(err)
		}
		l.Listen = false
		cancel := make(chan struct{})
		close(cancel)
		res, err := heapdump.Write(io.Discard, vm, heapdump.Options{Cancel: cancel, Objects: func() { t.Error("objects") }})
		if res != nil || !errors.Is(err, heapdump.ErrCancelled) {
			t.Errorf("cancelled before the classes: %+v, %v", res, err)
		}
		rnd, whole := rand.New(rand.NewPCG(1, 2)), 0
		for round := range 30 {
			l.Lie(rnd, l.Asked)
			if _, err := heapdump.Write(io.Discard, vm, heapdump.Options{Size: 1}); err == nil {
				whole++
			}
			live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			metrics.Read(live)
			if n := live[0].Value.Uint64() - uint64(8*cap(l.Asked)); n > mostMemory {
				t.Errorf("round %d: %d MB are in use", round, n>>20)
			}
		}
		t.Logf("%d of 30 dumps came to their end, %d reads in the last one", whole, l.Reads)
	})
}
