//go:build linux

package agent

import (
	"path"
	"slices"
	"strings"

	"goprof/process"
)

// The values of the attribute process.runtime.name.
const (
	jvmRuntime    = "jvm"
	goRuntime     = "go"
	nodeRuntime   = "nodejs"
	pythonRuntime = "python"
	dotnetRuntime = ".NET"
	nativeRuntime = "native"
	kernelRuntime = "kernel"
)

// IsRuntime reports whether a text is one of these values.
func IsRuntime(text string) bool {
	return slices.Contains([]string{jvmRuntime, goRuntime, nodeRuntime, pythonRuntime, dotnetRuntime, nativeRuntime,
		kernelRuntime}, text)
}

// byLibrary and byProgram give the runtime for the beginning of a library's name, and of the program's own name.
var byLibrary = []struct{ begins, runtime string }{
	{"libjvm.so", jvmRuntime}, {"libj9vm", jvmRuntime},
	{"libcoreclr.so", dotnetRuntime}, {"libpython", pythonRuntime}, {"libnode.so", nodeRuntime},
}

var byProgram = []struct{ begins, runtime string }{
	{"node", nodeRuntime}, {"python", pythonRuntime}, {"pypy", pythonRuntime}, {"dotnet", dotnetRuntime},
}

// goNote is the section in which Go's linker puts its build id (cmd/link/internal/ld, ELF_NOTE_GO_NAME).
const goNote = ".note.go.buildid"

// runtimeOf returns the runtime of a process by the names of its program and libraries, and by the note of Go's linker.
func runtimeOf(program string, p *process.Process) string {
	var libraries []string
	for _, m := range p.Mappings() {
		if m.Perm&process.PermExec != 0 && m.Inode != 0 {
			libraries = append(libraries, path.Base(m.Path))
		}
	}
	return runtimeBy(program, libraries, func() bool { return p.HasSection(program, goNote) })
}

func runtimeBy(program string, libraries []string, isGo func() bool) string {
	for _, library := range libraries {
		for _, one := range byLibrary {
			if strings.HasPrefix(library, one.begins) {
				return one.runtime
			}
		}
	}
	for _, one := range byProgram {
		if rest, ok := strings.CutPrefix(program, one.begins); ok && strings.Trim(rest, "0123456789.js") == "" {
			return one.runtime
		}
	}
	if isGo() {
		return goRuntime
	}
	return nativeRuntime
}
