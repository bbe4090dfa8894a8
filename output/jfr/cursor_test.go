package jfr

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestSkip: skipping a number of any size moves over the same bytes as reading it, even if the bytes end too soon.
func TestSkip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b []byte
		n, small := rng.IntN(120), rng.IntN(2)*50
		for range n {
			b = appendInt(b, rng.Uint64()>>min(rng.IntN(65)+rng.IntN(small+1), 64))
		}
		if rng.IntN(4) == 0 {
			b = b[:rng.IntN(len(b)+1)]
		}
		read, skipped := newCursor(b, 0), newCursor(bytes.Clone(b), 0)
		for range n {
			read.int()
		}
		if skipped.skip(n); skipped.at != read.at || (skipped.bad == nil) != (read.bad == nil) {
			t.Fatalf("%d numbers in %x: at %d, %v; read: at %d, %v", n, b, skipped.at, skipped.bad, read.at, read.bad)
		}
		read, skipped = newCursor(b, 0), newCursor(b, 0)
		for range n / 3 {
			skipped.skipThree()
			for range 3 {
				read.int()
			}
			if skipped.at != read.at || (skipped.bad == nil) != (read.bad == nil) {
				t.Fatalf("three numbers in %x: at %d, %v; read: at %d, %v", b, skipped.at, skipped.bad, read.at, read.bad)
			}
		}
	}
}
