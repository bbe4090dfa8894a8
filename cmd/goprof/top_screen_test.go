//go:build linux

package main

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStopAtEnd: a stop while the screen ends leaves the terminal alone, which nobody would give back once more.
func TestStopAtEnd(t *testing.T) {
	var over turns
	over.end()
	stopped := 0
	aroundStop(nil, &over)(unix.SIGTSTP, func() { stopped++ }) // without a program: it is not asked for anything
	if stopped != 1 {
		t.Errorf("stopped %d times", stopped)
	}
}

// TestEndAfterStop: the screen ends when a stop is over, not during it.
func TestEndAfterStop(t *testing.T) {
	var both turns
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
