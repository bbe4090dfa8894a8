package triage

import (
	"strings"
	"testing"
)

// TestCaught: a thread that never rests and is in one place is likely caught in a loop. A program that computes gets a
// note.
func TestCaught(t *testing.T) {
	busy := func(frames ...[]string) *patient {
		p := healthy()
		for _, f := range frames {
			p.burn(2, 400, "", f...)
		}
		p.Rates.CPU, p.Rates.Threads[1].CPU = known(1.0), known(0.98)
		return p
	}
	get := []string{"java.util.HashMap.getNode", "java.util.HashMap.get", "shop.Cart.find", "shop.Worker.run"}
	for name, c := range map[string]struct {
		p           *patient
		claim, note string
	}{
		"a map that is a ring": {busy(get, append([]string{"java.lang.String.equals"}, get...)),
			"\"pool-1-thread-2\" tid=2 never rests and is likely caught in a loop: 100 % of its samples are in " +
				"java.util.HashMap.get.", ""},
		"one place": {busy(get[2:]), "\"pool-1-thread-2\" tid=2 never rests and is likely caught in a loop: 100 % of its " +
			"samples are in shop.Cart.find.", ""},
		"a program that computes": {busy([]string{"shop.Job.a", "shop.Job.run"}, []string{"shop.Job.b", "shop.Job.run"}),
			"", "the program computes: it uses 0.8 CPUs, and 1 thread never at rest; 95 % of that in 2 methods, most in " +
				"shop.Job.a"},
	} {
		got := Judge(c.p.Evidence)
		claim, note := "", strings.Join(got.Notes, "\n")
		if len(got.Findings) > 0 {
			claim = got.Findings[0].Claim
		}
		if claim != c.claim || note != c.note {
			t.Errorf("%s: %q, note %q", name, claim, note)
		}
	}
}
