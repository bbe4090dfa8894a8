package unwind

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/arch"
	"goprof/testdata/captured"
	"goprof/vmstructs"
)

// sights are the nmethods of the pcs of a recording that TestRecordFirstSights made, without the records of a JVM with
// full records. What a first sight reads of them alone is not read yet.
func sights(tb testing.TB, rec *captured.Recording, w *Walker) (pcs []uint64, of []*vmstructs.Blob) {
	tb.Helper()
	less := map[*vmstructs.Blob]*vmstructs.Blob{}
	for i, snap := range rec.Snapshots {
		rec.Step(i)
		pc := snap.Regs[rec.CPU().PC]
		b, err := w.vm.Blob(pc)
		if err != nil {
			tb.Fatalf("0x%x: %v", pc, err)
		}
		if less[b] == nil {
			less[b] = w.vm.SafepointsOnly(b)
		}
		pcs, of = append(pcs, pc), append(of, less[b])
	}
	return pcs, of
}

// see infers the methods at each pc. It returns what that took, and how many methods there are.
func see(w *Walker, pcs []uint64, of []*vmstructs.Blob) (took time.Duration, methods int) {
	begin := time.Now()
	for i, pc := range pcs {
		told, _ := w.leaf.At(of[i], pc)
		methods += len(told)
	}
	return time.Since(begin), methods
}

// decodeAll reads each instruction of some nmethods, of each once, and returns what that took.
func decodeAll(w *Walker, of []*vmstructs.Blob) (took time.Duration) {
	done := map[*vmstructs.Blob]bool{}
	for _, b := range of {
		code, err := w.vm.Code(b, nil)
		if err != nil || done[b] {
			continue
		}
		done[b] = true
		begin := time.Now()
		in := arch.Inst{Len: w.cpu.MinInst}
		for at := uint32(0); at < uint32(len(code)); at += in.Len {
			if !w.cpu.Read(code, at, &in) {
				in.Len = w.cpu.MinInst
			}
		}
		took += time.Since(begin)
	}
	return took
}

// leastSights is how many pcs a recording must have: else the benchmark measures something else.
const leastSights = 40

// BenchmarkFirstSight infers the methods at recorded pcs of javac by a walker that knows nothing, and once more. A
// first sight is compared with what it takes to decode all the code of these nmethods, and nothing else: this ratio
// depends little on how fast the machine is. A change that makes first sights faster may make later ones faster, too.
func BenchmarkFirstSight(b *testing.B) {
	for _, file := range recordings(b, "sights") {
		b.Run(filepath.Base(file), func(b *testing.B) {
			var first, later, decoding time.Duration
			n := 0
			for b.Loop() {
				rec, w := recorded(b, file)
				pcs, of := sights(b, rec, w)
				took, methods := see(w, pcs, of)
				again, same := see(w, pcs, of)
				if len(pcs) < leastSights || methods < 2*len(pcs) || same != methods {
					b.Fatalf("%d pcs, %d methods, then %d", len(pcs), methods, same)
				}
				decoding += decodeAll(w, of)
				first, later, n = first+took, later+again, n+len(pcs)
			}
			b.ReportMetric(0, "ns/op") // that is mostly how long it takes to load the recording
			b.ReportMetric(float64(first.Nanoseconds())/float64(n), "ns/first")
			b.ReportMetric(float64(later.Nanoseconds())/float64(n), "ns/later")
			b.ReportMetric(float64(first)/float64(decoding), "first/decode")
		})
	}
}

// TestRecordedFirstSights: what is told at recorded pcs is what was told before, on any machine.
func TestRecordedFirstSights(t *testing.T) {
	for _, file := range recordings(t, "sights") {
		rec, w := recorded(t, file)
		pcs, of := sights(t, rec, w)
		var text bytes.Buffer
		for i, pc := range pcs {
			told, sure := w.leaf.At(of[i], pc)
			fmt.Fprintf(&text, "%x %v:", pc, sure)
			for _, s := range told {
				fmt.Fprintf(&text, " %s@%d(%d)", s.Method.Full(), s.BCI, s.Line)
			}
			text.WriteByte('\n')
		}
		compareGolden(t, strings.TrimSuffix(file, ".walks")+".golden.gz", text.Bytes())
	}
}
