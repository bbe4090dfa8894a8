package ship

import (
	"fmt"
	"syscall"
	"testing"
)

// spoolOn returns a folder on a disk of size bytes.
func spoolOn(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size))
	if err != nil {
		t.Skipf("no disk can be mounted here: %v; TestDiskTakesNothing asks the same of a folder that is gone", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}
