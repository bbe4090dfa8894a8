package process

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// Call frame instructions (DWARF 5, section 6.4.2 and 7.24). The lower six bits of the first three hold an operand.
const (
	cfaAdvance = 0x40
	cfaOffset  = 0x80
	cfaRestore = 0xc0

	cfaNop                = 0x00
	cfaSetLoc             = 0x01
	cfaAdvance1           = 0x02
	cfaAdvance2           = 0x03
	cfaAdvance4           = 0x04
	cfaOffsetExtended     = 0x05
	cfaRestoreExtended    = 0x06
	cfaUndefined          = 0x07
	cfaSameValue          = 0x08
	cfaRegister           = 0x09
	cfaRememberState      = 0x0a
	cfaRestoreState       = 0x0b
	cfaDefCFA             = 0x0c
	cfaDefCFARegister     = 0x0d
	cfaDefCFAOffset       = 0x0e
	cfaDefCFAExpression   = 0x0f
	cfaExpression         = 0x10
	cfaOffsetExtendedSF   = 0x11
	cfaDefCFASF           = 0x12
	cfaDefCFAOffsetSF     = 0x13
	cfaValOffset          = 0x14
	cfaValOffsetSF        = 0x15
	cfaValExpression      = 0x16
	cfaAArch64NegateRA    = 0x2d // AADWARF64; the same number is GNU_window_save on SPARC
	cfaGNUArgsSize        = 0x2e
	cfaGNUNegativeOffsetX = 0x2f
)

const (
	maxRemembered = 8
	maxCFASteps   = 1 << 16
	maxExpr       = 1 << 12
)

// unspecified is the rule of a register that no instruction has named. The ABI defines its value. Rows leave such a
// register out.
const unspecified RuleKind = 0xff

type cfiState struct {
	cfa    Rule
	regs   [maxRegs]Rule
	signed bool
}

func (s *cfiState) reset() {
	*s = cfiState{cfa: Rule{Kind: unspecified}}
	for i := range s.regs {
		s.regs[i].Kind = unspecified
	}
}

// cfiMachine executes call frame programs. It is scratch memory: large, and reused.
type cfiMachine struct {
	cfiState
	initial    cfiState // the state after the CIE's program, which DW_CFA_restore restores
	remembered [maxRemembered]cfiState
	depth      int
	steps      int
	fde        *fde
	loc        uint64
	addr       uint64 // the address of the wanted row
	inCIE      bool
}

var cfiMachines = sync.Pool{New: func() any { return new(cfiMachine) }}

// run executes the programs of a function's CIE and FDE up to addr.
func (m *cfiMachine) run(f *fde, addr uint64) (*Row, error) {
	m.reset()
	m.depth, m.steps = 0, 0
	m.fde, m.loc, m.addr = f, f.start, addr
	m.inCIE = true
	if err := m.exec(f.cie.program); err != nil {
		return nil, err
	}
	m.inCIE = false
	m.initial = m.cfiState
	if err := m.exec(f.program); err != nil {
		return nil, err
	}
	return m.row()
}

func (m *cfiMachine) row() (*Row, error) {
	if m.cfa.Kind == unspecified {
		return nil, fmt.Errorf("%w: no rule for the frame address", ErrBadCFI)
	}
	var saved [maxRegs]SavedReg
	n := 0
	for i := range m.regs {
		if k := m.regs[i].Kind; k != unspecified && k != RuleSame {
			saved[n] = SavedReg{uint8(i), m.regs[i]}
			n++
		}
	}
	return &Row{CFA: m.cfa, RA: uint8(m.fde.ra), Signal: m.fde.signal, SignedRA: m.signed,
		Saved: slices.Clone(saved[:n])}, nil
}

// exec executes a program until its location has passed addr.
func (m *cfiMachine) exec(program []byte) error {
	c := cursor{b: program}
	for c.left() > 0 {
		if m.steps++; m.steps > maxCFASteps {
			return fmt.Errorf("%w: call frame program", ErrTooLong)
		}
		op := c.u8()
		passed, err := m.step(op, &c)
		if err != nil {
			return err
		}
		if c.bad {
			return fmt.Errorf("%w: call frame program ends early", ErrBadCFI)
		}
		if passed {
			return nil
		}
	}
	return nil
}

// step executes one instruction. passed reports that the next row is beyond addr.
func (m *cfiMachine) step(op uint8, c *cursor) (passed bool, err error) {
	switch op & 0xc0 {
	case cfaAdvance:
		return m.advance(uint64(op & 0x3f))
	case cfaOffset:
		return false, m.setOffset(uint64(op&0x3f), RuleOffset, m.factored(c.uleb()))
	case cfaRestore:
		return false, m.restore(uint64(op & 0x3f))
	}
	switch op {
	case cfaNop:
	case cfaAdvance1:
		return m.advance(uint64(c.u8()))
	case cfaAdvance2:
		return m.advance(uint64(c.u16()))
	case cfaAdvance4:
		return m.advance(uint64(c.u32()))
	case cfaRememberState, cfaRestoreState:
		return false, m.stack(op)
	case cfaDefCFA, cfaDefCFASF, cfaDefCFARegister, cfaDefCFAOffset, cfaDefCFAOffsetSF, cfaDefCFAExpression:
		return false, m.defineCFA(op, c)
	case cfaAArch64NegateRA:
		m.signed = !m.signed
	case cfaGNUArgsSize:
		c.uleb()
	default:
		return false, m.registerRule(op, c)
	}
	return false, nil
}

// advance moves on to the next row.
func (m *cfiMachine) advance(delta uint64) (bool, error) {
	if m.inCIE {
		return false, fmt.Errorf("%w: a CIE that advances", ErrBadCFI)
	}
	m.loc += delta * m.fde.codeAlign
	return m.loc > m.addr, nil
}

func (m *cfiMachine) stack(op uint8) error {
	if op == cfaRememberState {
		if m.depth == maxRemembered {
			return fmt.Errorf("%w: more than %d states remembered", ErrTooLong, maxRemembered)
		}
		m.remembered[m.depth] = m.cfiState
		m.depth++
		return nil
	}
	if m.depth == 0 {
		return fmt.Errorf("%w: no state to restore", ErrBadCFI)
	}
	m.depth--
	m.cfiState = m.remembered[m.depth]
	return nil
}

func (m *cfiMachine) defineCFA(op uint8, c *cursor) error {
	switch op {
	case cfaDefCFA, cfaDefCFASF, cfaDefCFARegister:
		reg := c.uleb()
		if reg >= maxRegs {
			return fmt.Errorf("%w: frame address from register %d", ErrBadCFI, reg)
		}
		if op == cfaDefCFARegister {
			if m.cfa.Kind != RuleRegister {
				return fmt.Errorf("%w: register of no frame address", ErrBadCFI)
			}
			m.cfa.Reg = uint8(reg)
			return nil
		}
		m.cfa = Rule{Kind: RuleRegister, Reg: uint8(reg)}
	case cfaDefCFAExpression:
		expr, err := expression(c)
		m.cfa = Rule{Kind: RuleValExpr, Expr: expr}
		return err
	}
	if m.cfa.Kind != RuleRegister {
		return fmt.Errorf("%w: offset of no frame address", ErrBadCFI)
	}
	var off int64
	if op == cfaDefCFASF || op == cfaDefCFAOffsetSF {
		off = c.sleb() * m.fde.dataAlign
	} else {
		off = int64(c.uleb())
	}
	if off != int64(int32(off)) {
		return fmt.Errorf("%w: offset %d", ErrBadCFI, off)
	}
	m.cfa.Off = int32(off)
	return nil
}

// registerRule executes an instruction whose first operand is a register.
func (m *cfiMachine) registerRule(op uint8, c *cursor) error {
	if op == cfaSetLoc { // only in .debug_frame; compilers do not write it
		return fmt.Errorf("%w: set_loc", ErrBadCFI)
	}
	reg := c.uleb()
	switch op {
	case cfaOffsetExtended:
		return m.setOffset(reg, RuleOffset, m.factored(c.uleb()))
	case cfaOffsetExtendedSF:
		return m.setOffset(reg, RuleOffset, m.signedFactored(c.sleb()))
	case cfaGNUNegativeOffsetX:
		return m.setOffset(reg, RuleOffset, -m.factored(c.uleb()))
	case cfaValOffset:
		return m.setOffset(reg, RuleValOffset, m.factored(c.uleb()))
	case cfaValOffsetSF:
		return m.setOffset(reg, RuleValOffset, m.signedFactored(c.sleb()))
	case cfaRestoreExtended:
		return m.restore(reg)
	case cfaUndefined:
		return m.set(reg, Rule{Kind: RuleUndefined})
	case cfaSameValue:
		return m.set(reg, Rule{Kind: RuleSame})
	case cfaRegister:
		other := c.uleb()
		if other >= maxRegs {
			return m.set(reg, Rule{Kind: RuleUndefined})
		}
		return m.set(reg, Rule{Kind: RuleRegister, Reg: uint8(other)})
	case cfaExpression, cfaValExpression:
		expr, err := expression(c)
		if err != nil {
			return err
		}
		kind := RuleExpr
		if op == cfaValExpression {
			kind = RuleValExpr
		}
		return m.set(reg, Rule{Kind: kind, Expr: expr})
	}
	return fmt.Errorf("%w: call frame instruction %#x", ErrBadCFI, op)
}

// badOffset stands for an offset that is impossible in a frame.
const badOffset = math.MaxInt64

func (m *cfiMachine) factored(v uint64) int64 {
	if v > math.MaxInt32 {
		return badOffset
	}
	return int64(v) * m.fde.dataAlign
}

func (m *cfiMachine) signedFactored(v int64) int64 {
	if v != int64(int32(v)) {
		return badOffset
	}
	return v * m.fde.dataAlign
}

func (m *cfiMachine) setOffset(reg uint64, kind RuleKind, off int64) error {
	if off != int64(int32(off)) {
		return fmt.Errorf("%w: offset %d", ErrBadCFI, off)
	}
	return m.set(reg, Rule{Kind: kind, Off: int32(off)})
}

// set sets the rule of a register. It ignores registers that goprof does not follow: vector registers, and on arm64 the
// pseudo register for signed return addresses.
func (m *cfiMachine) set(reg uint64, r Rule) error {
	if reg < maxRegs {
		m.regs[reg] = r
	}
	return nil
}

func (m *cfiMachine) restore(reg uint64) error {
	if m.inCIE {
		return fmt.Errorf("%w: restore in a CIE", ErrBadCFI)
	}
	if reg < maxRegs {
		m.regs[reg] = m.initial.regs[reg]
	}
	return nil
}

func expression(c *cursor) ([]byte, error) {
	n := c.uleb()
	if n > maxExpr || int(n) > c.left() {
		return nil, fmt.Errorf("%w: expression of %d bytes", ErrBadCFI, n)
	}
	return c.take(int(n)), nil
}
