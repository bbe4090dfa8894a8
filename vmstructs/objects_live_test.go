//go:build linux

package vmstructs

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"goprof/process"
	"goprof/testdata/jvmtest"
)

// TestLiveObjects: after a full collection of Serial, all objects are in the old generation. A walk through it finds as
// many objects of each class as the JVM itself counts, and ends at the end of the generation.
func TestLiveObjects(t *testing.T) {
	for _, flags := range []string{"", "-XX:+UseCompactObjectHeaders -XX:ObjectAlignmentInBytes=16",
		"-XX:-UseCompressedClassPointers"} {
		t.Run(flags, func(t *testing.T) {
			line := append([]string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:+UnlockExperimentalVMOptions",
				"-XX:+IgnoreUnrecognizedVMOptions"}, strings.Fields(flags)...)
			someLive(t, jvmtest.ForDrawnJDK, line, func(t *testing.T, v *live) {
				checkHistogram(t, v.vm, v.jdk, v.pid, "byte[]", "java.lang.String", "java.lang.Class")
			})
		})
	}
}

// TestLiveStackChunks: the same with the stacks of virtual threads, which have any size.
func TestLiveStackChunks(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 21 {
			t.Skipf("%v has no virtual threads", jdk)
		}
		jvm := jvmtest.Start(t, jdk, "truth.VirtualParked", "-Xmx128m", "-XX:+UseSerialGC", "--add-exports",
			"java.base/jdk.internal.misc=ALL-UNNAMED")
		p, err := process.Open(jvm.PID)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		vm, err := Open(p)
		if err != nil {
			t.Fatal(err)
		}
		checkHistogram(t, vm, jdk, jvm.PID, "jdk.internal.vm.StackChunk")
	})
}

// classCount is the number of a class's objects, and their bytes.
type classCount struct{ objects, bytes uint64 }

// checkHistogram walks the old generation and compares the result with GC.class_histogram.
func checkHistogram(t *testing.T, vm *VM, jdk jvmtest.JDK, pid int, wanted ...string) {
	t.Helper()
	theirs := histogram(t, jdk, pid)
	ours := walkOld(t, vm)
	off, all := uint64(0), uint64(0)
	for name, want := range theirs {
		got := ours[name]
		all += want.bytes
		off += max(got.bytes, want.bytes) - min(got.bytes, want.bytes)
	}
	// jcmd itself makes objects that come and go. Up to 17, unused memory of the generation is filled with an int[].
	off -= min(off, max(ours["int[]"].bytes, theirs["int[]"].bytes)-min(ours["int[]"].bytes, theirs["int[]"].bytes))
	t.Logf("%d classes, %d bytes, %d are other ones", len(theirs), all, off)
	if all == 0 || off > all/10 {
		t.Errorf("of %d bytes %d are counted otherwise", all, off)
	}
	for _, name := range wanted {
		got, want := ours[name], theirs[name]
		if want.objects == 0 || got.bytes < want.bytes-want.bytes/100 || got.bytes > want.bytes+want.bytes/100 {
			t.Errorf("%s: %+v, the JVM counts %+v", name, got, want)
		}
	}
}

func walkOld(t *testing.T, vm *VM) map[string]classCount {
	t.Helper()
	l := &vm.l.health
	h := vm.NewHealth()
	heap, err := vm.mem.Ptr(l.heap)
	if err != nil {
		t.Fatal(err)
	}
	old := h.pointerAt(heap, l.serial.old)
	if l.serial.gens.ok() {
		old = h.pointerAt(heap, l.serial.gens+8)
	}
	space := h.pointerAt(old, l.serial.oldSpace)
	bottom, top := h.pointerAt(space, l.serial.bottom), h.pointerAt(space, l.serial.top)
	if bottom == 0 || top <= bottom || top-bottom > 128<<20 {
		t.Fatalf("old generation %#x to %#x", bottom, top)
	}
	objects, err := vm.NewObjects()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]classCount{}
	const piece = 100_000 // pieces end in the middle of objects
	for at := bottom; at < top; {
		b := make([]byte, min(piece, top-at))
		if err := vm.mem.Bytes(at, b); err != nil {
			t.Fatal(err)
		}
		next, err := objects.Walk(at, b, func(_ uint64, class *ObjectClass, size uint64) {
			if !class.Filler {
				c := counts[class.Name]
				counts[class.Name] = classCount{c.objects + 1, c.bytes + size}
			}
		})
		if err != nil || next == at {
			t.Fatalf("at %#x of %#x to %#x: %v", next, bottom, top, err)
		}
		if at = next; at > top {
			t.Fatalf("the last object ends at %#x, behind %#x", at, top)
		}
	}
	return counts
}

// histogram returns the JVM's own counts. It starts a collection.
func histogram(t *testing.T, jdk jvmtest.JDK, pid int) map[string]classCount {
	t.Helper()
	out, err := exec.Command(jdk.Tool("jcmd"), strconv.Itoa(pid), "GC.class_histogram").CombinedOutput()
	if err != nil {
		t.Fatalf("jcmd: %v: %s", err, out)
	}
	counts := map[string]classCount{}
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.Fields(line) // "1:  2345  67890  [B (java.base@17)"
		if len(f) < 4 || !strings.HasSuffix(f[0], ":") {
			continue
		}
		objects, err1 := strconv.ParseUint(f[1], 10, 64)
		bytes, err2 := strconv.ParseUint(f[2], 10, 64)
		if err1 == nil && err2 == nil {
			name := JavaName(f[3])
			c := counts[name]
			counts[name] = classCount{c.objects + objects, c.bytes + bytes}
		}
	}
	return counts
}
