//go:build linux

package heap

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"goprof/heap/heapdump"
	"goprof/process"
	"goprof/profile"
	"goprof/testdata/hprofread"
	"goprof/testdata/jvmtest"
	"goprof/testdata/lies"
	"goprof/vmstructs"
)

// mostHolderReads is about ten times the reads for an undamaged heap.
const mostHolderReads = 2 << 20

// TestHostileHolders: damaged headers, lengths, references, classes and lists cost a bounded number of reads and
// bounded memory, and all shares make sense. Sometimes the damage is gone when goprof checks its result. Then each
// holder that it names must be in a heap dump of the same moment.
func TestHostileHolders(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.HeapLeaks", "-Xmx64m", "-XX:+UseSerialGC", "--")
		jvm.Command("gc")
		stopForGood(t, jvm)
		p, err := process.Open(jvm.PID)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		l := &lies.Liar{Target: p, Most: mostHolderReads, Listen: true}
		vm, err := vmstructs.Open(l)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(vm)
		if err != nil {
			t.Fatal(err)
		}
		var dump bytes.Buffer
		if _, err := heapdump.Write(&dump, openVM(t, jvm), heapdump.Options{}); err != nil {
			t.Fatal(err)
		}
		truth := directHolders(hprofread.Parse(dump.Bytes()), "truth/HeapLeaks$Order")
		opt := Options{Time: jvmtest.Slow(time.Minute)}
		if h, err := r.Holders(opt, []string{order, "byte[]"}, nil); err != nil || falseHolder(h.Holders[0], truth) != nil {
			t.Fatalf("%v: %+v, %v", err, h, truth)
		}
		t.Logf("an honest answer takes %d reads", l.Reads)
		l.Listen = false
		areas, _, err := r.heap.Areas()
		if err != nil {
			t.Fatal(err)
		}
		rnd, rounds, named := rand.New(rand.NewPCG(3, 4)), 6, 0
		if os.Getenv("GOPROF_PROVE") != "" {
			rounds = 60
		}
		for round := range rounds {
			opt.Seed, opt.Bytes = uint64(round), uint64(4<<20+round<<18)
			switch l.Fickle = round%3 > 0; round % 3 {
			case 0: // anywhere
				l.Lie(rnd, append(inHeap(rnd, areas, len(l.Asked)), l.Asked...))
			case 1: // in the heap. The whole heap is read
				l.Lie(rnd, inHeap(rnd, areas, 1<<12))
				opt.Bytes = 0
			case 2: // arrays with false lengths seem to contain the objects after them
				l.Set(longer(r, rnd, areas))
				opt.Bytes = 0
			}
			h, err := r.Holders(opt, []string{order, "byte[]"}, nil)
			live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			if metrics.Read(live); live[0].Value.Uint64() > mostMemory {
				t.Errorf("round %d: %d MB are in use", round, live[0].Value.Uint64()>>20)
			}
			if l.Set(nil); err != nil {
				continue
			}
			named++
			for _, held := range h.Holders {
				if !sensible(held) {
					t.Errorf("round %d: %+v", round, held)
				}
			}
			if row := falseHolder(h.Holders[0], truth); l.Fickle && row != nil {
				t.Errorf("round %d: %+v holds %.3f, and %v in the heap dump", round, row.Path[0], row.Share, truth)
			}
		}
		t.Logf("%d of %d answers", named, rounds)
	})
}

// inHeap returns random places in the heap.
func inHeap(rnd *rand.Rand, areas []*vmstructs.HeapArea, n int) (places []uint64) {
	for range n {
		a := areas[rnd.IntN(len(areas))]
		places = append(places, a.Start+rnd.Uint64N(a.Top-a.Start)&^7)
	}
	return places
}

// longer returns false lengths for a tenth of all small arrays of references.
func longer(r *Reader, rnd *rand.Rand, areas []*vmstructs.HeapArea) map[uint64]uint64 {
	words := map[uint64]uint64{}
	for _, a := range areas {
		r.heap.Walk(a, a.Start, a.Top, func() bool { return false }, func(o *vmstructs.Object) {
			if o.Length >= 0 && o.Bytes < 512 && strings.Contains(o.Class.Name, ".") && rnd.IntN(10) == 0 {
				at := o.Addr + o.Class.Head() - 4
				var b [8]byte
				r.heap.Bytes(at&^7, b[:])
				length := uint64(o.Length) + 4 + rnd.Uint64N(60)
				if at%8 == 0 {
					words[at] = binary.LittleEndian.Uint64(b[:])>>32<<32 | length
				} else {
					words[at&^7] = binary.LittleEndian.Uint64(b[:])<<32>>32 | length<<32
				}
			}
		})
	}
	return words
}

// sensible reports whether shares are between 0 and 1, and ways that should be whole are whole.
func sensible(h *profile.HeapHolders) bool {
	sum := h.Rest
	for _, row := range h.Rows {
		if sum += row.Share; row.Share < 0 || row.Error < 0 || row.Error > 1 || row.Most > 1 || math.IsNaN(row.Error) ||
			row.Missing == "" && len(row.Path) == 0 || len(row.Path) > maxLinks+2 {
			return false
		}
	}
	return math.Abs(sum-1) < 1e-6 || h.Looked == 0
}

// falseHolder returns the largest row that ends at a root and whose first reference holds less in the heap dump.
func falseHolder(h *profile.HeapHolders, truth map[string]float64) *profile.HeapHolder {
	for _, row := range h.Rows {
		if row.Missing == "" && row.Path[0].Kind != profile.LinkStack &&
			row.Share > truth[row.Path[0].Class+"."+row.Path[0].Field]+row.Error+0.01 {
			return row
		}
	}
	return nil
}
