//go:build linux

package product

import (
	"fmt"
	"sync"
	"testing"

	"goprof/profile"
	"goprof/profile/redact"
)

// TestNamesOfSeveral: several JVMs may be recorded at once. One Redactor serves them all.
func TestNamesOfSeveral(t *testing.T) {
	const words, jvms = 5_000, 4
	key := []byte("the key of this test")
	alone := redact.New(redact.Default(), key)
	by, lock := redact.New(redact.Default(), key), new(sync.Mutex)
	var all sync.WaitGroup
	for jvm := range jvms {
		n := newNames(by, lock)
		sink := &redactedSink{names: n}
		all.Go(func() {
			for i := range words {
				sink.thread(profile.Thread{Name: fmt.Sprintf("qxzz%dq", i*jvms+jvm)})
			}
		})
	}
	all.Wait()
	sink := &redactedSink{names: newNames(by, lock)}
	for i := range words * jvms {
		name := fmt.Sprintf("qxzz%dq", i)
		if got, want := sink.thread(profile.Thread{Name: name}).Name, alone.ThreadName(name); got != want {
			t.Fatalf("%s became %s, want %s", name, got, want)
		}
	}
}
