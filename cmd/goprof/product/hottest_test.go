//go:build linux

package product

import (
	"testing"

	"goprof/output"
	"goprof/profile"
)

// TestHottestSoFar: SIGUSR1 copies what is recorded so far. The copy does not grow by what is recorded while it is
// written.
func TestHottestSoFar(t *testing.T) {
	of := func(method string) *profile.Profile {
		p := profile.New()
		p.Add("main", &profile.Stack{Frames: []profile.Frame{{Kind: profile.C2, Func: &profile.Func{Name: method}}}}, 1)
		return p
	}
	var h Hottest
	h.Add(of("a.B.c"))
	before := h.SoFar()
	h.Add(of("d.E.f"))
	h.SoFar() // this adds the copy up
	var sum profile.Summary
	before.Describe(&sum, output.TreeOf(profile.New()))
	if len(sum.Hottest) != 1 || sum.Hottest[0].Name != "a.B.c" {
		t.Errorf("%+v", sum.Hottest)
	}
}
