//go:build linux

package sampler

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// FuzzParse reads arbitrary bytes as each of the kernel's formats.
func FuzzParse(f *testing.F) {
	f.Add([]byte("7 (java) R 1 7 7"))
	f.Add([]byte("202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffe10 0x7f00ab\n"))
	f.Add([]byte("664334 58987 2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseStat(b)
		parseSyscall(b)
		parseSchedstat(b)
		n := 0
		parseDirents(b, func(int) { n++ })
		if n > len(b)/19 {
			t.Fatalf("%d entries in %d bytes", n, len(b))
		}
		field(b, "\nState:\t")
	})
}

// FuzzProc writes what the kernel would, and reads it.
func FuzzProc(f *testing.F) {
	f.Add([]byte("java"), byte('R'), uint64(7), uint64(9), uint16(3), int64(202), uint64(0x7ffe10))
	f.Add([]byte("a) Z 1 (\n"), byte('t'), ^uint64(0)>>1, uint64(0), uint16(0), int64(-1), ^uint64(0))
	f.Fuzz(func(t *testing.T, comm []byte, state byte, a, b uint64, cpu uint16, call int64, at uint64) {
		if state <= ' ' || state >= 0x7f || state == ')' {
			state = 'S'
		}
		line := fmt.Appendf(nil, "7 (%s) %c 1 7 7 0 -1 4194560 1 2 3 4 %d %d 0 0 20 0 9 0 555 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 %d 0 0\n",
			comm, state, a>>1, b>>1, cpu)
		if s, c, ticks := parseStat(line); s != state || c != int(cpu) || ticks != a>>1+b>>1 {
			t.Fatalf("%q: %c, CPU %d, %d ticks", line, s, c, ticks)
		}
		line = fmt.Appendf(nil, "%d %d %d\n", a, b, cpu)
		if s, ok := parseSchedstat(line); !ok || s != (schedstat{a, b, uint64(cpu)}) {
			t.Fatalf("%q: %+v", line, s)
		}
		call = max(call, -1)
		args := ""
		if call >= 0 {
			args = " 0x1 0x0 0xffffffffffffffff 0x3 0x4 0x5"
		}
		line = fmt.Appendf(nil, "%d%s %#x %#x\n", call, args, at, a)
		noArgs := call < 0
		if c, args, sp, pc, ok := parseSyscall(line); !ok || c != call || sp != at || pc != a || noArgs != (args == [6]uint64{}) {
			t.Fatalf("%q: %d %#x %#x %#x %v", line, c, args, sp, pc, ok)
		}
		// A directory of two threads, with the entries that every directory has.
		var dir []byte
		for _, name := range []string{".", "..", fmt.Sprint(cpu), string(comm[:min(len(comm), 200)]), "12"} {
			size := (19 + len(name) + 1 + 7) &^ 7
			entry := make([]byte, size)
			binary.LittleEndian.PutUint16(entry[16:], uint16(size))
			copy(entry[19:], name)
			dir = append(dir, entry...)
		}
		var tids []int
		parseDirents(dir, func(tid int) { tids = append(tids, tid) })
		if len(tids) < 2 || tids[0] != int(cpu) || tids[len(tids)-1] != 12 || !slices.Contains([]int{2, 3}, len(tids)) {
			t.Fatalf("%v", tids)
		}
	})
}
