package vmstructs

import "goprof/process/maybe"

// Compiling is false if the compilers accept no new tasks, temporarily or permanently (UseCompiler).
func (h *Health) Compiling() maybe.Value[bool] {
	if f, ok := h.vm.Flag("UseCompiler"); ok && f.Kind == BoolFlag && !f.Bool {
		return maybe.Known(false)
	}
	if h.symbols.compile == 0 {
		return maybe.Value[bool]{}
	}
	state, err := h.vm.mem.I32(h.symbols.compile)
	return maybe.If(state == 1, err == nil && state >= 0 && state <= 2) // compiler/compileBroker.hpp
}

// GaveUp reports whether the JVM itself has turned its compilers off permanently. It does so if the code cache has no
// room for the code that a compiler needs at its start (compiler/compileBroker.cpp, shutdown_compiler_runtime), or with
// -XX:-UseCodeCacheFlushing for a method (handle_full_code_cache). The JVM then clears UseCompiler without changing the
// flag's origin. A user's -XX:-UseCompiler and TieredStopAtLevel=0 change the origin. -Xint does not, but it also
// clears UseOnStackReplacement (runtime/arguments.cpp, set_mode_flags).
func (h *Health) GaveUp() maybe.Value[bool] {
	compiler, ok := h.vm.Flag("UseCompiler")
	origin, told := h.vm.flagOrigin("UseCompiler")
	if !ok || !told || compiler.Kind != BoolFlag {
		return maybe.Value[bool]{}
	}
	return maybe.Known(!compiler.Bool && origin == flagDefault && h.vm.flagOn("UseOnStackReplacement"))
}
