package procfs

import (
	"bytes"
)

// Files with a name and a number in each line.

// Kilobytes returns the number of a line like "VmSwap:    12 kB" of /proc/PID/status or /proc/meminfo, in bytes.
func Kilobytes(b []byte, key string) (bytes uint64, ok bool) {
	rest, ok := keyedLine(b, key+":")
	if !ok {
		return 0, false
	}
	n, rest, ok := CutUint(rest)
	if !ok || n > 1<<53 || !isUnit(rest, " kB") {
		return 0, false
	}
	return n << 10, true
}

// Keyed returns the number of a line like "nr_throttled 12", of /proc/vmstat and of files of control groups.
func Keyed(b []byte, key string) (uint64, bool) {
	rest, ok := keyedLine(b, key+" ")
	if !ok {
		return 0, false
	}
	n, rest, ok := CutUint(rest)
	return n, ok && isUnit(rest, "")
}

// keyedLine returns the rest of the line that begins with key, without blanks.
func keyedLine(b []byte, key string) ([]byte, bool) {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			return bytes.TrimLeft(rest, " \t"), true
		}
	}
	return nil, false
}

// isUnit reports whether the rest of a line is that unit.
func isUnit(rest []byte, unit string) bool {
	return string(bytes.TrimRight(rest, "\n")) == unit
}

// Limit reads a soft limit from /proc/PID/limits: "Max open files   1024   4096   files". unlimited: there is no limit.
func Limit(b []byte, name string) (n uint64, unlimited, ok bool) {
	rest, ok := keyedLine(b, name+" ")
	if !ok {
		return 0, false, false
	}
	word, _ := cutWord(rest)
	if string(word) == "unlimited" {
		return 0, true, true
	}
	n, ok = number(word)
	return n, false, ok
}

// CountList counts the members of a list like "0-3,8" (lib/bitmap-str.c, bitmap_parselist). ok is false for more than
// some million members.
func CountList(b []byte) (n uint64, ok bool) {
	b = bytes.TrimSpace(b)
	for len(b) > 0 {
		first, rest, good := CutUint(b)
		if !good || first > 1<<20 {
			return 0, false
		}
		last := first
		if len(rest) > 0 && rest[0] == '-' {
			if last, rest, good = CutUint(rest[1:]); !good || last < first || last > 1<<20 {
				return 0, false
			}
		}
		if n += last - first + 1; n > 1<<20 {
			return 0, false
		}
		if len(rest) > 0 && (rest[0] != ',' || len(rest) == 1) {
			return 0, false
		}
		b = rest[min(1, len(rest)):]
	}
	return n, n > 0
}

// CPUsAllowed counts the CPUs on which a thread may run. status is the thread's status file.
func CPUsAllowed(status []byte) (uint64, bool) {
	rest, ok := keyedLine(status, "Cpus_allowed_list:")
	if !ok {
		return 0, false
	}
	return CountList(rest)
}

// Number reads a file that holds one number, as many of /proc/sys and of control groups do.
func Number(b []byte) (uint64, bool) { return number(bytes.TrimRight(b, "\n")) }

// MajorFaults reads field 12 of stat: how often the process, or the thread, had to wait for a page from a disk.
func MajorFaults(stat []byte) (uint64, bool) {
	b := afterName(stat)
	for n := 3; n < 12 && len(b) > 0; n++ {
		_, b = cutWord(b)
	}
	word, _ := cutWord(b)
	return number(word)
}
