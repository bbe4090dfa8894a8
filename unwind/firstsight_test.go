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

// sights returns the nmethods of the pcs of a recording that TestRecordFirstSights made. The records that only a JVM
// with full records has are removed. Data that only a first sight reads has not been read yet.
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

// see infers the methods at each pc. It returns the time it took, and the number of methods.
func see(w *Walker, pcs []uint64, of []*vmstructs.Blob) (took time.Duration, methods int) {
	begin := time.Now()
	for i, pc := range pcs {
		told, _ := w.leaf.At(of[i], pc)
		methods += len(told)
	}
	return time.Since(begin), methods
}

// decodeAll decodes each instruction of some nmethods once, and returns the time it took.
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

// leastSights is the smallest number of pcs of a recording for which the benchmark is meaningful.
const leastSights = 40

// BenchmarkFirstSight infers the methods at recorded pcs of javac with a new walker, and then once more. The time of a
// first sight is compared with the time to decode all code of these nmethods. This ratio depends little on the
// machine's speed. A change that makes first sights faster may also make later ones faster.
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
			b.ReportMetric(0, "ns/op") // mostly the time to load the recording
			b.ReportMetric(float64(first.Nanoseconds())/float64(n), "ns/first")
			b.ReportMetric(float64(later.Nanoseconds())/float64(n), "ns/later")
			b.ReportMetric(float64(first)/float64(decoding), "first/decode")
		})
	}
}

// TestRecordedFirstSights: on any machine, the results at recorded pcs are those of the recording.
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
