//go:build linux

package main

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStopAtEnd: a stop that comes while the screen ends waits until it has ended, and leaves the terminal alone:
// nothing would restore the terminal a second time.
func TestStopAtEnd(t *testing.T) {
	over := newTurns()
	over.end()
	stopped := 0
	go close(over.done)
	aroundStop(nil, over)(unix.SIGTSTP, func() { // without a program, no question goes to it
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
	both.Lock() // as a stop does
	ended := make(chan bool)
	go func() {
		both.end()
		close(ended)
	}()
	select {
	case <-ended:
		t.Fatal("it ended during a stop")
	case <-time.After(20 * time.Millisecond): // on a busy machine an error may stay unseen here, and nothing worse
	}
	both.Unlock()
	<-ended
	if !both.over {
		t.Error("it has not ended")
	}
}
