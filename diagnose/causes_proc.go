//go:build linux

package diagnose

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

func (h Host) proc() string {
	if h.Proc == "" {
		return "/proc"
	}
	return h.Proc
}

// file returns the path of a file of a process in /proc. pid 0 is goprof itself.
func (h Host) file(pid int, name string) string {
	if pid == 0 {
		return filepath.Join(h.proc(), "self", name)
	}
	return filepath.Join(h.proc(), strconv.Itoa(pid), name)
}

// read returns a small file of /proc. Opening never blocks, because these files are the kernel's and not the target's.
// (cmdline lies in the target's memory, and is read elsewhere.)
func (h Host) read(path string, limit int64) ([]byte, bool) {
	b, err := procfs.Read(path, limit)
	return b, err == nil
}

func (h Host) status(pid int) (procfs.Status, bool) {
	b, ok := h.read(h.file(pid, "status"), procfs.MaxFile)
	if !ok || len(b) == 0 {
		return procfs.Status{}, false
	}
	return procfs.ParseStatus(b), true
}

// The inodes of the first namespaces are fixed (include/linux/proc_ns.h).
var initialNamespace = map[string]string{"pid": "pid:[4026531836]", "user": "user:[4026531837]"}

// namespace returns a name like "pid:[4026531836]", or "" if goprof may not read it.
func (h Host) namespace(pid int, kind string) string {
	link, err := os.Readlink(h.file(pid, "ns/"+kind))
	if err != nil {
		return ""
	}
	return link
}

// nested reports whether goprof is known to run in a namespace of its own, as in a container.
func (h Host) nested(kind string) bool {
	ours := h.namespace(0, kind)
	return ours != "" && ours != initialNamespace[kind]
}

// differs reports whether the process is known to be in another namespace than goprof.
func (h Host) differs(pid int, kind string) bool {
	ours, theirs := h.namespace(0, kind), h.namespace(pid, kind)
	return ours != "" && theirs != "" && ours != theirs
}

// yamaScope returns kernel.yama.ptrace_scope, or 0 without yama.
func (h Host) yamaScope() int {
	b, ok := h.read(filepath.Join(h.proc(), "sys/kernel/yama/ptrace_scope"), 16)
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

func (h Host) fileOwner(path string) (int, bool) {
	if h.owner != nil {
		return h.owner(path)
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0, false
	}
	return int(st.Uid), true
}

// program is the kind of program that a process runs, judged by its mapped files.
type program uint8

const (
	unknownProgram program = iota
	hotSpot
	openJ9
	nativeImage
)

// libraries says which known files a process has mapped.
type libraries struct {
	kind     program
	launcher bool // libjli.so, the launcher's library, is mapped
	any      bool // at least one file is mapped
}

// maxMaps limits how much of a process's maps is read. It fits the kernel's default limit of 65,530 mappings with long
// lines.
const maxMaps = 16 << 20

// libraries finds the known libraries among a process's mapped files. readable is false if goprof may not read the list
// of mapped files.
func (h Host) libraries(pid int) (libs libraries, readable bool) {
	f, err := os.Open(h.file(pid, "maps"))
	if err != nil {
		return libs, false
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxMaps))
	for lines.Scan() {
		i := bytes.IndexByte(lines.Bytes(), '/')
		if i < 0 {
			continue
		}
		libs.any = true
		file := bytes.TrimSuffix(lines.Bytes()[i:], []byte(" (deleted)"))
		switch name := file[bytes.LastIndexByte(file, '/')+1:]; {
		case bytes.HasPrefix(name, []byte("libj9vm")):
			libs.kind = openJ9 // OpenJ9 has a small libjvm.so that calls its real library
			return libs, true
		case string(name) == "libjvm.so":
			libs.kind = hotSpot
		case string(name) == "libjli.so":
			libs.launcher = true
		}
	}
	return libs, lines.Err() == nil || libs.any
}

func (h Host) program(pid int) program {
	libs, _ := h.libraries(pid)
	if libs.kind == unknownProgram && libs.any && hasNativeImageSection(h.file(pid, "exe")) {
		return nativeImage
	}
	return libs.kind
}
