//go:build linux

package agent

import (
	"sync/atomic"
	"time"
)

// answerWithin is how long a target may take to answer: a file in its root may lie on a disk that hangs, or on one of
// its own making, and so may what is mapped into its memory.
const answerWithin = 2 * time.Second

// mostHanging bounds how many questions may be without an answer: each holds a thread of the system, and for ever where
// the target wants that. Beyond it nothing is asked.
const mostHanging = 32

var hanging atomic.Int32

// inTime is what ask finds, ok if that did not take too long.
func inTime[T any](ask func() T) (answer T, ok bool) {
	if hanging.Load() >= mostHanging {
		return answer, false
	}
	done := make(chan T, 1)
	hanging.Add(1)
	go func() {
		defer hanging.Add(-1)
		done <- ask()
	}()
	patience := time.NewTimer(answerWithin)
	defer patience.Stop()
	select {
	case answer = <-done:
		return answer, true
	case <-patience.C:
		return answer, false
	}
}
