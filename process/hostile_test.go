package process

import (
	"bytes"
	"debug/elf"
	"testing"
)

// TestNamesAreCut: many symbols may share one string of megabytes, and the Code of each pc has the name of its symbol.
func TestNamesAreCut(t *testing.T) {
	names := append(make([]byte, 1), bytes.Repeat([]byte("x"), 1<<20)...)
	if got := len(cstring(names, 1)); got != maxName {
		t.Errorf("a name of %d bytes", got)
	}
	if got := cstring(names[:100], 1); got != nil {
		t.Errorf("a name without end: %q", got)
	}
	if got := cstring(append(names[:maxName+1:maxName+1], 0), 1); len(got) != maxName {
		t.Errorf("a name of just that length has %d", len(got))
	}
	table := &symtab{names: names}
	for i := range uint64(100) {
		table.raw = append(table.raw, rawSym(1, elf.STT_NOTYPE, elf.STB_GLOBAL, 100+i, 0)...)
	}
	table.order = &order{symbols: table.sorted(func(uint64) bool { return true })}
	if name, ok := table.lookup(150); !ok || len(name) != maxName {
		t.Errorf("%d bytes, %v", len(name), ok)
	}
}
