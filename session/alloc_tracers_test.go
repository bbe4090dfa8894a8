//go:build linux

package session

import (
	"path/filepath"
	"testing"

	"goprof/process"
	"goprof/testdata/ctest"
)

// TestAllocTracers: the parameters in a linkage name show which argument is the object's address, and which one is an
// amount. 8u262 has functions with the same names as 8u252, but other parameters.
func TestAllocTracers(t *testing.T) {
	ctest.NeedCPU(t)
	for _, c := range []struct {
		release, inside, outside string
		at, bytes, object        int
	}{
		{"8u252", "_ZN11AllocTracer33send_allocation_in_new_tlab_eventE11KlassHandlemm",
			"_ZN11AllocTracer34send_allocation_outside_tlab_eventE11KlassHandlem", 0, 2, 3},
		{"8u504", "_ZN11AllocTracer33send_allocation_in_new_tlab_eventE11KlassHandleP8HeapWordmmP6Thread",
			"_ZN11AllocTracer34send_allocation_outside_tlab_eventE11KlassHandleP8HeapWordmP6Thread", 2, 3, 4},
		{"17", "_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassPP12HeapWordImplmmP10JavaThread",
			"_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassPP12HeapWordImplmP10JavaThread", 2, 3, 4},
	} {
		t.Run(c.release, func(t *testing.T) {
			program := ctest.Run(t, "void "+c.inside+"(void) {}\nvoid "+c.outside+"(void) {}\n"+
				"int main(void) { ready(); for (;;) pause(); }")
			p, err := process.Open(program.PID)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			s := &Session{Process: p}
			for i := range allocWays {
				way := allocWays[i]
				way.in = filepath.Base(program.Path)
				inside, err := s.places(&way, way.probes[0].symbol)
				outside, err2 := s.places(&way, way.probes[1].symbol)
				if err != nil || err2 != nil {
					continue
				}
				got := &way.probes[0]
				if inside[0].Symbol != c.inside || outside[0].Symbol != c.outside ||
					got.at != c.at || got.amount != c.bytes || got.object != c.object {
					t.Errorf("%s, %s: address %d, buffer's bytes %d, object's bytes %d", inside[0].Symbol,
						outside[0].Symbol, got.at, got.amount, got.object)
				}
				return
			}
			t.Error("none of the ways finds its functions")
		})
	}
}
