package leaf

import (
	"slices"
	"testing"

	"goprof/profile"
	"goprof/vmstructs"
)

// TestRules: each rule has a name of its own, and the last rule is for all code: it always returns methods.
func TestRules(t *testing.T) {
	var names []string
	for i := range rules {
		name := rules[i].name
		if name == "" || slices.Contains(names, name) {
			t.Errorf("rule %d: %q", i, name)
		}
		names = append(names, name)
	}
	u := newMadeUp(t)
	u.assemble(t, "90", vmCall)
	last := &rules[len(rules)-1]
	for _, level := range []uint8{1, levelProfiled, levelC2} {
		if v := last.decides(u.question().at(0)); !last.tiers.has(level) || v.scopes == nil {
			t.Errorf("%s, level %d: %+v", last.name, level, v)
		}
	}
}

// TestTiers: C1 does not move code, and only its third level counts. So most rules are for one compiler.
func TestTiers(t *testing.T) {
	for _, r := range []struct {
		tiers  tiers
		levels []uint8
	}{{anyTier, []uint8{1, 2, 3, 4}}, {c1, []uint8{1, 2, 3}}, {c1Profiled, []uint8{3}}, {c2, []uint8{4}}} {
		for level := uint8(1); level <= levelC2; level++ {
			if r.tiers.has(level) != slices.Contains(r.levels, level) {
				t.Errorf("tiers %d, level %d: %v", r.tiers, level, r.tiers.has(level))
			}
		}
	}
}

// TestDecidedBy: the first rule that returns methods decides.
func TestDecidedBy(t *testing.T) {
	for _, r := range []struct {
		code  string // the question is about its first instruction
		level uint8
		want  string
		sure  profile.Certainty
	}{
		{"4585db 0f84>0 c3", levelC2, "check", profile.Certain},             // test r11d, r11d; je
		{"448b5c2404 4585db 0f84>0 c3", levelC2, "reload", profile.Certain}, // mov r11d, [rsp+4]; test; je
		{"448b5c2404 4585db 0f84>0 c3", 1, "route", profile.Guessed},        // C1 does not do that
		{"4883c430 5d c3", levelC2, "leave", profile.Certain},               // add rsp, 48; pop rbp; ret
		{"4883c430 5d c3", 1, "leave", profile.Certain},
		{"89c8 4585db 0f84>0 c3", levelC2, "route", profile.Guessed}, // mov eax, ecx
	} {
		u := newMadeUp(t)
		u.b.FrameComplete, u.b.Level = -1, r.level
		u.assemble(t, r.code, trapCall, u.request(t, vmstructs.TrapNull))
		u.f.codeMaps[u.b] = u.m
		if _, sure := u.f.At(u.b, u.b.Begin); u.f.DecidedBy() != r.want || sure != r.sure {
			t.Errorf("%s, level %d: %q, %v", r.code, r.level, u.f.DecidedBy(), sure)
		}
	}
	u := newMadeUp(t)
	u.b.FrameComplete = 4
	if _, sure := u.f.At(u.b, u.b.Begin); u.f.DecidedBy() != "" || sure != profile.Certain {
		t.Errorf("a frame that is built: %q, %v", u.f.DecidedBy(), sure)
	}
}
