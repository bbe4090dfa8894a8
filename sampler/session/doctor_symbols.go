//go:build linux

package session

import (
	"debug/elf"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/target"
	"goprof/vmstructs"
)

// hiddenSymbol is a function that libjvm.so of every JDK has and none exports:
// VMThread::run (runtime/vmThread.cpp). Who finds it has the library's own symbols.
const hiddenSymbol = "_ZN8VMThread3runEv"

// checkSymbols says where the names of the VM's own functions come from.
func (h Host) checkSymbols(r *Report, p *target.Process, vm *vmstructs.VM) {
	image, ok := p.Image(vm.Library())
	if !ok {
		return
	}
	if replaced(p, image) {
		r.warn("library", "", "%s was replaced on disk since the JVM started", image.Path)
	}
	_, err := p.Global(image.Name, hiddenSymbol)
	if err == nil {
		r.ok("symbols", "%s: %s", image.Name, symbolSource(p, image))
		return
	}
	r.warn("symbols", debugPackage(vendor(p, image.Path), vm.Version().Major), "%s is stripped and has no debug file: the VM's own functions (collector, compiler) have no names; Java is whole", image.Path)
}

func replaced(p *target.Process, image target.Image) bool {
	for _, m := range p.Mappings() {
		if m.Start == image.Start {
			return m.Deleted
		}
	}
	return false
}

// symbolSource says which of the places it was that has them.
func symbolSource(p *target.Process, image target.Image) string {
	f, ok := openInRoot(p.PID(), image.Path)
	if !ok {
		return "its symbols are found"
	}
	defer f.Close()
	file, err := elf.NewFile(f)
	switch {
	case err != nil:
		return "its symbols are found"
	case file.Section(".symtab") != nil:
		return "it has its symbols itself (.symtab)"
	case file.Section(".gnu_debugdata") != nil:
		return "its symbols are in its mini debug info or a debug file"
	}
	return "its symbols are in a separate debug file"
}

// debugPackage is how to get the symbols of a JDK.
func debugPackage(vendor string, major int) string {
	jdk := itoa(major)
	switch name := strings.ToLower(vendor); {
	case strings.Contains(name, "debian"), strings.Contains(name, "ubuntu"):
		return "sudo apt install openjdk-" + jdk + "-dbg"
	case strings.Contains(name, "red hat"), strings.Contains(name, "fedora"):
		return "sudo dnf debuginfo-install java-" + jdk + "-openjdk-headless"
	}
	return "put libjvm.debuginfo, from the debug image of exactly this JDK, beside libjvm.so"
}

// openInRoot opens a regular file in a process's root; links cannot lead out of it, and no
// device or pipe is opened.
func openInRoot(pid int, name string) (*os.File, bool) {
	root, err := unix.Open("/proc/"+itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(root)
	path, err := unix.Openat2(root, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, false
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if unix.Fstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, false
	}
	f, err := os.OpenFile("/proc/self/fd/"+itoa(path), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	return f, err == nil
}
