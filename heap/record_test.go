//go:build linux

package heap

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"goprof/process"
	"goprof/testdata/captured"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// TestRecordHeaps makes the recorded heaps of this CPU again. It runs if GOPROF_RECORD is set and GOPROF_JDKS names
// their JDKs.
func TestRecordHeaps(t *testing.T) {
	if os.Getenv("GOPROF_RECORD") == "" {
		t.Skip("GOPROF_RECORD=1 makes the recorded heaps again")
	}
	flags := map[string]string{"serial": "-XX:+UseSerialGC", "parallel": "-XX:+UseParallelGC", "g1": "-XX:+UseG1GC",
		"zgc": "-XX:+UseZGC"}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, name := range recorded {
			part := strings.Split(name, "-")
			if part[0] != runtime.GOARCH || part[2] != strconv.Itoa(jdk.Version) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				record(t, name, jvmtest.Start(t, jdk, "truth.HeapTruth",
					truthFlags("-Xint -XX:-UsePerfData "+flags[part[1]], "1")...))
			})
		}
	})
}

// record records a heap at rest, and the JVM's own counts of it.
func record(t *testing.T, name string, jvm *jvmtest.JVM) {
	p, err := process.Open(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	counted(t, jvm) // the first jcmd starts the thread that answers
	recorder := captured.NewRecorder(blank{p, texts(t, p)})
	r, err := readerOf(recorder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(Options{All: true}); err != nil {
		t.Fatal(err)
	}
	var memory bytes.Buffer
	if err := recorder.Save(&memory, nil); err != nil {
		t.Fatal(err)
	}
	for ending, content := range map[string][]byte{".rec": memory.Bytes(), ".histogram": tableOf(t, jvm)} {
		if err := os.WriteFile(filepath.Join("testdata", name+ending), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// texts returns the addresses of the elements of byte arrays. They hold texts of the machine, and a recording does not
// need them.
func texts(t *testing.T, p *process.Process) (all [][2]uint64) {
	r, err := readerOf(p)
	if err != nil {
		t.Fatal(err)
	}
	areas, _, err := r.heap.Areas()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range areas {
		r.heap.Walk(a, a.Start, a.Top, func() bool { return false }, func(o *vmstructs.Object) {
			if o.Class.Name == "byte[]" && o.Bytes > 16 {
				all = append(all, [2]uint64{o.Addr + 16, o.Addr + o.Bytes})
			}
		})
	}
	slices.SortFunc(all, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	return all
}

// blank is a target in which some memory is zero.
type blank struct {
	process.Target
	ranges [][2]uint64 // sorted
}

func (b blank) Read(addr uint64, p []byte) error {
	err := b.Target.Read(addr, p)
	b.clear(addr, p)
	return err
}

func (b blank) ReadMany(rs []process.Range) {
	b.Target.ReadMany(rs)
	for i := range rs {
		b.clear(rs[i].Addr, rs[i].Buf)
	}
}

func (b blank) clear(addr uint64, p []byte) {
	end := addr + uint64(len(p))
	i := sort.Search(len(b.ranges), func(i int) bool { return b.ranges[i][1] > addr })
	for ; i < len(b.ranges) && b.ranges[i][0] < end; i++ {
		clear(p[max(b.ranges[i][0], addr)-addr : min(b.ranges[i][1], end)-addr])
	}
}
