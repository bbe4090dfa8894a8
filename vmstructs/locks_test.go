package vmstructs

import (
	"encoding/binary"
	"slices"
	"testing"
)

// TestScopeLocks: C2's record of holdMonitor in JDK 27, which keeps the object in rbp, and two that were made after
// code/debugInfo.cpp.
func TestScopeLocks(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want []siteLock
	}{
		{"in the frame pointer", []byte{2, 0x82, 1, 0xd3, 3, 0}, []siteLock{{scope: 1, at: 40, saved: true}}},
		{"in the frame, narrow", []byte{2, 0x82, 1, 1 + 9 + 3<<5, 0}, []siteLock{{scope: 1, at: 12, narrow: true}}},
		{"eliminated, then a constant, then in the frame",
			[]byte{4, 1, 1, 1 + 2 + 1<<5, 1, 1, 3, 9, 0, 1, 1, 1 + 2 + 2<<5, 0},
			[]siteLock{{scope: 1, at: 8}}},
		{"of an object that is allocated nowhere", []byte{3, 1, 6, 1}, nil},
		{"cut off", []byte{9, 1, 1, 1 + 2}, nil},
	} {
		d := debugInfo{scopes: c.b}
		got := d.scopeLocks(nil, 1, 0, 1)
		if c.name == "cut off" {
			if len(got) > 1 {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, should be %+v", c.name, got, c.want)
		}
	}
}

// FuzzLockSites decodes the locks in arbitrary debug information.
func FuzzLockSites(f *testing.F) {
	for _, b := range capturedDebugInfo {
		f.Add([]byte(b.scopes), int32(1), b.x)
	}
	f.Add([]byte{0, 2, 3, 2, 1, 1, 8, 2, 0x82, 1, 0xd3, 3, 0}, int32(1), uint8(1))
	f.Fuzz(func(t *testing.T, scopes []byte, offset int32, x uint8) {
		d := debugInfo{scopes: scopes}
		got := d.locks(offset, x)
		if len(got) > maxFrameLocks {
			t.Fatalf("%d locks", len(got))
		}
		for _, l := range got {
			if l.scope < 0 || l.scope >= maxInline {
				t.Fatalf("in scope %d", l.scope)
			}
		}
	})
}

// FuzzLockStack decodes LockStacks of arbitrary bytes.
func FuzzLockStack(f *testing.F) {
	f.Add(binary.LittleEndian.AppendUint64(make([]byte, 8), 1<<40), uint16(8), uint16(1920))
	f.Fuzz(func(t *testing.T, b []byte, base, stack uint16) {
		k := &Locks{vm: &VM{l: &layout{locks: lockLayout{stack: offset(stack), base: offset(base), top: sized{0, 4}}}}}
		if refs := k.lockStack(b); 8*len(refs) > len(b) {
			t.Fatalf("%d references in %d bytes", len(refs), len(b))
		}
	})
}
