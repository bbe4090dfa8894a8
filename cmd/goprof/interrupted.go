package main

import (
	"os"
	"os/signal"
	"syscall"

	"goprof/output"
)

// cleanOnSignal removes unfinished files when a signal ends the process. It does so until the returned function is
// called. The process still ends by the signal. A signal that was ignored before stays ignored.
func cleanOnSignal() (stop func()) {
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
		output.RemoveUnfinished()
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
