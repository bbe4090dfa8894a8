package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"goprof/output/outfile"
)

// oneRequest is how long further signals count as the first one. timeout(1) sends its signal to its child, and at once
// again to the child's process group.
var oneRequest = 100 * time.Millisecond

// interruptible returns a context that ends at the first SIGINT or SIGTERM, or at another given signal that is not
// ignored. A later signal ends the process at once (cleanOnSignal). Call the returned function when everything is
// written.
func interruptible(parent context.Context, others ...os.Signal) (context.Context, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancel(parent)
	written := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, append(slices.DeleteFunc(others, signal.Ignored), os.Interrupt, syscall.SIGTERM)...)
	go func() {
		defer signal.Stop(signals)
		select {
		case <-signals:
		case <-written:
			return
		}
		cancel()
		select {
		case <-time.After(oneRequest):
			defer cleanOnSignal()()
			<-written
		case <-written:
		}
	}()
	return ctx, sync.OnceFunc(func() {
		cancel()
		close(written)
	})
}

// cleanOnSignal removes unfinished files when a signal ends the process, and reports that there is no result. The
// process still ends by the signal. A call of stop ends this handling. A signal that was ignored before stays ignored.
// goprof serve does not use cleanOnSignal: it makes pages until a signal ends it, and removes them itself.
func cleanOnSignal() (stop func()) {
	if serving {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		outfile.RemoveUnfinished()
		fmt.Fprintf(os.Stderr, "goprof: ended by a signal (%v) before its result was written\n", s)
		signal.Reset()
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(s) != nil {
			os.Exit(1)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
