//go:build linux

package oracle

import (
	"testing"

	"goprof/testdata/jvmtest"
)

func init() {
	matrixRows = append(matrixRows,
		// Return addresses on the stack are signed, where the CPU can (JDK 19 and later;
		// cpu/aarch64/globals_aarch64.hpp).
		matrixRow{name: "branch protection", flags: []string{"-XX:UseBranchProtection=standard"}, run: matrixSigned},
		// Without the CPU's atomic instructions: pairs of exclusive loads and stores.
		matrixRow{name: "-UseLSE", flags: []string{"-XX:-UseLSE"}},
	)
}

// matrixSigned is matrixShadow, if signed addresses are indeed seen.
func matrixSigned(t *testing.T, jdk jvmtest.JDK, flags []string, stops int) string {
	count := countShadow(t, jdk, flags, nil, stops)
	if count.pacMask == 0 {
		return "n/a" // not with this CPU
	}
	if t.Logf("%d of %d stacks held signed addresses of generated code", count.signed, count.stops); count.signed == 0 {
		t.Error("none: nothing was signed")
	}
	return judgeCell(t, count, flags, stops)
}
