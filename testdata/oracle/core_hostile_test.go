//go:build linux

package oracle

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/session/postmortem"
	"goprof/testdata/corefile"
	"goprof/testdata/jvmtest"
	"goprof/triage/autopsy"
)

// TestDamagedCores damages one core of a JVM in many ways: it is cut off, pieces of memory are missing, words are
// others. goprof reads what is left, or says what it could not read, in bounded memory. In the long form it does so to
// a core of each JDK, with many more lies, and compares: of a core from which something is missing, each stack is the
// whole core's, or a part of it that says where it has gaps and why it ends.
func TestDamagedCores(t *testing.T) { // not beside others: all that this process has in use is counted
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", "-Xmx64m", "--", "7", "12", "mrw", "0")
		name := corefile.Write(t, jvm.PID)
		whole := dumpCore(t, name, process.CoreOptions{})
		core, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(22, uint64(jdk.Version)))
		cuts, lies := 20, 40
		if longForm {
			cuts, lies = 200, 5000
		}
		t.Run("cut off", func(t *testing.T) {
			for range cuts {
				n := len(core) - 1 - r.IntN(len(core))>>r.IntN(8) // libjvm.so and most stacks lie at the end
				missingPieces(t, whole, bytes.NewReader(core[:n]), int64(n))
			}
		})
		t.Run("without memory", func(t *testing.T) {
			for range cuts {
				missingPieces(t, whole, withoutMemory(r, core), int64(len(core)))
			}
		})
		t.Run("lies", func(t *testing.T) {
			asked := &listening{ReaderAt: bytes.NewReader(core)}
			if _, _, err := readCore(asked, int64(len(core))); err != nil {
				t.Fatal(err)
			}
			refused := 0
			for range lies {
				if !lied(t, r, core, asked.at) {
					refused++
				}
			}
			t.Logf("%d of %d cores were refused", refused, lies)
		})
	})
}

// readCore asks all of a core that the commands ask.
func readCore(from io.ReaderAt, size int64) (d *profile.Dump, found *profile.Triage, err error) {
	j, err := postmortem.Open(from, size, process.CoreOptions{})
	if j != nil {
		defer j.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	j.Walker.RawNames = true
	if d, err = j.Dump(postmortem.Options{Locks: j.LocksKnown() == nil, Virtual: j.HasVirtual()}); err != nil {
		return nil, nil, err
	}
	return d, autopsy.Judge(d, j.Facts(), "core"), nil
}

// missingPieces reads a core from which something is missing.
func missingPieces(t *testing.T, whole *profile.Dump, left io.ReaderAt, size int64) {
	t.Helper()
	d, _, err := readCore(left, size)
	if err != nil {
		if text := err.Error(); len(text) < 10 || strings.HasPrefix(text, "process:") {
			t.Errorf("no cause is named: %v", err)
		}
		return
	}
	if !longForm {
		return
	}
	byTID := map[int]*profile.ThreadDump{}
	for i := range whole.Threads {
		byTID[whole.Threads[i].TID] = &whole.Threads[i]
	}
	for i := range d.Threads {
		th := &d.Threads[i]
		if th.TID == 0 {
			continue // a virtual one
		}
		want := byTID[th.TID]
		if want == nil {
			t.Errorf("thread %d is not in the whole core", th.TID)
		} else if why := contradicts(&want.Stack, &th.Stack); why != "" {
			t.Errorf("%d bytes, thread %d %q: %s", size, th.TID, th.Name, why)
		}
	}
}

// contradicts says where a stack of which memory was missing is wrong. It may lack frames, if it says so, and names.
func contradicts(whole, part *profile.Stack) string {
	gap := func(f *profile.Frame) bool { return f.Kind == profile.Gap }
	// Without libc's tables of frames a stack ends at the thread's entry, and lacks who called that.
	if n := len(whole.Frames) - len(part.Frames); part.Truncated == profile.Whole && n != 0 && n != 1 &&
		!slices.ContainsFunc(part.Frames, func(f profile.Frame) bool { return gap(&f) }) {
		return fmt.Sprintf("it is said to be whole, and has %d frames of %d: %+v\nof %+v", len(part.Frames),
			len(whole.Frames), part.Frames, whole.Frames)
	}
	at, behind := 0, false
	for i := range part.Frames {
		f := &part.Frames[i]
		if gap(f) {
			behind = true
			continue
		}
		for at < len(whole.Frames) && !sameFrame(&whole.Frames[at], f, behind) {
			at++
		}
		behind = false
		if at == len(whole.Frames) {
			return fmt.Sprintf("it has a frame that the whole core has not: %s %+v", f.Func.Name, *f)
		}
		at++
	}
	return ""
}

// sameFrame: behind a gap the frame anchor tells where a Java frame is. It has the sp before the call into the JVM, and
// not always the pc.
func sameFrame(a, b *profile.Frame, behindGap bool) bool {
	if a.Kind.Java() {
		return (a.SP == b.SP || behindGap) && a.BCI == b.BCI && a.Func.Name == b.Func.Name
	}
	return a.SP == b.SP && a.PC == b.PC
}

// withoutMemory leaves out what some of the segments have in the file.
func withoutMemory(r *rand.Rand, core []byte) io.ReaderAt {
	var h elf.Header64
	binary.Decode(core, binary.LittleEndian, &h)
	l := &liar{bytes.NewReader(core), map[int64][8]byte{}}
	out := 1 + r.IntN(30) // percent of the segments
	for i := range int64(h.Phnum) {
		at := int64(h.Phoff) + 56*i
		if elf.ProgType(binary.LittleEndian.Uint32(core[at:])) == elf.PT_LOAD && r.IntN(100) < out {
			const fileSize = 32 // of Elf64_Phdr
			l.lies[at+fileSize] = [8]byte{}
		}
	}
	return l
}

// listening notes where it is read.
type listening struct {
	io.ReaderAt
	at []int64
}

func (l *listening) ReadAt(b []byte, off int64) (int, error) {
	for i := 0; i < len(b); i += 256 {
		l.at = append(l.at, off+int64(i))
	}
	return l.ReaderAt.ReadAt(b, off)
}

// liar is a file in which some words are others.
type liar struct {
	io.ReaderAt
	lies map[int64][8]byte // by offset, a multiple of 8
}

func (l *liar) ReadAt(b []byte, off int64) (int, error) {
	n, err := l.ReaderAt.ReadAt(b, off)
	for at, lie := range l.lies {
		for i, c := range lie {
			if k := at + int64(i) - off; k >= 0 && k < int64(n) {
				b[k] = c
			}
		}
	}
	return n, err
}

// mostOfLies is what goprof may have in use for a core of lies.
const mostOfLies = 200 << 20

// lied reads the core with lies where goprof reads it: zeros, numbers at random, and words of other places, which make
// lists go round in circles. It reports whether a JVM was found there.
func lied(t *testing.T, r *rand.Rand, core []byte, asked []int64) bool {
	t.Helper()
	l := &liar{bytes.NewReader(core), map[int64][8]byte{}}
	for range 1 + r.IntN(200) {
		at := (asked[r.IntN(len(asked))] + int64(r.IntN(256))) &^ 7
		var lie [8]byte
		switch r.IntN(4) {
		case 0:
		case 1:
			binary.LittleEndian.PutUint64(lie[:], r.Uint64()>>r.IntN(64))
		default:
			from := (asked[r.IntN(len(asked))] + int64(r.IntN(256))) &^ 7
			if from+8 <= int64(len(core)) {
				copy(lie[:], core[from:])
			}
		}
		l.lies[at] = lie
	}
	d, _, err := readCore(l, int64(len(core)))
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if n := live[0].Value.Uint64(); n > mostOfLies+uint64(len(core)) {
		t.Errorf("%d MB are in use beside the core", (n-uint64(len(core)))>>20)
	}
	return err == nil && d != nil
}
