//go:build linux

package sampletest

import (
	"os"
	"testing"
)

// Proof leaves a test to make prove that holds shares of samples against the CPU time of live programs. In each run
// TestPlanShares and its neighbours hold the plan of visits against the same, exactly, and TestSamplesFollowCPUTime and
// TestPerfShares one live program of each engine.
func Proof(t *testing.T) {
	t.Helper()
	if os.Getenv("GOPROF_PROVE") == "" {
		t.Skip("make prove runs it: set GOPROF_PROVE=1")
	}
}
