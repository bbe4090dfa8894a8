//go:build linux

package offcpu

import (
	"bytes"
	"testing"
)

// TestArena: pieces do not overlap, the arena ends, and an emptied arena begins anew.
func TestArena(t *testing.T) {
	a, err := newArena(3 * arenaKept)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for range 2 {
		first, second := a.take(arenaKept), a.take(arenaKept)
		if len(first) != arenaKept || len(second) != arenaKept || cap(first) != len(first) {
			t.Fatalf("%d and %d bytes", len(first), len(second))
		}
		for i := range first {
			first[i], second[i] = 1, 2
		}
		if bytes.Contains(first, []byte{2}) {
			t.Fatal("pieces overlap")
		}
		if rest := a.take(arenaKept + 1); rest != nil {
			t.Fatalf("%d bytes more than there are", len(rest))
		}
		if a.take(arenaKept) == nil {
			t.Fatal("no room, where there is some")
		}
		a.empty()
	}
	if b := a.take(2 * arenaKept); b[0] != 1 || b[2*arenaKept-1] != 0 {
		t.Error("memory beyond what is kept was not given back")
	}
}
