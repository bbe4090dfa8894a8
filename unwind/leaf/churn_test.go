package leaf

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"goprof/process"
	"goprof/testdata/captured"
	"goprof/vmstructs"
)

// churning is a recorded process that unloads what is being read: reads fail by lot, some in a row.
type churning struct {
	*captured.Recording
	lot   *rand.Rand // nil: no read fails
	fails int        // so many of the next reads fail
}

var errUnloaded = errors.New("unloaded")

func (c *churning) Read(addr uint64, p []byte) error {
	if c.lot != nil && c.fails == 0 && c.lot.IntN(20) == 0 {
		c.fails = 1 + c.lot.IntN(3)
	}
	if c.fails > 0 {
		c.fails--
		return errUnloaded
	}
	return c.Recording.Read(addr, p)
}

func (c *churning) ReadMany(rs []process.Range) {
	for i := range rs {
		rs[i].OK = c.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// TestChurning asks about code that a program unloads in the meantime. goprof does not panic, and each answer has
// methods.
func TestChurning(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 2
	}
	for _, folder := range []string{"sights", "walks", "arm64", "rare", "contended", "virtual"} {
		for _, file := range recordings(t, folder) {
			t.Run(filepath.Base(file), func(t *testing.T) {
				rec, _ := recorded(t, file)
				asked := 0
				for seed := range rounds {
					asked += askChurning(t, rec, rand.New(rand.NewPCG(uint64(seed), 11)))
				}
				t.Logf("%d questions", asked)
				if asked == 0 {
					t.Error("no code was asked about")
				}
			})
		}
	}
}

// askChurning asks about the pcs of a recording and about the return addresses on its stacks.
func askChurning(t *testing.T, rec *captured.Recording, lot *rand.Rand) (asked int) {
	target := &churning{Recording: rec}
	rec.Step(0)
	vm, err := vmstructs.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	f := New(target, vm)
	for i, snap := range rec.Snapshots {
		rec.Step(i)
		pcs := []uint64{snap.Regs[rec.CPU().PC]}
		for at := 0; at+8 <= min(len(snap.Stack), 2048); at += 8 {
			pcs = append(pcs, binary.LittleEndian.Uint64(snap.Stack[at:]))
		}
		for _, pc := range pcs {
			target.lot, target.fails = nil, 0
			b, err := vm.Blob(pc)
			if err != nil || b.Kind != vmstructs.Nmethod {
				continue
			}
			if vm.FullRecords(b) {
				b = vm.SafepointsOnly(b)
			}
			target.lot = lot
			asked++
			if lot.IntN(2) == 0 { // anywhere in this code
				pc = b.Begin + lot.Uint64N(b.End-b.Begin)
			}
			if s, _ := f.At(b, pc); len(s) == 0 {
				t.Fatalf("no method at %#x", pc)
			}
			for _, name := range []string{"", "jlong_disjoint_arraycopy", "load_unknown_inline Runtime1 stub"} {
				if s, _, err := f.Called(b, pc, name); err == nil && len(s) == 0 {
					t.Fatalf("no method has called at %#x", pc)
				}
			}
		}
	}
	return asked
}
