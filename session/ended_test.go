//go:build linux

package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goprof/process/procfs"
)

// TestKilledForMemory: if the kernel kills the recorded process because memory is short, a note says so. Another end of
// the process, or another process that was killed before, causes no note.
func TestKilledForMemory(t *testing.T) {
	for version, file := range map[int]string{1: "memory.oom_control", 2: "memory.events"} {
		dir := t.TempDir()
		write := func(kills string) {
			text := "oom_kill_disable 0\nunder_oom 0\noom_kill " + kills + "\n"
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("3")
		g := memoryGroup{Group: procfs.Group{Version: version, Path: "/pod", Dirs: []string{dir, filepath.Dir(dir)}}}
		g.kills, g.known = g.OOMKills()
		if n := g.endNotes(true); len(n) != 0 {
			t.Errorf("version %d: nobody was killed: %+v", version, n)
		}
		write("4")
		if n := g.endNotes(false); len(n) != 0 {
			t.Errorf("version %d: it has not ended: %+v", version, n)
		}
		if n := g.endNotes(true); len(n) != 1 || n[0].Name != "out-of-memory" || !strings.Contains(n[0].Text, "group /pod ") {
			t.Errorf("version %d: %+v", version, n)
		}
		os.Remove(filepath.Join(dir, file)) // the container is gone
		if n := g.endNotes(true); len(n) != 0 {
			t.Errorf("version %d: nobody knows: %+v", version, n)
		}
	}
	if g := memoryGroupOf(os.Getpid()); g.known && len(g.Dirs) == 0 {
		t.Errorf("%+v", g)
	}
}
