package leaf

import (
	"encoding/hex"
	"slices"
	"testing"

	"goprof/arch/amd64"
	"goprof/vmstructs"
)

// TestPieces: the code of String.compareTo, cut short, twice. The first instruction, the last one and all between
// belong to the piece, those before and behind do not.
func TestPieces(t *testing.T) {
	code, err := hex.DecodeString("488d7610" + "8bc12bca510f4ed085d259" + "8bd8" + "8bc22bd1520f4ec85a" + "c3")
	if err != nil {
		t.Fatal(err)
	}
	m := codeMap{cpu: amd64.CPU}
	m.begin(code, 0, slices.Values([]uint64{}))
	if len(m.pieces) != 2 {
		t.Fatalf("%d pieces", len(m.pieces))
	}
	for at, want := range map[uint32]*piece{0: nil, 4: &m.pieces[0], 8: &m.pieces[0], 14: &m.pieces[0], 15: nil,
		17: &m.pieces[1], 25: &m.pieces[1], 26: nil} {
		if got := m.pieceAt(m.place(at)); got != want {
			t.Errorf("at %d: %+v, not %+v", at, got, want)
		}
	}
	if p := m.pieceAt(notInCode); p != nil {
		t.Errorf("nowhere: %+v", p)
	}
	end := int32(len(m.list)) // of code that ends with a piece
	if e := questionIn(new(Finder), nil, &m).search(end, false); e.kind != noEvidence {
		t.Errorf("behind the code: %+v", e)
	}
}

// TestLocks: where a monitor is taken or given back.
func TestLocks(t *testing.T) {
	f := &Finder{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{}}
	for _, synchronized := range []bool{false, true} {
		m := &vmstructs.Method{Synchronized: synchronized}
		f.bytecode[m] = []vmstructs.Bytecode{{BCI: 0, Op: vmstructs.OpMonitorenter}, {BCI: 1, Op: vmstructs.OpIadd},
			{BCI: 2, Op: vmstructs.OpMonitorexit}, {BCI: 3, Op: vmstructs.OpReturn}}
		for bci, want := range map[int32]bool{-1: synchronized, 0: true, 1: false, 2: true, 3: synchronized} {
			if got := f.locks(vmstructs.Scope{Method: m, BCI: bci}); got != want {
				t.Errorf("synchronized %v, at %d: %v", synchronized, bci, got)
			}
		}
	}
}

// TestBehindUnread: if methods could not be read at a piece, they are not known behind it either.
func TestBehindUnread(t *testing.T) {
	if s := (&Finder{}).behindPiece(nil); s != nil {
		t.Errorf("%v", s)
	}
}
