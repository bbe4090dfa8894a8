//go:build linux

package memory

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

const mib = 1 << 20

// collectors are the garbage collectors of this test. Those after the first run only if GOPROF_JDKS names JDKs.
var collectors = []string{"G1", "Parallel", "Serial", "Shenandoah", "Z"}

const usual = 1

// TestLiveTruth runs a program that puts known amounts of memory into known places. goprof must find these amounts, and
// those that the JVM's own NativeMemoryTracking counts.
func TestLiveTruth(t *testing.T) {
	some := collectors
	if os.Getenv("GOPROF_JDKS") == "" {
		some = some[:usual]
	}
	for _, c := range some {
		t.Run(c, func(t *testing.T) {
			jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) { liveTruth(t, jdk, c) })
		})
	}
}

func liveTruth(t *testing.T, jdk jvmtest.JDK, collector string) {
	file := filepath.Join(t.TempDir(), "mapped")
	jvm := jvmtest.Start(t, jdk, "truth.MemoryTruth", "-XX:NativeMemoryTracking=summary", "-Xmx256m",
		"-XX:MaxDirectMemorySize=200m", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockExperimentalVMOptions",
		"-XX:+Use"+collector+"GC", "--", file, "100", "50", "64", "40", "512")
	r := openLive(t, jvm)
	native := tracked(t, jvm) // the first jcmd starts a thread
	if !strings.HasPrefix(r.health.Collector(), collector) {
		t.Skipf("%v has no %s", jdk, collector)
	}
	m, err := r.Read(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Parts {
		t.Logf("%-14s %8d KiB in memory, %8d committed, %8d reserved, %d", p.Name, p.Resident>>10, p.Committed>>10,
			p.Reserved>>10, p.Count)
	}
	t.Logf("took %v; malloc %+v; direct %+v; NMT %v", m.Took, m.Malloc, m.Direct, native)
	part := func(name string) *profile.MemoryPart {
		if p := m.Part(name); p != nil {
			return p
		}
		t.Errorf("no part %s", name)
		return &profile.MemoryPart{}
	}
	near := func(what string, got, want, off uint64) {
		t.Helper()
		if max(got, want)-min(got, want) > off {
			t.Errorf("%s: %d KiB, want %d +- %d", what, got>>10, want>>10, off>>10)
		}
	}
	rollup, _ := procfs.Read(fmt.Sprintf("/proc/%d/smaps_rollup", jvm.PID), procfs.MaxFile)
	rss, _ := procfs.Kilobytes(rollup, "Rss")
	near("all parts and Rss", m.Resident, rss, 2*mib)
	if d := m.Direct; d == nil || *d != (profile.DirectMemory{Reserved: 100 * mib, Capacity: 100 * mib, Count: 100,
		Max: 200 * mib}) {
		t.Errorf("direct memory: %+v", d)
	}
	near("the mapped file", pieceOf(part(profile.MappedFiles), "mapped"), 50*mib, 0)
	near("malloc", part(profile.MallocMemoryPart).Resident-m.Malloc.Free, native["malloc"], 12*mib)
	near("in mappings of malloc", m.Malloc.Mapped, 100*mib, 8*mib)
	if jdk.Version > 8 { // JDK 8 counts reserved memory, too
		near("stacks", part(profile.ThreadStacks).Resident, native["stack"], 2*mib+native["stack"]/10)
	}
	views := uint64(1)
	if collector == "Z" && jdk.Version < 23 { // without generations. This is the default in 21 and 22
		views = 3 // the heap is mapped three times
	}
	near("heap", part(profile.HeapPartOfMemory).Committed, views*native["Java Heap"], 0)
	if jdk.Version >= 17 { // before 17, NMT uses other names
		near("metaspace", part(profile.Metaspace).Committed, native["Metaspace"], 256<<10)
	}
	near("code", part(profile.CodeCache).Committed, native["Code"], 2*mib)
	if un := m.Part(profile.UnnamedMemory); un != nil && un.Resident > m.Resident/20 {
		t.Errorf("%d KiB have no name", un.Resident>>10)
	}
	before := m.Malloc.Free
	jvm.Command("free")
	if m, err = r.Read(true); err != nil {
		t.Fatal(err)
	}
	near("what malloc has and is free", m.Malloc.Free-before, 32*mib, 3*mib)
}

// pieceOf returns the resident bytes of the piece whose name ends with name.
func pieceOf(p *profile.MemoryPart, name string) uint64 {
	for _, piece := range p.Pieces {
		if filepath.Base(piece.Name) == name {
			return piece.Resident
		}
	}
	return 0
}

func openLive(t *testing.T, jvm *jvmtest.JVM) *Reader {
	t.Helper()
	p, err := process.Open(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	vm, err := vmstructs.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	return NewReader(p, vm)
}

var (
	trackedUse = regexp.MustCompile(`^-\s+(.+) \(reserved=\d+KB, committed=(\d+)KB`)
	trackedSum = regexp.MustCompile(`\((malloc|stack|arena): ?=?(?:reserved=\d+KB, committed=)?(\d+)KB|\((malloc|arena)=(\d+)KB`)
)

// tracked returns the output of NativeMemoryTracking: the committed bytes of each use, and sums of malloc and stacks.
func tracked(t *testing.T, jvm *jvmtest.JVM) map[string]uint64 {
	t.Helper()
	var out []byte
	for range 2 {
		var err error
		out, err = exec.Command(jvm.JDK.Tool("jcmd"), strconv.Itoa(jvm.PID), "VM.native_memory").CombinedOutput()
		if err != nil {
			t.Fatalf("jcmd: %v: %s", err, out)
		}
	}
	sums := map[string]uint64{}
	for line := range strings.Lines(string(out)) {
		if f := trackedUse.FindStringSubmatch(line); f != nil {
			kb, _ := strconv.ParseUint(f[2], 10, 64)
			sums[f[1]] += kb << 10
		} else if f := trackedSum.FindStringSubmatch(line); f != nil && !strings.Contains(line, "#0") {
			kb, _ := strconv.ParseUint(f[2]+f[4], 10, 64)
			sums[f[1]+f[3]] += kb << 10
		}
	}
	return sums
}
