//go:build linux

package session

import (
	"math"
	"testing"

	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/look"
)

// TestStandsForCalls: on average, samples of calls stand for as many calls as there were.
func TestStandsForCalls(t *testing.T) {
	e := &eventful{plan: &EventPlan{list: []events.Event{{IO: &events.IO{}}}}}
	snap := &look.Look{}
	snap.Event.Number, snap.Event.Amount, snap.Event.Own = 1, 1900, 1000
	const draws = 100_000
	sum := int64(0)
	for range draws {
		n, _ := e.stands(snap)
		sum += n
	}
	if mean := float64(sum) / draws; math.Abs(mean-1.9) > 0.01 { // ten times its standard deviation
		t.Errorf("a sample stands for %v calls, want 1.9", mean)
	}
}

// TestIOBookKeepsOpenFiles: the name of an open file stays, however many files end.
func TestIOBookKeepsOpenFiles(t *testing.T) {
	b := &ioBook{named: map[uint64]namedFile{}, ended: map[uint64]namedFile{},
		targets: map[profile.IOTarget]*ioTarget{}}
	open := events.File{ID: 1}
	b.target(&open, "/open")
	for id := range uint64(2 * mostNamed) {
		b.target(&events.File{ID: id + 2}, "/other")
		b.end(id + 2)
	}
	if name := b.target(&open, "").Name; name != "/open" {
		t.Errorf("the open file is %q", name)
	}
	if last := b.targetOf(2*mostNamed + 1); last == nil || last.Name != "/other" || len(b.ended) > mostNamed {
		t.Errorf("the last that ended is %v of %d", last, len(b.ended))
	}
}
