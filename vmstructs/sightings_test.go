package vmstructs

import (
	"encoding/binary"
	"testing"

	"goprof/process"
)

// TestSightings: a look at a thread notes the thread's code. If that code is walked later, it is known since the look.
// Other code that has got its address since then is not.
func TestSightings(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := int64(0)
		w.vm.SetClock(func() int64 { return at })
		s := w.vm.NewSightings()
		pc := sample(w) + nmCodeAt + 64
		snap := &process.Snapshot{Stack: binary.LittleEndian.AppendUint64(make([]byte, 8), pc)}
		at = 2 * noteWithin
		s.Note(snap, 0) // too late, so the code is noted again
		s.Note(snap, at)
		noted := at
		at += 1e9
		since := func() int64 {
			b, err := w.vm.Blob(pc)
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
		if got := since(); got != noted {
			t.Errorf("since %d, and it was noted at %d", got, noted)
		}
		b, _ := w.vm.Blob(pc)
		w.put32(b.Addr+uint64(w.l.nm.compileID), 78)
		w.vm.blobs.init()
		if got := since(); got != at {
			t.Errorf("another one since %d, and it was read at %d", got, at)
		}
		for range 2 * mostNotes { // takeNotes is not called in between
			s.KeepIn(nil)
			s.Note(snap, noted)
		}
		w.vm.takeNotes()
		if n := len(s.free); n != mostNotes {
			t.Errorf("%d of %d notes are free again", n, mostNotes)
		}
	})
}

// TestSightingsOfNonsense: a stack may contain anything.
func TestSightingsOfNonsense(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.vm.SetClock(func() int64 { return 0 })
		s := w.vm.NewSightings()
		snap := &process.Snapshot{Stack: make([]byte, 3*mostScanned+5)}
		for i := 0; i+8 <= len(snap.Stack); i += 8 {
			binary.LittleEndian.PutUint64(snap.Stack[i:], w.vm.code.begin+uint64(i)*61-8)
		}
		s.Note(snap, 0)
		if len(s.fresh) > mostFresh {
			t.Errorf("%d at a time", len(s.fresh))
		}
		w.vm.takeNotes()
	})
}
