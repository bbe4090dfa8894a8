//go:build linux

package diagnose

import (
	"os"
	"path/filepath"
	"testing"
)

// TestProgramsAreFiles: what is known of a program belongs to the file that a link of /proc leads to now, and not to
// the link.
func TestProgramsAreFiles(t *testing.T) {
	link := filepath.Join(t.TempDir(), "exe")
	var p programs
	if p.has(link) {
		t.Error("nothing is there")
	}
	if err := os.Symlink("/proc/self/exe", link); err != nil {
		t.Fatal(err)
	}
	own := p.has(link)
	if p.known = map[fileID]bool{}; p.has(link) != own || len(p.known) != 1 {
		t.Error("a program is asked for twice")
	}
	for id := range p.known {
		p.known[id] = true
	}
	if !p.has(link) {
		t.Error("what is known is not used")
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	os.Remove(link)
	if err := os.Symlink(script, link); err != nil {
		t.Fatal(err)
	}
	if p.has(link) {
		t.Error("the answer is another file's")
	}
}
