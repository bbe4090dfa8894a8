package procfs

import (
	"bytes"
	"strings"
)

// Stat has fields of /proc/PID/stat and /proc/PID/task/TID/stat (proc(5); fs/proc/array.c, do_task_stat). Reading these
// files takes no lock of the address space, so it works for a process that hangs.
type Stat struct {
	State   byte   // field 3, R S D T t Z X I; 0 if the text has no state
	Parent  int    // field 4, the process that started it
	CPU     int    // field 39, the CPU that it last ran on; -1 if missing
	Ticks   uint64 // fields 14 and 15, its CPU time
	Kernel  uint64 // field 15, the part of it in the kernel
	Threads int    // field 20
	Start   uint64 // field 22, in ticks since the machine started
	Memory  uint64 // field 23, bytes of address space; 0 for threads of the kernel
}

// Alive reports whether the thread has not exited. A thread in state Z waits to be reaped, and one in X is ending.
func (s Stat) Alive() bool { return s.State != 'Z' && s.State != 'X' && s.State != 'x' }

// afterName returns the text after the name, from the state on. The name in field 2 may contain any byte, but the text
// after it contains no bracket.
func afterName(b []byte) []byte {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 || len(b) < end+3 || b[end+1] != ' ' {
		return nil
	}
	b = b[end+2:]
	if b[0] <= ' ' || len(b) > 1 && b[1] != ' ' && b[1] != '\n' {
		return nil
	}
	return b
}

// State reads only the state of a thread from its stat. It is 0 if that fails.
func State(b []byte) byte {
	if b = afterName(b); len(b) == 0 {
		return 0
	}
	return b[0]
}

// Comm reads only the name from stat. The name may contain brackets.
func Comm(b []byte) string {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return ""
	}
	return strings.ToValidUTF8(string(b[open+1:end]), "\uFFFD")
}

// ParseStat reads stat. ok is true if all fields up to the memory are there. A missing field is 0, or -1 for CPU.
func ParseStat(b []byte) (s Stat, ok bool) {
	s.CPU = -1
	if b = afterName(b); len(b) == 0 {
		return s, false
	}
	s.State = b[0]
	_, b = cutWord(b)
	const lastNeeded, last = 23, 39
	good := true
	take := func(word []byte) uint64 {
		v, ok := number(word)
		good = good && ok
		return v
	}
	n := 4
	for ; n <= last && len(b) > 0; n++ {
		var word []byte
		word, b = cutWord(b)
		switch n {
		case 4:
			s.Parent = int(min(take(word), 1<<30))
		case 14:
			s.Ticks = take(word)
		case 15:
			s.Kernel = take(word)
			s.Ticks += s.Kernel
		case 20:
			s.Threads = int(min(take(word), 1<<30))
		case 22:
			s.Start = take(word)
		case lastNeeded:
			s.Memory = take(word)
		case last:
			if v, ok := number(word); ok {
				s.CPU = int(v)
			}
		}
	}
	return s, good && n > lastNeeded
}
