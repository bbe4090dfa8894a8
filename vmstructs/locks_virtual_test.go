//go:build linux

package vmstructs

import (
	"errors"
	"testing"

	"goprof/process"
)

// tired is a target that answers only a number of reads.
type tired struct {
	process.Target
	left *int
}

var errTired = errors.New("too tired")

func (t tired) Read(addr uint64, b []byte) error {
	if *t.left--; *t.left < 0 {
		return errTired
	}
	return t.Target.Read(addr, b)
}

// TestFindVirtualSaysWhatItLacks: a search for virtual threads that ends early reports that, wherever it ends.
func TestFindVirtualSaysWhatItLacks(t *testing.T) {
	for _, w := range loadVirtual(t) {
		vm, err := Open(w.rec)
		if err != nil {
			t.Fatal(err)
		}
		k, err := vm.NewLocks()
		if err != nil {
			t.Fatal(err)
		}
		find := func(reads int) (seen, used int, err error) {
			left := reads
			seen, _, err = k.FindVirtual(vm.NewContinuations().ReadFrom(tired{w.rec, &left}))
			return seen, reads - left, err
		}
		all, needed, err := find(1 << 30)
		if err != nil || all < 8 {
			t.Fatalf("%d virtual threads: %v", all, err)
		}
		short := 0
		for part := range 20 {
			seen, _, err := find(needed * part / 20)
			if seen < all {
				short++
				if err == nil {
					t.Errorf("%d of %d virtual threads are found, and nothing is said", seen, all)
				}
			}
		}
		if short < 10 {
			t.Errorf("only %d searches were cut short", short)
		}
	}
}
