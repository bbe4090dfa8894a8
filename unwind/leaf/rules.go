package leaf

import (
	"goprof/profile"
	"goprof/vmstructs"
)

// rule decides which methods run at an instruction of some kind.
type rule struct {
	name  string
	tiers tiers
	// itself: the rule finds the bytecode for which the instruction was made, so the rules of other instructions may
	// use the result (see certainly). Other rules only find the records around the instruction.
	itself  bool
	decides func(*place) verdict
	// mayBe reports whether C2 can have made such an instruction for the bytecode that a record names: see Judge. The
	// result must not depend on the bytecode that the rule finds. Otherwise the judge would leave out exactly the
	// samples for which the rule is wrong. If mayBe is nil, the judge believes every record.
	mayBe func(*place, vmstructs.Scope) bool
}

type verdict struct {
	scopes []vmstructs.Scope // nil: the rule does not decide
	sure   profile.Certainty
}

// rules are tried in this order. The first rule that returns methods decides.
var rules []rule

// init sets rules because they refer to one another.
func init() {
	rules = []rule{
		{"intrinsic", anyTier, true, (*place).intrinsic, (*place).mayBeIntrinsic},
		{"monitor", c2, true, (*place).monitor, (*place).locks},
		{"exchange", c2, true, (*place).exchange, mayBe(swap)},
		{"barrier", c2, true, (*place).barrier, mayBe(storeBarrier)},
		{"call mark", anyTier, true, part((*place).callMark), nil},
		{"class", c2, true, part((*place).class), mayBePart((*place).class)},
		{"check", c2, true, part((*place).check), mayBePart((*place).check)},
		{"poll load", c2, true, part((*place).pollLoad), (*place).mayPoll},
		{"leave", anyTier, true, (*place).leave, (*place).mayLeave},
		{"cast", c1, true, part((*place).cast), nil},
		{"allocation", c2, true, part((*place).allocation), mayBePart((*place).allocation)},
		{"reload", c2, false, (*place).reload, nil},
		{"branch", anyTier, true, (*place).branch, (*place).mayBranch},
		{"counter", c1Profiled, false, (*place).counter, nil},
		{"load", anyTier, true, (*place).load, (*place).mayLoad},
		{"within a method", anyTier, false, (*place).withinMethod, nil},
		{"branch of one", c2, false, (*place).branchOfOne, nil},
		{"loop", c2, false, (*place).loop, nil},
		{"route", anyTier, false, (*place).onRoute, nil},
	}
}

// decide returns the verdict of the first rule that has one. The last rule always has one. If there is no instruction,
// the verdict is the method that owns the code.
func (p *place) decide() verdict {
	for i := 0; p.n != notInCode && i < len(rules); i++ {
		r := &rules[i]
		if !r.tiers.has(p.blob.Level) {
			continue
		}
		if v := r.decides(p); v.scopes != nil {
			p.decided = r.name
			return v
		}
	}
	return verdict{p.blob.OwnScope(), profile.Guessed}
}

// certainly returns the methods at the instruction if it is certain for which bytecode it was made, otherwise nil.
func (p *place) certainly() []vmstructs.Scope {
	for i := range rules {
		r := &rules[i]
		if !r.itself || !r.tiers.has(p.blob.Level) {
			continue
		}
		if v := r.decides(p); v.scopes != nil && v.sure == profile.Certain {
			return v.scopes
		}
	}
	return nil
}

// part makes the decides of a rule for instructions that are part of evidence.
func part(of func(*place) evidence) func(*place) verdict {
	return func(p *place) verdict {
		e := of(p)
		if s := p.methodsOf(e); s != nil {
			return verdict{s, p.certainty(e, s)}
		}
		return verdict{}
	}
}

// tiers are the levels of code for which there is a rule. C1 does not move code, and has a record where an instruction
// has a state. C2 moves code, and makes one instruction of several.
type tiers uint8

const (
	anyTier tiers = iota
	c1
	c1Profiled // C1's code that counts, for C2
	c2
)

func (t tiers) has(level uint8) bool {
	switch t {
	case c1:
		return level < levelC2
	case c1Profiled:
		return level == levelProfiled
	case c2:
		return level == levelC2
	}
	return true
}
