package vmstructs

import "testing"

// TestTrapReason: requests of compiled code, of JDKs with different numbers of reasons. The action is in the lower
// three bits.
func TestTrapReason(t *testing.T) {
	reasons := map[string]int32{"null_check": 1, "range_check": 3, "class_check": 4, "div0_check": 15, "predicate": 17,
		"unstable_if": 23, "unstable_fused_if": 24}
	ints := map[string]int32{}
	for name, n := range reasons {
		ints["Deoptimization::Reason_"+name] = n
	}
	vm := &VM{l: &layout{trap: (&resolver{t: &tables{ints: ints}}).trap()}}
	for _, r := range []struct {
		name    string
		request int32
		want    TrapReason
	}{
		{"null_check", ^int32(1<<3 | 2), TrapNull},
		{"range_check", ^int32(3<<3 | 1), TrapRange},
		{"class_check", ^int32(4 << 3), TrapClass},
		{"div0_check", ^int32(15<<3 | 2), TrapDivision},
		{"predicate", ^int32(17<<3 | 1), TrapBeforeLoop},
		{"unstable_if", ^int32(23<<3 | 2), TrapBranch},
		{"unstable_fused_if: of two branches in one", ^int32(24<<3 | 2), TrapBranch},
		{"another reason", ^int32(6<<3 | 1), TrapOther},
		{"the number of a class that is to be loaded", 77, NoTrap},
		{"no constant at all", 0, NoTrap},
		{"what no JVM asks for", -1 << 31, TrapOther},
	} {
		if got := vm.TrapReason(r.request); got != r.want {
			t.Errorf("%s: %d, not %d", r.name, got, r.want)
		}
	}
}
