//go:build linux

package procfs

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGroupMemory reads groups of both versions. The tightest limit counts, and the cache of files is counted
// separately.
func TestGroupMemory(t *testing.T) {
	write := func(dir string, files map[string]string) string {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	top := t.TempDir()
	v2 := []string{
		write(top+"/a/b", map[string]string{"memory.current": "700\n", "memory.max": "max\n",
			"memory.stat": "anon 500\nfile 150\nshmem 50\nslab_reclaimable 20\n"}),
		write(top+"/a", map[string]string{"memory.current": "800\n", "memory.max": "1000\n",
			"memory.stat": "anon 500\nfile 250\nshmem 50\nslab_reclaimable 20\n"}),
		write(top, nil),
	}
	g := Group{Version: 2, Dirs: v2}
	if m := g.Memory(); m.Used.Or(0) != 800 || m.Max.Or(0) != 1000 || m.Cache.Or(0) != 220 || !m.Limited.Or(false) {
		t.Errorf("version 2: %+v", m)
	}
	g.Dirs = []string{v2[0], v2[2]}
	if m := g.Memory(); m.Used.Or(0) != 700 || m.Max.IsKnown() || m.Cache.Or(0) != 120 || m.Limited.Or(true) {
		t.Errorf("version 2 without a limit: %+v", m)
	}
	g = Group{Version: 1, Dirs: []string{write(top+"/one", map[string]string{"memory.usage_in_bytes": "900\n",
		"memory.limit_in_bytes": "2000\n", "memory.stat": "cache 1\ntotal_cache 300\ntotal_shmem 100\n"})}}
	if m := g.Memory(); m.Used.Or(0) != 900 || m.Max.Or(0) != 2000 || m.Cache.Or(0) != 200 || !m.Limited.Or(false) {
		t.Errorf("version 1: %+v", m)
	}
	g.Dirs = []string{top + "/none"}
	if m := g.Memory(); m.Used.IsKnown() || m.Limited.IsKnown() {
		t.Errorf("a group that is gone: %+v", m)
	}
}
