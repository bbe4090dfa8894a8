package heat

import (
	"testing"

	"goprof/testdata/browser"
)

func TestPageDraws(t *testing.T) {
	f := shop()
	p := browser.Open(t, draw(t, f, Options{Title: "shop.Main", Line: "cpu mode · 12,345 samples · 1m0s · 2026-11-22 03:14:07 UTC · pid 7 on prod-7"}), "", 1280, 800)
	p.Expect("columns 60 of 1 s, 50 cells each; lanes 3 by pool; lane all threads; A none; B none")
	p.Screenshot("heat")
}
