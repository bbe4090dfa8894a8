//go:build linux

package vmstructs

import "testing"

// TestLiveSafepoints: if a JVM records only safepoints, each record is one. If a JVM records each instruction, some
// records are not safepoints. Without these, the others are the same as if it recorded only safepoints. Implicit null
// checks are in the code.
func TestLiveSafepoints(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		full  bool
	}{{"safepoints", nil, false}, {"all", []string{"-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"}, true}} {
		t.Run(c.name, func(t *testing.T) {
			eachLive(t, c.flags, func(t *testing.T, v *live) {
				compiled, full, nulls := 0, 0, 0
				err := v.vm.eachBlock(func(h *codeHeap, blk block) error {
					b, err := v.vm.blobAt(h, blk.addr)
					if err != nil || b.Kind != Nmethod {
						return nil // this block was freed, or has other contents now
					}
					compiled++
					if v.vm.FullRecords(b) {
						full++
					}
					checkSafepoints(t, v.vm, b)
					for _, c := range v.vm.nullChecks(b) {
						nulls++
						if size := b.End - b.Begin; uint64(c.at) >= size || uint64(c.to) >= size {
							t.Errorf("%s: a null check at %#x goes on at %#x of %#x", b.Method.Full(), c.at, c.to, size)
						}
						if to, ok := v.vm.OnNull(b, c.at); !ok || to != c.to {
							t.Errorf("%s: the null check at %#x is not found", b.Method.Full(), c.at)
						}
					}
					return nil
				})
				t.Logf("%d compiled methods, %d with full records, %d implicit null checks: %v", compiled, full, nulls, err)
				if compiled < 20 || nulls < 20 || c.full && full < compiled/2 || !c.full && full > 0 {
					t.Errorf("%d compiled methods, %d with full records", compiled, full)
				}
			})
		})
	}
}

func checkSafepoints(t *testing.T, vm *VM, b *Blob) {
	t.Helper()
	if b.safepoints.bits == nil {
		return // the method was just made, and has no OopMaps yet
	}
	less := vm.SafepointsOnly(b)
	safe, others := 0, 0
	for pc := range b.Records() {
		if vm.IsSafepoint(b, pc) {
			safe++
		} else {
			others++
		}
		if less.HasPcDesc(pc) != vm.IsSafepoint(b, pc) {
			t.Errorf("%s: the record at %#x is a safepoint or not", b.Method.Full(), pc)
		}
	}
	maps, err := vm.oopMaps(b)
	if err == nil && len(maps) != safe {
		t.Errorf("%s has %d OopMaps, %d records that are safepoints, %d others", b.Method.Full(), len(maps), safe, others)
	}
	if vm.FullRecords(b) != (others > 0) || vm.FullRecords(less) {
		t.Errorf("%s: full records: %v with %d others; without them %v", b.Method.Full(), vm.FullRecords(b), others,
			vm.FullRecords(less))
	}
}
