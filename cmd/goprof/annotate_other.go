//go:build !linux

package main

import "github.com/spf13/cobra"

// liveAnnotate has no flags, because goprof can read processes on Linux only.
type liveAnnotate struct{}

func (f *liveAnnotate) add(*cobra.Command)         {}
func (f *liveAnnotate) isLive(*cobra.Command) bool { return false }
func (a *annotation) attach() (func(), error)      { return func() {}, nil }
