package naming

import "goprof/profile"

// FoldDump folds frames that only pass calls on, in the stacks of a dump. Then it updates the indexes of the frames
// that took locks, and of those that got the signals of a core file. The first thread is the one that died.
func FoldDump(d *profile.Dump) {
	var folder Folder
	for i := range d.Threads {
		t := &d.Threads[i]
		before := append([]profile.Frame(nil), t.Stack.Frames...)
		folder.Stack(&t.Stack)
		for k := range t.Holds {
			t.Holds[k].Frame = movedTo(t.Holds[k].Frame, before, t.Stack.Frames)
		}
		if d.Core == nil || i > 0 {
			continue
		}
		for _, s := range []*profile.Signal{d.Core.Signal, d.Core.Cause} {
			if s != nil {
				s.Frame = movedTo(s.Frame, before, t.Stack.Frames)
			}
		}
	}
}

// movedTo returns the index of a frame after others were folded. It is -1 if the frame itself was folded.
func movedTo(frame int, before, after []profile.Frame) int {
	if frame < 0 || frame >= len(before) {
		return -1
	}
	k := 0
	for i := range before {
		if k < len(after) && after[k] != before[i] && after[k].Kind == profile.Gap && after[k].PC == 0 {
			// A fold stands for the frames from here up to the next kept one.
			if k+1 < len(after) && after[k+1] == before[i] {
				k++
			}
		}
		if k < len(after) && after[k] == before[i] {
			if i == frame {
				return k
			}
			k++
		}
	}
	return -1
}
