package unwind

import (
	"slices"
	"strings"

	"goprof/arch"
	"goprof/process"
)

// maxAssembly bounds the code of an assembly function that is read.
const maxAssembly = 2048

// kernelLibrary is the name of a mapping of the kernel's own code (/proc/PID/maps).
const kernelLibrary = "[vdso]"

// assemblyCaller finds the caller of a function without unwind rules. HotSpot has a few such functions in hand-written
// assembly (os_cpu/linux_*/*.S: SpinPause, the copy loops). On arm64 the kernel's vdso has rules for signals only
// (arch/arm64/kernel/vdso/Makefile). assemblyCaller reads the code ahead of these functions, and of the C library's
// clone, to find out how they return. For other libraries without unwind information it returns false, and the walk
// notes a gap, because their code may do anything.
func (w *Walker) assemblyCaller(site *nativeSite) (caller, bool) {
	if !w.cur.exact || !w.byHand(site.fn.Module) && !w.hasCloned(site) {
		return caller{}, false
	}
	exit, ok := w.assemblyExit(w.cur.pc)
	if !ok || exit.Jump {
		return caller{}, false
	}
	c, ok := w.evalExit(exit, false)
	return c, ok && w.afterCall(c.pc, nil)
}

// byHand reports whether assemblyCaller handles the functions of a library that have no unwind rules.
func (w *Walker) byHand(library string) bool {
	return w.vm != nil && (library == w.vm.Library() || library == kernelLibrary)
}

// clones are the functions of C libraries that start a thread. glibc's unwind rules for them end before the system
// call, because the new thread also returns from that call (sysdeps/unix/sysv/linux/x86_64/clone3.S, and that of
// aarch64).
var clones = []string{"__clone3", "clone3", "__clone", "clone"}

// hasCloned reports whether the thread is in the frame of a function that has just started another thread, and is not
// the new thread. For the new thread the system call returns 0.
func (w *Walker) hasCloned(site *nativeSite) bool {
	r := w.cpu.SyscallResult
	return slices.Contains(clones, site.fn.Name) && w.cur.known&(1<<r) != 0 && w.cur.regs[r] != 0
}

// assemblyExit reads the code ahead of pc, in a function that was written in assembly.
func (w *Walker) assemblyExit(pc uint64) (arch.Exit, bool) {
	if r, ok := w.exits[pc]; ok {
		return r.exit, r.ok
	}
	var r exitResult
	code := w.code[:maxAssembly]
	// Loops lead back, so code before the pc is read, too. There may be no memory before a library's first function.
	for _, base := range [...]uint64{pc - maxAssembly/2, pc} {
		if w.t.Read(base, code) == nil {
			exit, err := w.tracer.Trace(code, base, pc, 0)
			r = exitResult{exit: exit, ok: err == nil}
			break
		}
	}
	w.exits[pc] = r
	return r.exit, r.ok
}

// askLinker finds the rules for code that a linker has made. Such code continues in another library, or replaces an
// instruction elsewhere in this library. In the second case it belongs to the function of that instruction.
func (w *Walker) askLinker(pc uint64, at *process.Code, site *nativeSite) {
	code := w.code[:arch.MaxLinkerStub]
	for w.t.Read(pc, code) != nil { // the mapping may end soon after the last stub
		if len(code) == arch.MinLinkerStub {
			return
		}
		code = code[:len(code)-4]
	}
	if w.cpu.LinkerStub(code) {
		site.row = w.untouched
		return
	}
	by, ok := w.cpu.Detour(code)
	if !ok {
		return
	}
	if home, ok := w.t.Code(pc+uint64(by), true); ok && home.Row != nil && home.Image == at.Image {
		site.row = home.Row
		if at.Symbol == "" || strings.HasPrefix(at.Symbol, "e843419@") || strings.HasPrefix(at.Symbol, "__erratum_") {
			site.fn = nativeFunc(home)
		}
	}
}
