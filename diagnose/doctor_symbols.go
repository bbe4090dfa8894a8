//go:build linux

package diagnose

import (
	"strings"

	"goprof/process"
	"goprof/vmstructs"
)

// checkSymbols reports the source of the names of the VM's own functions.
func (h Host) checkSymbols(r *Report, p *process.Process, vm *vmstructs.VM) {
	image, ok := p.Image(vm.Library())
	if !ok {
		return
	}
	if replaced(p, image) {
		r.ok("library", "%s was replaced or removed since the JVM started: its memory and what is still mapped of it count",
			image.Path)
	}
	if _, err := p.Global(image.Name, vmstructs.HiddenSymbol); err == nil {
		r.ok("symbols", "%s: %s", image.Name, symbolSource(p, image))
		return
	}
	if notes := h.notes(p); len(notes) > 0 {
		for _, n := range notes {
			r.warn("symbols", n.Remedy, "%s", n.Text)
		}
		return
	}
	r.warn("symbols", debugPackage(vendor(p, image.Path), vm.Version().Major),
		"%s is stripped and has no debug file: the VM's own functions (collector, compiler) have no names; Java is whole",
		image.Path)
}

func replaced(p *process.Process, image process.Image) bool {
	for _, m := range p.Mappings() {
		if m.Start == image.Start {
			return m.Deleted
		}
	}
	return false
}

func symbolSource(p *process.Process, image process.Image) string {
	switch {
	case p.HasSection(image.Name, ".symtab"):
		return "it has its symbols itself (.symtab)"
	case p.HasSection(image.Name, ".gnu_debugdata"):
		return "its symbols are in its mini debug info or a debug file"
	}
	return "its symbols are in a separate debug file"
}

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
