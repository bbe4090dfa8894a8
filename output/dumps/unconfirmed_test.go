package dumps

import (
	"bytes"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/profile/contention"
)

// TestUnconfirmedIsShown: each output with waits shows which wait could not be confirmed.
func TestUnconfirmedIsShown(t *testing.T) {
	threads := []profile.ThreadDump{{TID: 7, Name: "seven", State: "BLOCKED", Java: true, Unconfirmed: true},
		{TID: 8, Name: "eight", Java: true}}
	dump := &profile.Dump{PID: 4, Threads: threads}
	var text, group, asJSON, locks, locksJSON bytes.Buffer
	for _, err := range []error{
		Text(&text, dump, Shape{}), Text(&group, dump, Shape{Group: true}),
		JSON(&asJSON, dump, Shape{}), LocksText(&locks, threads, contention.New(threads)),
		LocksJSON(&locksJSON, threads, contention.New(threads)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, out := range map[string]string{"text": text.String(), "group": group.String()} {
		if !strings.Contains(out, unconfirmedText) || !strings.Contains(out, "1 thread seems to wait") {
			t.Errorf("%s: %s", what, out)
		}
	}
	for what, out := range map[string]string{"JSON": asJSON.String(), "locks JSON": locksJSON.String()} {
		if strings.Count(strings.ReplaceAll(out, " ", ""), `"unconfirmed":true`) != 1 {
			t.Errorf("%s: %s", what, out)
		}
	}
	if out := locks.String(); !strings.Contains(out, "NOT CONFIRMED") || strings.Contains(out, "No thread waits") {
		t.Error(out)
	}
}

// TestHolderOfAMoment: if no frame of a holder's stack took the lock, the text says that the stack may be older.
func TestHolderOfAMoment(t *testing.T) {
	lock := profile.Lock{Kind: profile.Monitor, Class: "shop.Stock", ID: 0x10}
	reserve := profile.Frame{Func: &profile.Func{Name: "shop.Order.reserve"}, Kind: profile.C2}
	stack := profile.Stack{Frames: []profile.Frame{reserve}}
	const older = "holds monitor shop.Stock <0x10>; no frame above took it: this stack may be a moment older"
	for frame, want := range map[int]bool{-1: true, 0: false} {
		threads := []profile.ThreadDump{
			{TID: 7, Name: "seven", Java: true, Stack: stack, Holds: []profile.HeldLock{{Lock: lock, Frame: frame}}},
			{TID: 8, Name: "eight", Java: true, WaitsFor: &profile.WantedLock{Lock: lock, How: profile.ToEnter,
				Owner: profile.ThreadRef{TID: 7, Name: "seven"}}},
		}
		var out bytes.Buffer
		if err := LocksText(&out, threads, contention.New(threads)); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, older) != want || !strings.Contains(got, "1 thread behind it") {
			t.Errorf("frame %d: %s", frame, got)
		}
	}
}
