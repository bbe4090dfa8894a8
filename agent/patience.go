//go:build linux

package agent

import (
	"sync/atomic"
	"time"
)

// answerWithin bounds the wait for an answer that depends on the target. A file in its root may lie on a file system
// that hangs, or that the target itself serves. So may what is mapped into its memory.
const answerWithin = 2 * time.Second

// mostHanging bounds the questions without an answer. Each holds an OS thread, for ever if the target wants that. With
// so many, nothing more is asked.
const mostHanging = 32

var hanging atomic.Int32

// inTime asks, and returns the answer if it comes in time.
func inTime[T any](ask func() T) (answer T, ok bool) { return inTimeOr(ask, func(T) {}) }

// inTimeOr is inTime for a question that uses what must be given back: late is called where there is no answer in time,
// once ask no longer runs.
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
