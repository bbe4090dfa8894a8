package unwind

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/vmstructs"
)

// TestWalksTogether: walks that are proven together have the same results as single walks, and each has its own Since.
// This also holds if the proof fails.
func TestWalksTogether(t *testing.T) {
	for _, file := range recordings(t, "walks") {
		for name, fails := range map[string]bool{"true": false, "changed": true} {
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				rec, alone := recorded(t, file)
				target := &changingTarget{Recording: rec}
				vm, err := vmstructs.Open(target)
				if err != nil {
					t.Fatal(err)
				}
				both := New(target, vm)
				both.RawNames = true
				clock := int64(0)
				alone.vm.SetClock(func() int64 { return clock })
				vm.SetClock(func() int64 { return clock })
				differ, changed := 0, 0
				for at := 0; at < len(rec.Snapshots); at += 7 {
					snaps := rec.Snapshots[at:min(at+7, len(rec.Snapshots))]
					rec.Step(at + len(snaps) - 1)
					clock += 100
					walks := make([]Together, len(snaps))
					for i, snap := range snaps {
						walks[i] = Together{Snap: snap, Unstopped: (at+i)%3 == 0, Out: new(profile.Stack)}
					}
					target.changes = fails
					both.WalkAll(walks)
					if fails && !target.changes {
						changed++
					}
					target.changes = false
					differ += compareWalks(t, alone, walks, fails)
				}
				if fails && changed == 0 {
					t.Error("nothing was proven")
				}
				if !fails && differ == 0 {
					t.Error("all walks rely on what is equally old")
				}
			})
		}
	}
}

// compareWalks also makes each walk alone. It returns how often Since differed from that of the previous walk.
func compareWalks(t *testing.T, alone *Walker, walks []Together, fails bool) (differ int) {
	t.Helper()
	for i := range walks {
		w := &walks[i]
		var want profile.Stack
		var got, wanted bytes.Buffer
		if w.Unstopped {
			alone.WalkUnstopped(w.Snap, &want)
		} else {
			alone.Walk(w.Snap, &want)
		}
		writeStack(&got, w.Snap, w.Out)
		writeStack(&wanted, w.Snap, &want)
		if got.String() != wanted.String() {
			t.Fatalf("together\n%s\nalone\n%s", &got, &wanted)
		}
		if !fails && w.Since != alone.Since() { // after a failure everything was read again, and Since is later
			t.Fatalf("since %d, alone %d", w.Since, alone.Since())
		}
		if i > 0 && w.Since != walks[i-1].Since {
			differ++
		}
	}
	return differ
}

// changingTarget is a process whose memory changes once, at the proof of some walks.
type changingTarget struct {
	*captured.Recording
	changes bool
}

func (c *changingTarget) ReadMany(rs []process.Range) {
	c.Recording.ReadMany(rs)
	if !c.changes {
		return
	}
	caller, _, _, _ := runtime.Caller(1)
	if !strings.HasSuffix(runtime.FuncForPC(caller).Name(), "(*Proof).Check") {
		return
	}
	c.changes = false
	for i := range rs {
		rs[i].OK = false
	}
}
