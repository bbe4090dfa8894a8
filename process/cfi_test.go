package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/google/go-cmp/cmp"

	"goprof/arch/amd64"
)

// frameSection makes an .eh_frame section at address 0x1000, with one CIE and one FDE for [0x400, 0x500). Code is
// aligned to 4, data to -8, and the return address is in register 30.
func frameSection(augmentation string, augData, cieProgram, fdeProgram []byte) []byte {
	entry := func(body []byte) []byte {
		for len(body)%4 != 0 {
			body = append(body, cfaNop)
		}
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	cie := []byte{0, 0, 0, 0, 1}
	cie = append(append(cie, augmentation...), 0)
	cie = append(cie, 4, 0x78, 30)
	if augmentation != "" {
		cie = append(append(cie, byte(len(augData))), augData...)
	}
	section := entry(append(cie, cieProgram...))
	fde := binary.LittleEndian.AppendUint32(nil, uint32(len(section)+4))
	fde = binary.LittleEndian.AppendUint64(fde, 0x400)
	fde = binary.LittleEndian.AppendUint64(fde, 0x100)
	if augmentation != "" {
		fde = append(fde, 0)
	}
	section = append(section, entry(append(fde, fdeProgram...))...)
	return append(section, 0, 0, 0, 0)
}

func rowOf(section []byte, addr uint64) (*Row, error) {
	table := &cfiTable{frames: section, framesAddr: 0x1000}
	if err := table.buildIndex(); err != nil {
		return nil, err
	}
	return table.row(addr, new(cfiMachine))
}

// cat joins pieces of a program: instructions and their operands.
func cat(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

// TestCFAInstructions executes each instruction, because the installed libraries may not use all of them.
func TestCFAInstructions(t *testing.T) {
	expr := []byte{0x77, 8}
	sp := Rule{Kind: RuleRegister, Reg: 31}
	atSP := func(off int32) Rule { return Rule{Kind: RuleRegister, Reg: 31, Off: off} }
	saved := func(reg uint8, kind RuleKind, off int32) []SavedReg {
		return []SavedReg{{reg, Rule{Kind: kind, Off: off}}}
	}
	for _, c := range []struct {
		name    string
		program []byte
		addr    uint64
		want    Row
	}{
		{"nothing", nil, 0x400, Row{CFA: sp}},
		{"before an advance", cat(cfaAdvance|2, cfaDefCFAOffset, 16), 0x407, Row{CFA: sp}},
		{"after it", cat(cfaAdvance|2, cfaDefCFAOffset, 16), 0x408, Row{CFA: atSP(16)}},
		{"advance1", cat(cfaAdvance1, 3, cfaDefCFAOffset, 16), 0x40c, Row{CFA: atSP(16)}},
		{"advance2", cat(cfaAdvance2, 3, 0, cfaDefCFAOffset, 16), 0x40c, Row{CFA: atSP(16)}},
		{"advance4", cat(cfaAdvance4, 3, 0, 0, 0, cfaDefCFAOffset, 16), 0x40c, Row{CFA: atSP(16)}},
		{"def_cfa", cat(cfaDefCFA, 29, 0x80, 1), 0x400, Row{CFA: Rule{Kind: RuleRegister, Reg: 29, Off: 128}}},
		{"def_cfa_register", cat(cfaDefCFAOffset, 16, cfaDefCFARegister, 29), 0x400,
			Row{CFA: Rule{Kind: RuleRegister, Reg: 29, Off: 16}}},
		{"def_cfa_sf", cat(cfaDefCFASF, 29, 0x7e), 0x400, Row{CFA: Rule{Kind: RuleRegister, Reg: 29, Off: 16}}},
		{"def_cfa_offset_sf", cat(cfaDefCFAOffsetSF, 0x7e), 0x400, Row{CFA: atSP(16)}},
		{"def_cfa_expression", cat(cfaDefCFAExpression, 2, expr), 0x400, Row{CFA: Rule{Kind: RuleValExpr, Expr: expr}}},
		{"offset", cat(cfaOffset|29, 2), 0x400, Row{CFA: sp, Saved: saved(29, RuleOffset, -16)}},
		{"offset_extended", cat(cfaOffsetExtended, 29, 2), 0x400, Row{CFA: sp, Saved: saved(29, RuleOffset, -16)}},
		{"offset_extended_sf", cat(cfaOffsetExtendedSF, 29, 0x7e), 0x400, Row{CFA: sp, Saved: saved(29, RuleOffset, 16)}},
		{"negative_offset_extended", cat(cfaGNUNegativeOffsetX, 29, 2), 0x400,
			Row{CFA: sp, Saved: saved(29, RuleOffset, 16)}},
		{"val_offset", cat(cfaValOffset, 31, 2), 0x400, Row{CFA: sp, Saved: saved(31, RuleValOffset, -16)}},
		{"val_offset_sf", cat(cfaValOffsetSF, 31, 0x7e), 0x400, Row{CFA: sp, Saved: saved(31, RuleValOffset, 16)}},
		{"expression", cat(cfaExpression, 19, 2, expr), 0x400,
			Row{CFA: sp, Saved: []SavedReg{{19, Rule{Kind: RuleExpr, Expr: expr}}}}},
		{"val_expression", cat(cfaValExpression, 19, 2, expr), 0x400,
			Row{CFA: sp, Saved: []SavedReg{{19, Rule{Kind: RuleValExpr, Expr: expr}}}}},
		{"register", cat(cfaRegister, 30, 9), 0x400, Row{CFA: sp, Saved: []SavedReg{{30, Rule{Kind: RuleRegister, Reg: 9}}}}},
		{"undefined", cat(cfaUndefined, 30), 0x400, Row{CFA: sp, Saved: saved(30, RuleUndefined, 0)}},
		{"same_value", cat(cfaOffset|29, 2, cfaSameValue, 29), 0x400, Row{CFA: sp}},
		{"restore", cat(cfaOffset|19, 2, cfaRestore|19), 0x400, Row{CFA: sp}},
		{"restore_extended", cat(cfaOffset|19, 2, cfaRestoreExtended, 19), 0x400, Row{CFA: sp}},
		{"remember and restore", cat(cfaOffset|29, 2, cfaRememberState, cfaDefCFA, 29, 16, cfaAArch64NegateRA, cfaRestore|29,
			cfaAdvance|1, cfaRestoreState),
			0x404, Row{CFA: sp, Saved: saved(29, RuleOffset, -16)}},
		{"signed return address", cat(cfaAArch64NegateRA, cfaAdvance|1, cfaAArch64NegateRA), 0x400,
			Row{CFA: sp, SignedRA: true}},
		{"no longer signed", cat(cfaAArch64NegateRA, cfaAdvance|1, cfaAArch64NegateRA), 0x404, Row{CFA: sp}},
		{"args_size", cat(cfaGNUArgsSize, 0x90, 1, cfaDefCFAOffset, 32), 0x400, Row{CFA: atSP(32)}},
		{"vector registers", cat(cfaOffsetExtended, 72, 2, cfaRestoreExtended, 72, cfaUndefined, 80), 0x400, Row{CFA: sp}},
	} {
		t.Run(c.name, func(t *testing.T) {
			section := frameSection("zR", []byte{encAbsPtr}, cat(cfaDefCFA, 31, 0), c.program)
			got, err := rowOf(section, c.addr)
			if err != nil {
				t.Fatal(err)
			}
			c.want.RA = 30
			if c.want.Saved == nil {
				c.want.Saved = []SavedReg{}
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCFIErrors(t *testing.T) {
	remember := bytes.Repeat([]byte{cfaRememberState}, maxRemembered+1)
	for _, c := range []struct {
		name    string
		program []byte
		want    error
	}{
		{"unknown instruction", cat(0x3f, 0), ErrBadCFI},
		{"set_loc", cat(cfaSetLoc, 0, 0, 0, 0, 0, 0, 0, 0), ErrBadCFI},
		{"restore of nothing", cat(cfaRestoreState), ErrBadCFI},
		{"too many states", remember, ErrTooLong},
		{"expression too long", cat(cfaExpression, 1, 0xff, 0x7f), ErrBadCFI},
		{"operand missing", cat(cfaNop, cfaNop, cfaDefCFA), ErrBadCFI},
		{"number without end", bytes.Repeat([]byte{0x80 | 0x11}, 12), nil},
		{"huge offset", cat(cfaDefCFAOffset, bytes.Repeat([]byte{0xff}, 8), 1), ErrBadCFI},
		{"huge factored offset", cat(cfaOffset|3, bytes.Repeat([]byte{0xff}, 8), 1), ErrBadCFI},
		{"huge negative offset", cat(cfaGNUNegativeOffsetX, 3, bytes.Repeat([]byte{0xff}, 8), 1), ErrBadCFI},
		{"frame address from a vector register", cat(cfaDefCFA, 72, 0), ErrBadCFI},
		{"register of an expression", cat(cfaDefCFAExpression, 1, 0x77, cfaDefCFARegister, 3), ErrBadCFI},
	} {
		_, err := rowOf(frameSection("zR", []byte{encAbsPtr}, cat(cfaDefCFA, 31, 0), c.program), 0x400)
		if c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	good := frameSection("zR", []byte{encAbsPtr}, cat(cfaDefCFA, 31, 0), nil)
	for _, addr := range []uint64{0, 0x3ff, 0x500, ^uint64(0)} {
		if _, err := rowOf(good, addr); !errors.Is(err, ErrNoCFI) {
			t.Errorf("at %#x: %v", addr, err)
		}
	}
	for name, section := range map[string][]byte{
		"no frame address":  frameSection("zR", []byte{encAbsPtr}, nil, nil),
		"a CIE that moves":  frameSection("zR", []byte{encAbsPtr}, cat(cfaDefCFA, 31, 0, cfaAdvance|1), nil),
		"unknown letter":    frameSection("zX", []byte{0}, cat(cfaDefCFA, 31, 0), nil),
		"old augmentation":  frameSection("eh", []byte{0}, cat(cfaDefCFA, 31, 0), nil),
		"indirect pointers": frameSection("zR", []byte{encIndirect | encAbsPtr}, cat(cfaDefCFA, 31, 0), nil),
		"data missing":      frameSection("zRPL", []byte{0}, cat(cfaDefCFA, 31, 0), nil),
	} {
		if row, err := rowOf(section, 0x400); err == nil {
			t.Errorf("%s: %+v", name, row)
		}
	}
}

func TestAugmentations(t *testing.T) {
	personality := append([]byte{encAbsPtr}, make([]byte, 8)...)
	for _, c := range []struct {
		letters string
		data    []byte
		signal  bool
	}{
		{"", nil, false},
		{"zR", []byte{0}, false},
		{"zRS", []byte{0}, true},
		{"zSR", []byte{0}, true},
		{"zPLR", cat(personality, 0x1b, 0), false},
		{"zPLRS", cat(encIndirect|encPCRel|encSData4, 1, 2, 3, 4, 0x1b, 0), true},
		{"zRB", []byte{0}, false},
	} {
		row, err := rowOf(frameSection(c.letters, c.data, cat(cfaDefCFA, 31, 0), nil), 0x400)
		if err != nil || row.Signal != c.signal {
			t.Errorf("%q: %+v, %v", c.letters, row, err)
		}
	}
}

// TestCFIAgainstDelve compares rows with those of delve's reader. After DW_CFA_restore delve wrongly calls registers
// undefined, so these registers are not compared.
func TestCFIAgainstDelve(t *testing.T) {
	for _, path := range oracleFiles(t, amd64.CPU.Machine) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			table := loadCFI(t, path)
			frames := table.frames
			if i := bytes.LastIndex(frames, []byte{0, 0, 0, 0}); i > 0 && i+4 == len(frames) {
				frames = frames[:i] // the zero that ends the section
			}
			fdes, err := frame.Parse(frames, binary.LittleEndian, 0, 8, table.framesAddr)
			if err != nil {
				t.Fatal(err)
			}
			var m cfiMachine
			compared, wrong := 0, 0
			for i, fde := range fdes {
				if i%7 != 0 || fde.End() <= fde.Begin() {
					continue
				}
				for _, addr := range []uint64{fde.Begin(), (fde.Begin() + fde.End()) / 2, fde.End() - 1} {
					ours, err := table.row(addr, &m)
					if err != nil {
						t.Fatalf("%#x: %v", addr, err)
					}
					theirs, err := fde.EstablishFrame(addr)
					if err != nil {
						continue
					}
					compared++
					if !agrees(ours, theirs) {
						if wrong++; wrong < 10 {
							t.Errorf("%#x: ours %+v, delve's %+v %+v", addr, ours, theirs.CFA, theirs.Regs)
						}
					}
				}
			}
			t.Logf("%d rows compared", compared)
			if compared < 100 {
				t.Error("too few rows")
			}
		})
	}
}

func agrees(ours *Row, theirs *frame.FrameContext) bool {
	switch theirs.CFA.Rule {
	case frame.RuleCFA:
		if ours.CFA.Kind != RuleRegister || uint64(ours.CFA.Reg) != theirs.CFA.Reg ||
			int64(ours.CFA.Off) != theirs.CFA.Offset {
			return false
		}
	case frame.RuleExpression:
		if ours.CFA.Kind != RuleValExpr || !bytes.Equal(ours.CFA.Expr, theirs.CFA.Expression) {
			return false
		}
	}
	for reg, rule := range theirs.Regs {
		i := slices.IndexFunc(ours.Saved, func(s SavedReg) bool { return uint64(s.Reg) == reg })
		switch rule.Rule {
		case frame.RuleOffset:
			if i < 0 || ours.Saved[i].Rule.Kind != RuleOffset || int64(ours.Saved[i].Rule.Off) != rule.Offset {
				return false
			}
		case frame.RuleExpression:
			if i < 0 || ours.Saved[i].Rule.Kind != RuleExpr || !bytes.Equal(ours.Saved[i].Rule.Expr, rule.Expression) {
				return false
			}
		}
	}
	for _, s := range ours.Saved {
		if _, ok := theirs.Regs[uint64(s.Reg)]; !ok {
			return false
		}
	}
	return true
}

func BenchmarkRowCold(b *testing.B) {
	for _, path := range oracleFiles(b, thisMachine) {
		b.Run(filepath.Base(path), func(b *testing.B) {
			table := loadCFI(b, path)
			n := len(table.pairs) / 8
			var m cfiMachine
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 7919) % n
				start := table.hdrAddr + uint64(int64(int32(binary.LittleEndian.Uint32(table.pairs[i*8:]))))
				if _, err := table.row(start+4, &m); err != nil && !errors.Is(err, ErrNoCFI) {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzCFI reads a hostile section, both with goprof's own index and with a hostile search table.
func FuzzCFI(f *testing.F) {
	f.Fuzz(func(t *testing.T, frames, pairs []byte, addr uint64) {
		var m cfiMachine
		table := &cfiTable{frames: frames, framesAddr: 0x1000}
		if table.buildIndex() == nil {
			for _, ref := range table.index[:min(len(table.index), 16)] {
				for _, at := range []uint64{ref.start, ref.start + 1, ref.start + addr%64, addr} {
					checkFind(t, table, at)
					checkRow(t, table, at, &m)
				}
			}
		}
		table = &cfiTable{frames: frames, framesAddr: 0x1000, hdrAddr: 0x800, pairs: pairs[:len(pairs)&^7]}
		checkRow(t, table, addr, &m)
	})
}

// checkFind compares a lookup with a search through the whole section.
func checkFind(t *testing.T, table *cfiTable, addr uint64) {
	best, found := uint64(0), false
	ends := map[uint64]uint64{} // the ends of all functions that begin nearest below addr
	for off := uint64(0); ; {
		e, isFDE, next, err := table.readFDE(off)
		if next == 0 {
			break
		}
		if next <= off {
			t.Fatalf("from %#x on to %#x", off, next)
		}
		if isFDE && err == nil && e.size > 0 && e.start <= addr && (!found || e.start >= best) {
			if e.start != best {
				clear(ends)
			}
			best, found = e.start, true
			ends[e.size] = off
		}
		off = next
	}
	e, err := table.find(addr)
	if err == nil && (!found || e.start != best || addr-e.start >= e.size) {
		t.Fatalf("%#x is found in %#x+%#x, best is %#x", addr, e.start, e.size, best)
	}
	if err != nil && len(ends) == 1 {
		for size := range ends {
			if addr-best < size {
				t.Fatalf("%#x is not found (%v), but is in %#x+%#x", addr, err, best, size)
			}
		}
	}
}

// checkRow computes the row at addr and checks everything that other code relies on. m has been used before.
func checkRow(t *testing.T, table *cfiTable, addr uint64, m *cfiMachine) {
	row, err := table.row(addr, m)
	if (row == nil) == (err == nil) {
		t.Fatalf("%v, %v", row, err)
	}
	if m.steps > maxCFASteps+1 {
		t.Fatalf("%d steps", m.steps)
	}
	if fresh, _ := table.row(addr, new(cfiMachine)); !reflect.DeepEqual(row, fresh) {
		t.Fatalf("%+v, at first use %+v", row, fresh)
	}
	if row == nil {
		return
	}
	if k := row.CFA.Kind; k != RuleRegister && k != RuleValExpr || row.RA >= maxRegs || row.CFA.Reg >= maxRegs {
		t.Fatalf("%+v", row)
	}
	for i, s := range row.Saved {
		if s.Reg >= maxRegs || s.Rule.Reg >= maxRegs || s.Rule.Kind > RuleValExpr || len(s.Rule.Expr) > maxExpr ||
			i > 0 && s.Reg <= row.Saved[i-1].Reg {
			t.Fatalf("%+v", row)
		}
	}
}
