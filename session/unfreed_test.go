//go:build linux

package session

import (
	"fmt"
	"testing"

	"goprof/profile"
	"goprof/sampler/events"
)

// TestUnfreedIsBounded: each stack is kept once, and only as long as a sample has it. No more frames are kept than
// permitted.
func TestUnfreedIsBounded(t *testing.T) {
	plan := &EventPlan{list: []events.Event{{Pairing: &events.Pairing{Kept: events.NewKept()}}}, parts: []eventPart{{}}}
	u := newUnfreed(plan)
	stack := func(depth int) *profile.Stack {
		return &profile.Stack{Frames: make([]profile.Frame, depth, depth+1), Truncated: profile.Whole}
	}
	one := stack(10)
	first := u.stackOf("", profile.Thread{TID: 1}, one)
	if first == nil || first != u.stackOf("", profile.Thread{TID: 1}, one) || u.frames != 10 {
		t.Errorf("%d frames of one stack", u.frames)
	}
	if first == u.stackOf("[other]", profile.Thread{TID: 1}, one) || first == u.stackOf("", profile.Thread{TID: 2}, one) {
		t.Error("another thread has the same stack")
	}
	one.Frames[0].Line = 5 // the kept stack is a copy
	if first.Frames[0].Line != 0 {
		t.Error("the stack that is kept has changed")
	}
	for i := range 2 * maxUnfreedFrames / 1000 {
		u.stackOf(fmt.Sprint(i), profile.Thread{}, stack(1000))
	}
	if u.frames > maxUnfreedFrames || u.frames < maxUnfreedFrames/2 {
		t.Errorf("%d frames are kept", u.frames)
	}
	u.samples[1] = unfreedSample{when: 5, stack: first}
	if u.sweep(); len(u.samples) != 0 || len(u.stacks) != 0 || u.frames != 0 { // there is no map: nothing is kept
		t.Errorf("%d samples and %d stacks with %d frames are left", len(u.samples), len(u.stacks), u.frames)
	}
}

// TestUnfreedMakesRoom: stacks of freed memory make room for later ones. An older sample does not replace a later one.
func TestUnfreedMakesRoom(t *testing.T) {
	plan := &EventPlan{list: []events.Event{{Pairing: &events.Pairing{Kept: events.NewKept()}}}, parts: []eventPart{{}}}
	u := newUnfreed(plan)
	stack := &profile.Stack{Frames: make([]profile.Frame, 1000), Truncated: profile.Whole}
	for i := range maxUnfreed / 8 {
		u.keep(uint64(i), unfreedSample{when: 5}, fmt.Sprint(i), profile.Thread{}, stack)
	}
	last := uint64(maxUnfreed/8 - 1)
	if u.samples[last].stack == nil || u.frames > maxUnfreedFrames {
		t.Errorf("the last sample has no room, %d frames are kept", u.frames)
	}
	u.keep(last, unfreedSample{when: 4}, "[older]", profile.Thread{}, stack)
	if s := u.samples[last]; s.when != 5 || s.stack.root == "[older]" {
		t.Errorf("an older sample took the place: %+v", s)
	}
}

// TestUnfreedOfNobody: while the sampler hangs, nothing is reported.
func TestUnfreedOfNobody(t *testing.T) {
	plan := &EventPlan{list: []events.Event{{Pairing: &events.Pairing{Kept: events.NewKept()}}}, parts: []eventPart{{}}}
	r := &recording{}
	r.unfreed = newUnfreed(plan)
	plan.list[0].Pairing.Kept.Stopped = 1
	if r.endUnfreed(); r.unfreed.done || r.unfreed.sum != (profile.Unfreed{}) {
		t.Errorf("%+v", r.unfreed.sum)
	}
}
