//go:build linux

package heapdump_test

import (
	"encoding/binary"
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

// liar is a JVM that stands still, with other words in some places.
type liar struct {
	*process.Process
	lies   map[uint64]uint64 // by address, a multiple of 8
	asked  []uint64          // where it was read
	listen bool
	reads  int
}

// errEndless ends a dump that reads without end.
var errEndless = errors.New("it reads without end")

func (l *liar) Read(addr uint64, p []byte) error {
	if l.reads++; l.reads > mostReads {
		panic(errEndless)
	}
	if l.listen {
		for at := addr &^ 7; at < addr+min(uint64(len(p)), 256); at += 8 {
			l.asked = append(l.asked, at)
		}
	}
	err := l.Process.Read(addr, p)
	lies.Tell(l.lies, addr, p)
	return err
}

func (l *liar) ReadMany(rs []process.Range) {
	for i := range rs {
		rs[i].OK = l.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

const (
	// mostReads is some ten times what an honest dump of this JVM takes.
	mostReads = 8 << 20
	// mostMemory is what a dump of lies may have in use.
	mostMemory = 300 << 20
)

// TestHostile: damaged classes, fields, names, headers and lists cost a bounded number of reads and bounded memory. The
// dump ends with an error, or says what it lacks.
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
		l := &liar{Process: p}
		vm, err := vmstructs.Open(l)
		if err != nil {
			t.Fatal(err)
		}
		l.listen = true
		if _, err := heapdump.Write(io.Discard, vm, heapdump.Options{}); err != nil {
			t.Fatal(err)
		}
		l.listen = false
		cancel := make(chan struct{})
		close(cancel)
		res, err := heapdump.Write(io.Discard, vm, heapdump.Options{Cancel: cancel, Objects: func() { t.Error("objects") }})
		if res != nil || !errors.Is(err, heapdump.ErrCancelled) {
			t.Errorf("cancelled before the classes: %+v, %v", res, err)
		}
		rnd, whole := rand.New(rand.NewPCG(1, 2)), 0
		for round := range 30 {
			l.lie(rnd)
			if _, err := heapdump.Write(io.Discard, vm, heapdump.Options{Size: 1}); err == nil {
				whole++
			}
			live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			metrics.Read(live)
			if n := live[0].Value.Uint64() - uint64(8*cap(l.asked)); n > mostMemory {
				t.Errorf("round %d: %d MB are in use", round, n>>20)
			}
		}
		t.Logf("%d of 30 dumps came to their end, %d reads in the last one", whole, l.reads)
	})
}

// lie chooses other lies: zeros, numbers at random, and words of other places, which make lists go round in circles.
func (l *liar) lie(rnd *rand.Rand) {
	l.lies, l.reads = map[uint64]uint64{}, 0
	for range 1 + rnd.IntN(200) {
		at, v := l.asked[rnd.IntN(len(l.asked))], uint64(0)
		switch rnd.IntN(4) {
		case 0:
		case 1:
			v = rnd.Uint64() >> rnd.IntN(64)
		default:
			var b [8]byte
			l.Process.Read(l.asked[rnd.IntN(len(l.asked))], b[:])
			v = binary.LittleEndian.Uint64(b[:])
		}
		l.lies[at] = v
	}
}
