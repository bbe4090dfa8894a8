package vmstructs

import "testing"

// TestSurvey: after a survey all code is known, even if no thread was found in it. Other code that has got its address
// since then is not known, and freed code is dropped.
func TestSurvey(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := int64(0)
		w.vm.SetClock(func() int64 { return at })
		changed := sample(w)
		method := w.method(w.class("app/Other", ""), 1, "other", "()V", nil)
		seg := uint64(4 + nmSegments)
		for range surveyed { // more than one reading handles
			w.block(seg, 1)
			seg++
		}
		other := w.nmethod(seg, 79, []uint64{method}, nil, nil)
		w.vm.Survey() // without Sightings
		w.vm.NewSightings()
		at = 1000
		w.vm.Survey()
		at = 1e9
		since := func(blob uint64) int64 {
			t.Helper()
			b, err := w.vm.Blob(blob + nmCodeAt + 64)
			if err != nil {
				t.Fatal(err)
			}
			p := w.vm.NewProof()
			p.Blob(b)
			if ok, err := p.Check(); !ok || err != nil {
				t.Fatal(ok, err)
			}
			return p.Since()
		}
		if got := since(other); got != 1000 {
			t.Errorf("since %d, and it was there at 1000", got)
		}
		w.put32(changed+uint64(w.l.nm.compileID), 78)
		if got := since(changed); got != at {
			t.Errorf("other code since %d, and it was first read at %d", got, at)
		}
		before := len(w.vm.sighted)
		w.free(seg-1, 1)
		w.vm.Survey()
		if got := len(w.vm.sighted); got != before-1 {
			t.Errorf("%d pieces of code are known, before one went %d", got, before)
		}
		at = 2e9
		w.vm.blobs.init()
		if got := since(other); got != 1000 {
			t.Errorf("after another survey since %d, and it was there at 1000", got)
		}
		if got := since(changed); got != 1e9 {
			t.Errorf("other code since %d, and a survey saw it at 1e9", got)
		}
	})
}
