package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// Mapping is one line of /proc/PID/maps (fs/proc/task_mmu.c, show_map_vma).
type Mapping struct {
	Start, End uint64
	Perm       Perm
	Offset     uint64 // in the file
	Dev        uint64 // major<<32 | minor
	Inode      uint64 // 0: no file
	// Path is the file's name in the target's root, or a name in brackets ("[vdso]", "[stack]", "[anon:...]"). Escaped
	// newlines are decoded.
	Path string
	// Deleted: the name no longer leads to the file.
	Deleted bool
}

type Perm uint8

const (
	PermRead Perm = 1 << iota
	PermWrite
	PermExec
	PermShared
)

func (m *Mapping) Name() string {
	if m.Inode == 0 {
		return m.Path
	}
	return path.Base(m.Path)
}

const (
	maxMappings = 1 << 18 // four times the kernel's default limit, vm.max_map_count
	maxMapsLine = 4096*4 + 128
)

var errMapsLine = errors.New("process: line of maps not understood")

// ParseMaps reads the text of /proc/PID/maps. With ErrTooLong it returns the first mappings.
func ParseMaps(r io.Reader) ([]Mapping, error) {
	var ms []Mapping
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 8192), maxMapsLine)
	lines.Split(splitLines)
	for lines.Scan() {
		if len(ms) == maxMappings {
			return ms, fmt.Errorf("%w: more than %d mappings", ErrTooLong, maxMappings)
		}
		var last *Mapping
		if len(ms) > 0 {
			last = &ms[len(ms)-1]
		}
		m, err := parseMapsLine(lines.Bytes(), last)
		if err != nil {
			return ms, err
		}
		// The kernel lists mappings in order. It may repeat a mapping that changes during the reading.
		if last != nil && m.Start < last.End {
			continue
		}
		ms = append(ms, m)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return ms, fmt.Errorf("%w: line of maps", ErrTooLong)
	} else if err != nil {
		return ms, err
	}
	return ms, nil
}

// splitLines is like bufio.ScanLines, but keeps a carriage return, because a name may end in one.
func splitLines(b []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1, b[:i], nil
	}
	if atEOF && len(b) > 0 {
		return len(b), b, nil
	}
	return 0, nil, nil
}

// parseMapsLine reads one line: "start-end perms offset major:minor inode   path". If the path is that of the previous
// mapping, both share it.
func parseMapsLine(line []byte, last *Mapping) (Mapping, error) {
	var m Mapping
	var f [5][]byte
	rest := line
	for i := range f {
		var ok bool
		f[i], rest, ok = bytes.Cut(rest, []byte(" "))
		if !ok && i < 4 {
			return m, fmt.Errorf("%w: %q", errMapsLine, line)
		}
	}
	start, end, _ := bytes.Cut(f[0], []byte("-"))
	major, minor, _ := bytes.Cut(f[3], []byte(":"))
	var n hexFields
	m.Start, m.End = n.parse(start, 16), n.parse(end, 16)
	m.Offset = n.parse(f[2], 16)
	m.Dev = n.parse(major, 16)<<32 | n.parse(minor, 16)&0xffffffff
	m.Inode = n.parse(f[4], 10)
	if n.bad || len(f[1]) != 4 || m.End <= m.Start {
		return m, fmt.Errorf("%w: %q", errMapsLine, line)
	}
	for i, c := range []byte("rwxs") {
		if f[1][i] == c {
			m.Perm |= 1 << i
		}
	}
	m.setPath(bytes.TrimLeft(rest, " "), last)
	return m, nil
}

// hexFields parses numbers, and remembers whether one of them was malformed.
type hexFields struct{ bad bool }

func (h *hexFields) parse(b []byte, base int) uint64 {
	v, err := strconv.ParseUint(string(b), base, 64)
	h.bad = h.bad || err != nil
	return v
}

// setPath decodes the kernel's form of a path. The kernel writes a newline as \012, and all other bytes unchanged
// (seq_path with "\n"). It appends " (deleted)" to the name of a deleted file (d_path). But a file's real name may also
// end like that. The links of map_files lead to the file in both cases.
func (m *Mapping) setPath(raw []byte, last *Mapping) {
	var deleted bool
	if m.Inode != 0 {
		raw, deleted = bytes.CutSuffix(raw, []byte(" (deleted)"))
	}
	m.Deleted = deleted
	if last != nil && string(raw) == last.Path {
		m.Path = last.Path
		return
	}
	m.Path = strings.ReplaceAll(string(raw), `\012`, "\n")
}
