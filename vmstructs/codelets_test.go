package vmstructs

import "testing"

func TestRoleOf(t *testing.T) {
	for description, want := range map[string]Role{
		"method entry point (kind = zerolocals)":    MethodEntry,
		"native method entry point (kind = native)": MethodEntry,
		"exception handling":                        Throwing,
		"return entry points":                       ReturnEntry,
		"invoke return entry points":                ReturnEntry,
		"deoptimization entry points":               OtherRole,
		"if_icmplt":                                 Branching,
		"ifnull":                                    Branching,
		"goto_w":                                    Branching,
		"invokevirtual":                             OtherRole,
		"iload":                                     OtherRole,
		"":                                          OtherRole,
		"slow signature handler":                    OtherRole,
		"throw exception entrypoints":               OtherRole,
		"error exits":                               OtherRole,
		"safepoint entry points":                    OtherRole,
	} {
		if got := roleOf(description); got != want {
			t.Errorf("%q: role %d, not %d", description, got, want)
		}
	}
}
