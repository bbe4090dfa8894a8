package procfs

import (
	"bytes"
	"strconv"
	"strings"
)

// Status has fields of /proc/PID/status and /proc/PID/task/TID/status (proc(5); fs/proc/array.c). The kernel escapes
// newlines in the name, so a process cannot add lines.
type Status struct {
	Name                 string
	State                byte
	PID, TGID, Parent    int
	UID, EUID, SUID      int
	GID, EGID, SGID      int
	Tracer               int   // the thread that traces it, 0 if none
	NSPID                []int // its number in each pid namespace, outermost first
	Permitted, Effective uint64
	Bounding             uint64
	Seccomp              int // 0 off, 1 strict, 2 filter
	KernelThread         bool
}

// Nested reports whether the thread is in another pid namespace than this /proc.
func (s *Status) Nested() bool { return len(s.NSPID) > 1 }

// InnerPID returns the thread's number in its own pid namespace, or the value of otherwise if the kernel does not
// report the number (before 4.1).
func (s *Status) InnerPID(otherwise int) int {
	if len(s.NSPID) == 0 {
		return otherwise
	}
	return s.NSPID[len(s.NSPID)-1]
}

func (s *Status) Can(capability int) bool { return s.Effective&(1<<capability) != 0 }

// ParseStatus reads status. A field that is missing or not a number is 0.
func ParseStatus(b []byte) (s Status) {
	hasMemory := false
	for line := range bytes.Lines(b) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		if len(value) == 0 {
			continue
		}
		switch string(key) {
		case "Name":
			s.Name = strings.ToValidUTF8(string(value), "?")
		case "State":
			s.State = value[0]
		case "Pid":
			decimals(value, &s.PID)
		case "Tgid":
			decimals(value, &s.TGID)
		case "PPid":
			decimals(value, &s.Parent)
		case "TracerPid":
			decimals(value, &s.Tracer)
		case "Uid": // real, effective, saved, of the file system
			decimals(value, &s.UID, &s.EUID, &s.SUID)
		case "Gid":
			decimals(value, &s.GID, &s.EGID, &s.SGID)
		case "NSpid":
			s.NSPID = decimalList(value)
		case "VmSize":
			hasMemory = true
		case "Kthread": // since Linux 6.10
			s.KernelThread = string(value) == "1"
		case "CapPrm":
			s.Permitted = capabilities(value)
		case "CapEff":
			s.Effective = capabilities(value)
		case "CapBnd":
			s.Bounding = capabilities(value)
		case "Seccomp":
			decimals(value, &s.Seccomp)
		}
	}
	// Before Linux 6.10: kernel threads are kthreadd (2) and its children.
	if !hasMemory && s.State != 'Z' && s.State != 'X' && (s.Parent == 2 || s.PID == 2) {
		s.KernelThread = true
	}
	return s
}

// decimals reads the first words of a line as numbers.
func decimals(b []byte, into ...*int) {
	for _, v := range into {
		var word []byte
		word, b = cutColumn(b)
		*v, _ = strconv.Atoi(string(word))
	}
}

func decimalList(b []byte) (list []int) {
	for len(b) > 0 {
		var word []byte
		word, b = cutColumn(b)
		n, _ := strconv.Atoi(string(word))
		list = append(list, n)
	}
	return list
}

// cutColumn cuts the first word off a line with columns.
func cutColumn(b []byte) (word, rest []byte) {
	const blanks = " \t"
	b = bytes.TrimLeft(b, blanks)
	i := bytes.IndexAny(b, blanks)
	if i < 0 {
		return b, nil
	}
	return b[:i], bytes.TrimLeft(b[i:], blanks)
}

// capabilities reads a set of capabilities. Text that does not parse is the empty set.
func capabilities(hex []byte) uint64 {
	set, err := strconv.ParseUint(string(hex), 16, 64)
	if err != nil {
		return 0
	}
	return set
}

// These functions read a single line of status, for code that does this thousands of times.

// StatusState is the state of a thread, 0 if there is no such thread.
func StatusState(b []byte) byte {
	if v := line(b, "\nState:\t"); len(v) > 0 {
		return v[0]
	}
	return 0
}

// StatusTracer is the thread that traces this thread, 0 if none.
func StatusTracer(b []byte) int {
	n, _ := lineUint(b, "\nTracerPid:\t")
	return int(n)
}

func StatusParent(b []byte) (pid int, ok bool) {
	n, ok := lineUint(b, "\nPPid:\t")
	return int(n), ok
}

// StatusSwitches is how often the thread has given up its CPU, or lost it.
func StatusSwitches(b []byte) uint64 {
	own, _ := lineUint(b, "\nvoluntary_ctxt_switches:\t")
	forced, _ := lineUint(b, "\nnonvoluntary_ctxt_switches:\t")
	return own + forced
}

func lineUint(b []byte, key string) (v uint64, ok bool) {
	v, _, ok = CutUint(line(b, key))
	return v, ok
}

// line returns the text after key in b, up to the end of b.
func line(b []byte, key string) []byte {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return nil
	}
	return b[i+len(key):]
}
