//go:build linux

package session

import (
	"bytes"
	"cmp"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// Facts is what is known of a JVM and of the machine, for file formats that have fields for it. It holds no arguments,
// no properties and no environment.
type Facts struct {
	VMName  string // "OpenJDK 64-Bit Server VM"
	VMInfo  string // the line that java -Xinternalversion prints
	Started time.Time
	OS      string // of goprof: in a container, the host's kernel and the container's system
	CPU     string // "AMD EPYC 7B13"
	Arch    string // "amd64"
	Sockets int
	Cores   int
	Threads int
}

// Facts reads the facts of the JVM and the machine.
func (s *Session) Facts() Facts {
	v := s.VM.Version()
	name, _, _ := strings.Cut(v.Info, " (")
	f := Facts{VMName: name, VMInfo: v.Info, Started: startOf(s.Process.PID()), OS: systemName(), Arch: runtime.GOARCH}
	b, _ := procfs.Read("/proc/cpuinfo", maxCPUInfo)
	f.CPU, f.Sockets, f.Cores, f.Threads = cpuInfo(b)
	f.Threads = cmp.Or(f.Threads, runtime.NumCPU())
	return f
}

// maxCPUInfo is enough for more than a thousand CPUs.
const maxCPUInfo = 4 << 20

// cpuInfo reads /proc/cpuinfo. arm64 has neither names nor cores there.
func cpuInfo(b []byte) (name string, sockets, cores, threads int) {
	packages, seen := map[string]bool{}, map[string]bool{}
	socket := ""
	for line := range bytes.Lines(b) {
		k, v, ok := strings.Cut(string(line), ":")
		v = strings.TrimSpace(v)
		if !ok {
			continue
		}
		switch strings.TrimSpace(k) {
		case "processor":
			threads++
		case "model name":
			name = v
		case "physical id":
			socket = v
			packages[v] = true
		case "core id":
			seen[socket+"/"+v] = true
		}
	}
	return name, max(len(packages), min(threads, 1)), max(len(seen), min(threads, 1)), threads
}

func systemName() string {
	var uts unix.Utsname
	name := "Linux"
	if unix.Uname(&uts) == nil {
		name = unix.ByteSliceToString(uts.Sysname[:]) + " " + unix.ByteSliceToString(uts.Release[:])
	}
	b, err := os.ReadFile("/etc/os-release")
	if err != nil || len(b) > procfs.MaxFile {
		return name
	}
	for line := range bytes.Lines(b) {
		if pretty, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "PRETTY_NAME="); ok {
			return name + ", " + strings.Trim(pretty, `"'`)
		}
	}
	return name
}
