//go:build linux

package main

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStopAtEnd: a stop while the screen ends waits for that, and leaves the terminal alone, which nobody would give
// back once more.
func TestStopAtEnd(t *testing.T) {
	over := newTurns()
	over.end()
	stopped := 0
	go close(over.done)
	aroundStop(nil, over)(unix.SIGTSTP, func() { // without a program: it is not asked for anything
		stopped++
		select {
		case <-over.done:
		default:
			t.Error("it stopped before the end")
		}
	})
	if stopped != 1 {
		t.Errorf("stopped %d times", stopped)
	}
}

// TestEndAfterStop: the screen ends when a stop is over, not during it.
func TestEndAfterStop(t *testing.T) {
	both := newTurns()
	both.Lock() // as during a stop
	ended := make(chan bool)
	go func() {
		both.end()
		close(ended)
	}()
	select {
	case <-ended:
		t.Fatal("it ended during a stop")
	case <-time.After(20 * time.Millisecond): // a mistake may pass unseen on a busy machine, and nothing else
	}
	both.Unlock()
	<-ended
	if !both.over {
		t.Error("it has not ended")
	}
}
