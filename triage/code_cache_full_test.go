package triage

import (
	"slices"
	"testing"

	"goprof/profile"
)

// TestCompilersGaveRoomBack: compilers that were stopped give room back. The JVM has counted that there was no room.
func TestCompilersGaveRoomBack(t *testing.T) {
	p := healthy()
	for _, r := range p.Readings {
		r.JVM.Code.Compiling = known(false)
		r.JVM.Code.Heaps[0].Refused = known(uint64(1))
	}
	if got := Judge(p.Evidence); !slices.Equal(ids(got), []profile.FindingID{profile.CodeCacheFull}) {
		t.Errorf("%+v", got)
	}
}

// TestCompilersGivenUp: JDK 8 does not count that it found no room. Compilers that are off for good leave much room.
func TestCompilersGivenUp(t *testing.T) {
	p := healthy()
	for _, r := range p.Readings {
		r.JVM.Code.Compiling, r.JVM.Code.GaveUp = known(false), known(true)
	}
	if got := Judge(p.Evidence); !slices.Equal(ids(got), []profile.FindingID{profile.CodeCacheFull}) {
		t.Errorf("%+v", got)
	}
}
