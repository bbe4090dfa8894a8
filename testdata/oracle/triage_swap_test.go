//go:build linux

package oracle

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/testdata/jvmtest"
)

// inSmallMemory gives the machine swap, and a JVM less memory than it is about to use. Both end with the test.
func inSmallMemory(t *testing.T, jvm *jvmtest.JVM) bool {
	const most = 128 << 20
	if err := moreSwap(t, 512<<20); err != nil {
		t.Log(err)
		return false
	}
	for _, version := range []struct{ root, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		if inCgroup(t, jvm.PID, version.root, version.file, strconv.Itoa(most)) {
			jvm.Command("grow")
			return true
		}
	}
	return false
}

// moreSwap has the machine use a file of that size as swap until the test ends.
func moreSwap(t *testing.T, size int) error {
	name := filepath.Join(t.TempDir(), "swap")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(size)); err != nil {
		return fmt.Errorf("room for swap: %w", err)
	}
	if out, err := exec.Command("mkswap", name).CombinedOutput(); err != nil {
		return fmt.Errorf("mkswap: %w\n%s", err, out)
	}
	if out, err := exec.Command("swapon", name).CombinedOutput(); err != nil {
		return fmt.Errorf("swapon: %w\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("swapoff", name).CombinedOutput(); err != nil {
			t.Errorf("swapoff: %v\n%s", err, out)
		}
	})
	return nil
}
