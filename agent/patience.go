//go:build linux

package agent

import (
	"sync/atomic"
	"time"
)

// answerWithin limits the wait for an answer that depends on the target. A file in the target's root may lie on a file
// system that hangs, or that the target itself serves. The same is true of files that are mapped into its memory.
const answerWithin = 2 * time.Second

// mostHanging limits the requests without an answer. Each holds an OS thread, and the target can make it hang for ever.
// At the limit no further request begins.
const mostHanging = 32

var hanging atomic.Int32

// inTime calls ask in another goroutine, and returns the answer if it comes within answerWithin.
func inTime[T any](ask func() T) (answer T, ok bool) { return inTimeOr(ask, func(T) {}) }

// inTimeOr is inTime for answers that must be released: late gets an answer that comes too late.
func inTimeOr[T any](ask func() T, late func(T)) (answer T, ok bool) {
	if hanging.Load() >= mostHanging {
		late(answer)
		return answer, false
	}
	done, gaveUp := make(chan T), make(chan struct{})
	hanging.Add(1)
	go func() {
		defer hanging.Add(-1)
		answer := ask()
		select {
		case done <- answer:
		case <-gaveUp:
			late(answer)
		}
	}()
	patience := time.NewTimer(answerWithin)
	defer patience.Stop()
	select {
	case answer = <-done:
		return answer, true
	case <-patience.C:
		close(gaveUp)
		return answer, false
	}
}
