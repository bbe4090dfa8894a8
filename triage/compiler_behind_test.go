package triage

import (
	"testing"
	"time"

	"goprof/process/maybe"
	"goprof/profile"
	"goprof/triage/vitals"
)

// TestCompilerKeepsUp: none of these is a compiler that is behind. The last two are not known.
func TestCompilerKeepsUp(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*patient)
		unknown int
	}{
		"the queue shrinks once": {func(p *patient) { p.Readings[5].JVM.Code.Queues = queues(0, 250) }, 0},
		"it is short at first":   {func(p *patient) { p.Readings[0].JVM.Code.Queues = queues(0, 199) }, 0},
		"it does not grow": {func(p *patient) {
			for _, r := range p.Readings {
				r.JVM.Code.Queues = queues(0, 900)
			}
		}, 0},
		"little is interpreted": {func(p *patient) { p.burn(3, 1000, "", "shop.Cart.total") }, 0},
		"the JVM is young":      {func(p *patient) { p.Readings[10].JVM.Uptime = known(settled - time.Second) }, 1},
		"a stripped libjvm.so": {func(p *patient) {
			for _, r := range p.Readings {
				r.JVM.Code.Queues = maybe.Value[[]vitals.CompileQueue]{}
			}
		}, 1},
	} {
		p := healthy()
		diseases[profile.CompilerBehind](p)
		c.change(p)
		got := Judge(p.Evidence)
		if len(ids(got)) != 0 && ids(got)[0] == profile.CompilerBehind || len(got.Unknown) != c.unknown {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
