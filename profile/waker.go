package profile

import "strings"

// In a recording with wakers, the frames of the thread that ended a wait are above the wait, as in wake-up flame
// graphs. From the root upwards: the wait's own stack with its state on top, then WokenBy, then the stack of the waker
// from its leaf to its root, then the label of the waker's thread. A waker that is not a thread of the JVM has one
// frame.
const (
	WokenBy = "[woken by]"

	wokenBy  = "[woken by: "
	notWoken = "[not woken: "
)

// WakerFrame returns the frame for a waker that is not a thread of the JVM: "timer (interrupt)", "nginx pid=77".
func WakerFrame(who string) string { return wokenBy + who + "]" }

// NotWokenFrame returns the frame for a wait whose waker is not known.
func NotWokenFrame(why string) string { return notWoken + why + "]" }

// IsWaker reports whether a frame separates a wait from its waker, or describes the waker.
func IsWaker(frame string) bool {
	return frame == WokenBy || strings.HasPrefix(frame, wokenBy) || strings.HasPrefix(frame, notWoken)
}

// StateAt returns the index of the frame with the thread's state. It is -1 if there is none. Frames of the thread that
// ended the wait may be above it.
func (s *Stack) StateAt() int {
	for i := range s.Frames {
		if s.Frames[i].Kind == StateFrame {
			return i
		}
	}
	return -1
}

// Wakers counts what ended the waits of a recording.
type Wakers []WakerSum

// WakerSum is one kind of waker.
type WakerSum struct {
	Name  string `json:"name"`    // "threads of the JVM", "timer" ...; or why the waker is not known
	Known bool   `json:"known"`   //
	Waits int64  `json:"waits"`   //
	Time  int64  `json:"time_ns"` // total length of the waits
}
