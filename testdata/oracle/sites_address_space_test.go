//go:build linux

package oracle

import (
	"fmt"
	"testing"
)

// TestTooLittleAddressSpace: under "ulimit -v" goprof says itself what is wrong, where Go's runtime would die with a
// stack trace; and where it begins at all, it works.
func TestTooLittleAddressSpace(t *testing.T) {
	t.Parallel()
	goprof := buildGoprof(t)
	const enough = 1_572_864 // KB, package entry; below some 55,000 the kernel itself kills whatever it is to load
	run := func(limit int, args string) ran {
		return runIt(t, "sh", "-c", fmt.Sprintf("ulimit -v %d && exec %s %s", limit, goprof, args))
	}
	for _, limit := range []int{80_000, 500_000, 900_000, 1_200_000, enough - 1} {
		for _, args := range []string{"version", "list", "record --pid 1 -d 1"} {
			run(limit, args).wantError(t, 1, "goprof: cannot run: it may use too little address space (ulimit -v)",
				"\ntry: ulimit -v unlimited\n")
		}
	}
	for range 20 { // where things lie differs from run to run
		if r := run(enough, "list"); r.code != 0 {
			t.Errorf("%d %s", r.code, r.err)
		}
	}
	if r := run(enough, "version"); r.code != 0 || r.out == "" {
		t.Errorf("%+v", r)
	}
}
