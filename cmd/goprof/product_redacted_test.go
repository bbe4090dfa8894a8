//go:build linux

package main

import (
	"fmt"
	"sync"
	"testing"

	"goprof/profile"
	"goprof/profile/redact"
)

// TestNamesOfSeveral: several JVMs may be recorded at once, with one Redactor for all.
func TestNamesOfSeveral(t *testing.T) {
	const words, jvms = 20_000, 4
	key := []byte("the key of this test")
	alone := redact.New(redact.Default(), key)
	f := recordFlags{by: redact.New(redact.Default(), key)}
	var all sync.WaitGroup
	for jvm := range jvms {
		n := newNames(f.by, &f.byLock)
		sink := &redactedSink{names: n}
		all.Go(func() {
			for i := range words {
				sink.thread(profile.Thread{Name: fmt.Sprintf("qxzz%dq", i*jvms+jvm)})
			}
		})
	}
	all.Wait()
	sink := &redactedSink{names: newNames(f.by, &f.byLock)}
	for i := range words * jvms {
		name := fmt.Sprintf("qxzz%dq", i)
		if got, want := sink.thread(profile.Thread{Name: name}).Name, alone.ThreadName(name); got != want {
			t.Fatalf("%s became %s, want %s", name, got, want)
		}
	}
}
