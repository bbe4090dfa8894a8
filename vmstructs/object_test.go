package vmstructs

import "testing"

// TestCompactHeaders: a release that has the flag is asked for it once, and its table of flags is not kept for that.
func TestCompactHeaders(t *testing.T) {
	for _, j := range someTables(t) {
		t.Run(j.name, func(t *testing.T) {
			for _, r := range []struct {
				flag  string
				major int
				want  bool
			}{
				{"UseCompactObjectHeaders", 25, true}, {"UseCompactObjectHeaders", 23, false}, {"UseZGC", 25, false},
			} {
				w := newHostileWorld(t, j)
				w.putFlags(r.flag)
				vm, _, err := w.openAs(j.tab)
				if err != nil {
					t.Fatal(err)
				}
				vm.ForgetFlags()
				vm.version.Major = r.major
				for range 2 {
					if got := vm.CompactHeaders(); got != r.want || vm.flagTab.read {
						t.Errorf("%s in %d: %v, table kept: %v", r.flag, r.major, got, vm.flagTab.read)
					}
				}
			}
		})
	}
}
