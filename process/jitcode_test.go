package process

import (
	"strings"
	"testing"
)

// TestCodeOfNoFile: executable memory without a file holds code that was made at run time. Other memory does not, and
// the kernel's own pages do not.
func TestCodeOfNoFile(t *testing.T) {
	const maps = `1000-2000 r--p 00000000 fe:00 7 /lib/a.so
10000-12000 rwxp 00000000 00:00 0 
20000-21000 rw-p 00000000 00:00 0 
30000-31000 rw-p 00000000 00:00 0 [heap]
40000-41000 r-xp 00000000 00:00 0 [anon:v8]
50000-51000 rwxp 00000000 00:00 0 [heap]
60000-61000 --xp 00000000 00:00 0 [vsyscall]
70000-71000 --xp 00000000 00:00 0 [uprobes]
80000-81000 r-xp 00000000 00:00 0 [vdso]
90000-91000 rwxp 00000000 00:00 0 [stack]
`
	ms, err := ParseMaps(strings.NewReader(maps))
	if err != nil {
		t.Fatal(err)
	}
	var s space
	s.init()
	s.mappings = ms
	never := func() bool { return false }
	for _, c := range []struct {
		pc     uint64
		exact  bool
		offset uint64
		ok     bool
	}{
		{0x1008, true, 0, false}, {0x10000, true, 0, true}, {0x11ff8, false, 0x1ff8, true},
		{0x12000, false, 0x2000, true}, {0x12000, true, 0, false}, // a return address may follow the last call
		{0x20008, true, 0, false}, {0x30008, true, 0, false}, {0x40010, true, 0x10, true}, {0, true, 0, false},
		{0x50010, true, 0x10, true}, {0x60010, true, 0, false}, {0x70010, true, 0, false}, {0x80010, true, 0, false},
		{0x90010, true, 0x10, true},
	} {
		code, ok := s.codeAt(c.pc, c.exact, never)
		if ok != c.ok || ok && (code.Image != JITCode || code.Offset != c.offset || code.Row != nil || code.Symbol != "") {
			t.Errorf("%#x, exact %v: %+v, %v", c.pc, c.exact, code, ok)
		}
	}
}
