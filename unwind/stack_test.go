package unwind

import (
	"maps"
	"path/filepath"
	"testing"

	"goprof/process"
	"goprof/profile"
)

// TestCopiesThatEnd walks recorded stacks whose copies end earlier. Such a walk has the frames of the whole one, up to
// its end, and reports that the copy ended. If it reported a bad stack, users would look for a fault that does not
// exist.
func TestCopiesThatEnd(t *testing.T) {
	for _, file := range recordings(t, "walks") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rec, w := recorded(t, file)
			var cut profile.Stack
			why := map[profile.Reason]int{}
			eachWalk(rec, w, func(snap *process.Snapshot, whole *profile.Stack) {
				if whole.Truncated != profile.Whole {
					return
				}
				frames := append([]profile.Frame(nil), whole.Frames...)
				for i := 1; i < len(frames)-1; i++ { // the last frame needs no words
					part := *snap
					part.Cut = true
					// The copy ends somewhere in this frame.
					part.Stack = snap.Stack[:min(frames[i].SP+uint64(i%4)*8-snap.SP, uint64(len(snap.Stack)))]
					w.Walk(&part, &cut)
					why[cut.Truncated]++
					for j, f := range cut.Frames {
						if f.Kind == profile.Gap {
							break // the copy has the beginning of the frames beyond a gap
						}
						if j >= len(frames) || f.Func.Name != frames[j].Func.Name {
							t.Fatalf("tid %d, cut in frame %d: frame %d is %s", snap.TID, i, j, f.Func.Name)
						}
					}
				}
			})
			t.Log(why)
			maps.DeleteFunc(why, func(r profile.Reason, _ int) bool { return r == profile.StackCut })
			if len(why) > 0 {
				t.Errorf("copies that were cut end for other reasons: %v", why)
			}
		})
	}
}

// TestWantedMore: which of the missing words would be in a longer copy. The last two bytes of the first copy are the
// first of a word.
func TestWantedMore(t *testing.T) {
	const sp = 0x7000
	for _, r := range []struct {
		name   string
		length int
		addr   uint64
		cut    bool
		want   bool
	}{
		{"the last whole word", 18, sp + 8, true, false},
		{"begins in the copy and ends behind it", 18, sp + 16, true, true},
		{"behind the copy", 16, sp + 16, true, true},
		{"behind any stack", 16, sp + 16 + mostBeyond, true, false},
		{"below the copy", 16, sp - 8, true, false},
		{"begins in a copy that is all there is", 18, sp + 16, false, false},
	} {
		w := evaluator()
		w.snap.SP, w.snap.Stack, w.snap.Cut = sp, make([]byte, r.length), r.cut
		if w.word(r.addr); w.wantedMore != r.want {
			t.Errorf("%s: %v", r.name, w.wantedMore)
		}
	}
}
