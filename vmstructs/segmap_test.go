package vmstructs

import (
	"errors"
	"testing"

	"goprof/process"
)

// onesMemory has ones in all bits. It counts its reads.
type onesMemory struct{ reads int }

func (m *onesMemory) Read(_ uint64, p []byte) error {
	m.reads++
	for i := range p {
		p[i] = 1
	}
	return nil
}

func (m *onesMemory) ReadMany([]process.Range) {}

// TestFindBlockIsBounded: a segment map goes back step by step through the largest possible code cache.
func TestFindBlockIsBounded(t *testing.T) {
	h := &codeHeap{low: 1 << 40, high: 1<<40 + maxCodeCache, boundary: 1<<40 + maxCodeCache, segmap: 1 << 44, log2: 6}
	m := &onesMemory{}
	var window [segmapChunk]byte
	if _, err := findBlock(m, h, h.high-1, window[:]); !errors.Is(err, ErrBadBlob) || m.reads > 2*maxHops/segmapChunk {
		t.Errorf("%v after %d reads", err, m.reads)
	}
}
