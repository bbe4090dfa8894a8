package output

import (
	"cmp"
	"fmt"

	"goprof/profile"
)

// threadLocks are the lines that tell of a thread's locks, without what stands before them: by frame where that is known,
// above all frames or below them elsewhere.
type threadLocks struct {
	above, below []string
	at           map[int][]string
}

// locksOf words a thread's locks as the JVM's own thread dumps do. What it waits for stands at its first Java frame.
func locksOf(t *profile.ThreadDump) *threadLocks {
	l := &threadLocks{}
	if t.WaitsFor == nil && len(t.Holds) == 0 {
		return l
	}
	l.at = map[int][]string{}
	if t.WaitsFor != nil {
		text := wantedText(t.WaitsFor)
		if i := firstJava(&t.Stack); i >= 0 {
			l.at[i] = append(l.at[i], text)
		} else {
			l.above = append(l.above, text)
		}
	}
	for i := range t.Holds {
		h := &t.Holds[i]
		if h.Frame >= 0 && h.Frame < len(t.Stack.Frames) {
			l.at[h.Frame] = append(l.at[h.Frame], "locked "+lockText(&h.Lock))
		} else {
			l.below = append(l.below, "holds "+lockText(&h.Lock))
		}
	}
	return l
}

// firstJava is the topmost Java frame, -1 if there is none.
func firstJava(s *profile.Stack) int {
	for i := range s.Frames {
		if s.Frames[i].Kind.Java() {
			return i
		}
	}
	return -1
}

// wantedText says what a thread waits for, and who has it.
func wantedText(want *profile.WantedLock) string {
	text := waitVerbs[want.How] + lockText(&want.Lock)
	if want.Owner != (profile.ThreadRef{}) {
		text += ", held by " + threadRef(want.Owner)
	}
	return text
}

// waitVerbs are those of HotSpot (javaVFrame::print_lock_info_on), with their blanks.
var waitVerbs = map[profile.LockWait]string{
	profile.ToEnter: "waiting to lock ", profile.ToNotify: "waiting on ", profile.ToUnpark: "parking to wait for  ",
}

// lockText is "<0x69ec1a8f0> (a java.lang.Object)".
func lockText(l *profile.Lock) string {
	return fmt.Sprintf("<%s> (a %s)", cmp.Or(address(l.ID), "?"), CleanName(cmp.Or(l.Class, "?")))
}

// threadRef names a thread: "worker" tid=4713, or virtual thread #31 "order 17".
func threadRef(ref profile.ThreadRef) string {
	if ref.Virtual != 0 {
		text := virtualTitle(profile.VirtualThread{ID: ref.Virtual, Name: ref.Name})
		if ref.TID != 0 {
			text += fmt.Sprintf(" on tid=%d", ref.TID)
		}
		return text
	}
	return fmt.Sprintf("\"%s\" tid=%d", CleanName(ref.Name), ref.TID)
}
