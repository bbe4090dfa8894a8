package output

import (
	"strings"
	"testing"

	"goprof/profile"
)

// TestMemoryText: the text has the known facts about malloc and the control group, and says which facts are not known.
func TestMemoryText(t *testing.T) {
	cache := uint64(100 << 20)
	for name, c := range map[string]struct {
		change      func(*profile.Memory)
		has, hasNot []string
	}{
		"glibc": {func(*profile.Memory) {}, []string{"buffers, a part of malloc\n", "in the main arena and 3 of threads",
			"100 MiB of that cache of files: 600 MiB left"}, []string{"not known"}},
		"another malloc": {func(m *profile.Memory) { m.Malloc.Other = "musl" },
			[]string{"malloc is musl, not glibc's", "buffers, a part of what is without a name\n"}, []string{"main arena"}},
		"a cache of unknown size": {func(m *profile.Memory) { m.Group.Cache, m.Group.Left = nil, 0 },
			[]string{"500 MiB of 1000 MiB used; how much of that is a cache of files is not known"}, []string{" left"}},
	} {
		m := &profile.Memory{Direct: &profile.DirectMemory{Reserved: 5 << 20, Count: 5},
			Malloc: profile.MallocMemory{Arenas: 3, InUse: 12 << 10},
			Group:  &profile.GroupMemory{Used: 500 << 20, Cache: &cache, Max: 1000 << 20, Left: 600 << 20}}
		c.change(m)
		var b strings.Builder
		if err := MemoryText(&b, m, nil, 5); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.has {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is missing:\n%s", name, want, b.String())
			}
		}
		for _, foreign := range c.hasNot {
			if strings.Contains(b.String(), foreign) {
				t.Errorf("%s: %q is there:\n%s", name, foreign, b.String())
			}
		}
	}
}
