package triage

import (
	"slices"
	"testing"

	"goprof/profile"
	"goprof/triage/vitals"
)

// TestFewCarriers: the number of carriers is the parallelism that was asked for, not the number of CPUs.
func TestFewCarriers(t *testing.T) {
	p := healthy()
	for _, r := range p.Readings {
		r.Process.CPUsAllowed = known(uint64(64))
		r.JVM.Virtual = vitals.Virtual{Mounted: known(5), Parallelism: known(2),
			Pinned: []vitals.PinnedThread{{Carrier: 2, ID: 31}, {Carrier: 3, ID: 32}, {Carrier: 4, ID: 33}}}
	}
	if got := Judge(p.Evidence); !slices.Equal(ids(got), []profile.FindingID{profile.Pinned}) {
		t.Errorf("%+v", got)
	}
}
