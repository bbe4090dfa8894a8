package process

// Row is one row of a DWARF call frame table: the rules for the caller's registers at one pc (DWARF 5, section 6.4.1).
type Row struct {
	CFA    Rule // RuleRegister (Reg+Off) or RuleValExpr
	Saved  []SavedReg
	RA     uint8 // column of the return address
	Signal bool  // a signal frame: the caller's pc is exact ('S' augmentation)
	// SignedRA: the return address has pointer authentication at this pc (DW_CFA_AARCH64_negate_ra_state).
	SignedRA bool
}

type SavedReg struct {
	Reg  uint8
	Rule Rule
}

// RuleKind is one of DWARF's register rules.
type RuleKind uint8

const (
	RuleSame      RuleKind = iota
	RuleUndefined          // for the return address: this is the thread's root
	RuleOffset             // saved at CFA+Off
	RuleValOffset          // is CFA+Off
	RuleRegister           // is register Reg (+Off for the CFA)
	RuleExpr               // saved at the address that Expr computes
	RuleValExpr            // is what Expr computes
)

type Rule struct {
	Kind RuleKind
	Reg  uint8
	Off  int32
	Expr []byte
}
