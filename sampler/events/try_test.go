//go:build linux

package events

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// TestTryProbesClosesNothingElse: a run that holds a descriptor by mistake closes another file. The first one is the
// program's input.
func TestTryProbesClosesNothingElse(t *testing.T) {
	file := func(fd int) string {
		name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		return name
	}
	before := [3]string{file(0), file(1), file(2)}
	err := errors.Join(TryProbes(), TryIO())
	if after := [3]string{file(0), file(1), file(2)}; after != before {
		t.Errorf("the first files were %q, and are %q (%v)", before, after, err)
	}
}

// TestTryIOKeepsNothing: a trial gives its maps and programs back.
func TestTryIOKeepsNothing(t *testing.T) {
	open := func() int {
		err := TryIO()
		list, _ := os.ReadDir("/proc/self/fd")
		t.Logf("%d descriptors (%v)", len(list), err)
		return len(list)
	}
	if before, after := open(), open(); after != before {
		t.Errorf("%d descriptors, and %d after a second trial", before, after)
	}
}
