//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMapInFolderOfOthers: root writes the map into a user's folder, as with sudo. That works also after goprof has
// given up rights.
func TestMapInFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 || os.Chown(dir, 1000, 1000) != nil {
		t.Skip("needs root, and a folder of another user")
	}
	core := filepath.Join(dir, "core")
	put(t, core, "no core file") // no JVM is needed: goprof writes the map in any case
	to := filepath.Join(dir, "map")
	out, _ := exec.CommandContext(t.Context(), "goprof", "dump", "--core", core, "--redact", "default", "--redact-map",
		to).CombinedOutput()
	if _, err := os.Stat(to); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
