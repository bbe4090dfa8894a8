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
	text, err := os.ReadFile("../../triage/hserr/testdata/kill25.txt")
	if err != nil {
		t.Fatal(err)
	}
	crash := filepath.Join(dir, "hs_err_pid1.log")
	put(t, crash, string(text))
	to := filepath.Join(dir, "map")
	out, _ := exec.CommandContext(t.Context(), "goprof", "triage", crash, "--redact", "default", "--redact-map",
		to).CombinedOutput()
	if _, err := os.Stat(to); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
