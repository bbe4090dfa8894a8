package triage

import (
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/triage/vitals"
)

// TestRolesAtTheEnd: if the last reading does not know the role of a thread, earlier readings tell it.
func TestRolesAtTheEnd(t *testing.T) {
	for _, role := range []vitals.Role{"", vitals.Foreign} {
		p := healthy()
		diseases[profile.CPUHot](p)
		for i := range p.Readings[seconds10].Threads {
			p.Readings[seconds10].Threads[i].Role = role
		}
		if got := Judge(p.Evidence); !slices.Contains(ids(got), profile.CPUHot) {
			t.Errorf("%q: %+v", role, got)
		}
	}
}

// TestYoungGrowth: memory of a JVM that starts grows.
func TestYoungGrowth(t *testing.T) {
	p := healthy()
	diseases[profile.NativeGrowth](p)
	p.Readings[seconds10].JVM.Uptime = known(20 * time.Second)
	got := Judge(p.Evidence)
	if len(got.Findings) > 0 || len(got.Unknown) != 1 || got.Unknown[0].ID != profile.NativeGrowth {
		t.Errorf("%+v", got)
	}
}

// TestYoung: loading classes is no disease of a JVM that starts. The result says that this cannot be judged yet.
func TestYoung(t *testing.T) {
	p := healthy()
	diseases[profile.ClassLoading](p)
	p.Readings[seconds10].JVM.Uptime = known(20 * time.Second)
	got := Judge(p.Evidence)
	if len(got.Findings) > 0 || len(got.Unknown) != 1 || got.Unknown[0].ID != profile.ClassLoading {
		t.Errorf("%+v", got)
	}
}

// TestShortLook: the machine was so slow that a look brought two readings. The result does not say that the JVM's
// counters cannot be read.
func TestShortLook(t *testing.T) {
	p := healthy()
	p.Readings = p.Readings[len(p.Readings)-2:]
	why := ""
	for _, u := range Judge(p.Evidence).Unknown {
		if u.ID == profile.ClassLoading {
			why = u.Why
		}
	}
	if !strings.Contains(why, "were read 2 times in this time") {
		t.Errorf("%q", why)
	}
}
