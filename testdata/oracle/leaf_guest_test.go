//go:build linux

package oracle

import (
	"bufio"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"goprof/arch"
	"goprof/process"
	"goprof/session/postmortem"
	"goprof/testdata/corefile"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// TestLeafGuestKeep is TestLeafKeep for JVMs that qemu-user runs, of any CPU (scripts/leaf-guest.sh): it keeps what
// TestLeafKept scores. No thread is sampled: a plugin of qemu's counts how often each block of code is executed, and
// the pcs are drawn by lot, each as often as its instruction was executed. So they are the same sort of pcs for each
// CPU. A real CPU is stopped most often where it waits for memory, these are not; and code that was called without a
// record is not among them.
func TestLeafGuestKeep(t *testing.T) {
	dir, counts := keptFolder(t), os.Getenv("GOPROF_LEAF_BLOCKS")
	if counts == "" {
		t.Skip("scripts/leaf-guest.sh runs it: GOPROF_LEAF_BLOCKS names no folder in which qemu's plugin counts")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range leafModes {
			t.Run(mode.name, func(t *testing.T) {
				for _, p := range leafPrograms {
					t.Run(p.name, func(t *testing.T) {
						to := dir
						if p.held {
							to = filepath.Join(dir, "held")
						}
						if err := os.MkdirAll(to, 0o755); err != nil {
							t.Fatal(err)
						}
						flags := append(slices.Concat(fullRecords(jdk), mode.flags, guestFlags), p.line[1:]...)
						jvm := jvmtest.Start(t, jdk, p.line[0], flags...)
						name := filepath.Join(to, fmt.Sprintf("%s-%s-%d", mode.name, p.name, jdk.Version))
						keepGuest(t, jvm.PID, jdk.Label, mode.level, filepath.Join(counts, strconv.Itoa(jvm.PID)), name)
					})
				}
			})
		}
	})
}

// guestFlags have references shifted.
var guestFlags = []string{"-XX:HeapBaseMinAddress=8g", "-Xmx2g"}

// keepGuest writes NAME.core and NAME.pcs of a JVM of which the plugin counts.
func keepGuest(t *testing.T, pid int, cpu string, level uint8, counts, name string) {
	t.Helper()
	blocks := countBlocks(t, counts)
	machine := elf.EM_X86_64
	if cpu == "arm64" {
		machine = elf.EM_AARCH64
	}
	core := corefile.WriteGuest(t, pid, machine)
	copyBig(t, core, name+".core")
	os.Remove(core)
	drawPlaces(t, name, level, blocks)
}

const (
	// The JVM compiles for so long, and then it is counted for so long.
	guestWarms, guestCounts = 50 * time.Second, 15 * time.Second
	// guestPlaces is how many pcs are drawn.
	guestPlaces = 4000
)

// block is code that qemu has translated in one piece, and how often it was executed.
type block struct {
	at, times, instructions uint64
	b                       *vmstructs.Blob
}

// countBlocks has the plugin count (testdata/qemu/blocks.c).
func countBlocks(t *testing.T, name string) (blocks []block) {
	t.Helper()
	mark := func(ending string) {
		if err := os.WriteFile(name+ending, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(guestWarms)
	mark(".from")
	time.Sleep(guestCounts)
	mark(".to")
	ctest.Eventually(t, "the plugin has counted", func() bool { _, err := os.Stat(name + ".blocks"); return err == nil })
	in, err := os.Open(name + ".blocks")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var k block
		if _, err := fmt.Sscanf(lines.Text(), "%x %d %d", &k.at, &k.times, &k.instructions); err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, k)
	}
	return blocks
}

// drawPlaces draws pcs in code of a level, and writes NAME.pcs.
func drawPlaces(t *testing.T, name string, level uint8, blocks []block) {
	t.Helper()
	j := openJVM(t, name+".core", process.CoreOptions{})
	defer j.Close()
	var ours []block
	var upTo []uint64 // for each of ours, the instructions executed in it and in those before
	all, sum := uint64(0), uint64(0)
	for _, k := range blocks {
		all += k.times * k.instructions
		var err error
		if k.b, err = j.VM.Blob(k.at); err == nil && k.b.Kind == vmstructs.Nmethod && k.b.Level == level &&
			j.VM.FullRecords(k.b) {
			sum += k.times * k.instructions
			ours, upTo = append(ours, k), append(upTo, sum)
		}
	}
	t.Logf("%d of %d blocks are of level %d, with %.1f %% of the instructions", len(ours), len(blocks),
		level, float64(sum)*100/float64(max(all, 1)))
	if sum == 0 {
		t.Fatal("no code of that level was executed")
	}
	out, err := os.Create(name + ".pcs")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for range guestPlaces {
		n := rand.Uint64N(sum)
		k := &ours[sort.Search(len(upTo), func(i int) bool { return upTo[i] > n })]
		fmt.Fprintf(out, "%x \"\"\n", instructionOf(j, k, int(n%k.instructions)))
	}
}

// levelOfC2 is CompLevel_full_optimization (compiler/compilerDefinitions.hpp).
const levelOfC2 = 4

// instructionOf is the address of an instruction of a block.
func instructionOf(j *postmortem.JVM, k *block, number int) uint64 {
	code, err := j.VM.Code(k.b, nil)
	at := k.at - k.b.Begin
	var in arch.Inst
	for range number {
		if err != nil || at >= uint64(len(code)) || !j.Core.CPU().Read(code, uint32(at), &in) {
			break
		}
		at += uint64(in.Len)
	}
	return k.b.Begin + at
}
