//go:build linux

package events

import (
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/sampler/ring"
	"goprof/testdata/sampletest"
)

// FuzzEventRecord: whatever a record holds, what is read of it lies within the record.
func FuzzEventRecord(f *testing.F) {
	f.Add(sampletest.SampleOf(1, []uint64{1, 2, 3}, 24), uint16(0))
	f.Add(sampletest.RecordOf(9, 0, 7<<32|6, 12345, 1, 2, 3), uint16(480))
	f.Fuzz(func(t *testing.T, content []byte, from uint16) {
		const size, maxFrames = 512, 256
		b, tail := make(ring.Bytes, size), uint64(from)&^7
		for i, c := range content[:min(len(content), size)] {
			b[(tail+uint64(i))%size] = c
		}
		head := tail + uint64(min(len(content), size))
		for at := tail; ; {
			rec, ok := b.Next(at, head)
			if !ok {
				return
			}
			for i, cpu := range []*arch.CPU{amd64.CPU, arm64.CPU} {
				var e ring.Hit
				at, ok := b.ParseHit(rec, i == 0, &e)
				ok = ok && b.ParseMachine(at, rec, cpu, &e.Sample)
				if ok && (e.Raw+uint64(e.RawLen) > rec.End || len(e.Kernel) > maxFrames) {
					t.Fatalf("%+v in %+v", e, rec)
				}
			}
			at = rec.End
		}
	})
}
