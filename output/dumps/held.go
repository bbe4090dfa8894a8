package dumps

import (
	"cmp"
	"fmt"
	"slices"

	"goprof/output"
	"goprof/profile"
)

// threadLocks are the lines about a thread's locks. A line follows its frame if the frame is known. Otherwise it is
// above or below all frames.
type threadLocks struct {
	above, below []string
	at           map[int][]string
}

// locksOf returns the lines about a thread's locks in the words of the JVM's own thread dumps. The line about the lock
// that the thread waits for follows its first Java frame.
func locksOf(t *profile.ThreadDump) *threadLocks {
	l := &threadLocks{}
	if t.WaitsFor == nil && !t.Unconfirmed && len(t.Holds) == 0 {
		return l
	}
	l.at = map[int][]string{}
	if t.WaitsFor != nil || t.Unconfirmed {
		text := unconfirmedText
		if t.WaitsFor != nil {
			text = waitText(t.WaitsFor)
		}
		if i := firstJava(&t.Stack); i >= 0 {
			l.at[i] = append(l.at[i], text)
		} else {
			l.above = append(l.above, text)
		}
	}
	for i := range t.Holds {
		h := &t.Holds[i]
		if h.Frame >= 0 && h.Frame < len(t.Stack.Frames) {
			l.at[h.Frame] = append(l.at[h.Frame], heldText("locked ", &h.Lock))
		} else {
			l.below = append(l.below, heldText("holds ", &h.Lock))
		}
	}
	return l
}

// unconfirmedText replaces the line about the lock that a thread waits for.
const unconfirmedText = "seems to wait for a lock of another thread: not confirmed"

// firstJava returns the index of the topmost Java frame, or -1.
func firstJava(s *profile.Stack) int {
	return slices.IndexFunc(s.Frames, func(f profile.Frame) bool { return f.Kind.Java() })
}

func heldText(verb string, l *profile.Lock) string {
	if l.Kind == profile.ClassInit {
		return "initialising class " + className(l)
	}
	return verb + lockName(l)
}

// waitText describes what a thread waits for, and which thread holds it.
func waitText(want *profile.WantedLock) string {
	text, has := waitVerbs[want.How]+lockName(&want.Lock), ", held by "
	if want.Kind == profile.ClassInit {
		text, has = waitVerbs[want.How]+className(&want.Lock), ", initialised by "
	}
	if want.Kind == profile.Task {
		has = ", computed by "
	}
	if want.Owner != (profile.ThreadRef{}) {
		text += has + refText(&want.Owner)
	}
	return text
}

// waitVerbs are HotSpot's words (javaVFrame::print_lock_info_on), with their spaces.
var waitVerbs = map[profile.LockWait]string{
	profile.ToEnter: "waiting to lock ", profile.ToNotify: "waiting on ", profile.ToUnpark: "parking to wait for  ",
	profile.ToInitialize: "waiting on the Class initialization monitor for ",
}

func className(l *profile.Lock) string { return output.CleanName(cmp.Or(l.Class, "?")) }

// lockName returns "<0x69ec1a8f0> (a java.lang.Object)".
func lockName(l *profile.Lock) string {
	return fmt.Sprintf("<%s> (a %s)", cmp.Or(address(l.ID), "?"), className(l))
}
