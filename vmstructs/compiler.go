package vmstructs

import (
	"encoding/binary"
	"fmt"
)

// Compiling returns the present work of a compiler thread: "C2 java.lang.String.hashCode". ok is false while it
// compiles nothing.
func (vm *VM) Compiling(t Thread) (string, bool) {
	l := &vm.l.task
	if !t.Compiler || !l.env.ok() || !l.task.ok() || !l.method.ok() || !l.level.ok() {
		return "", false
	}
	// The environment is an object on the compiler thread's stack (ci/ciEnv.hpp), and the task is reused. So each step may
	// fail.
	env := vm.pointer(t.Addr, l.env)
	task := vm.pointer(env, l.task)
	if task == 0 {
		return "", false
	}
	m, err := vm.MethodNow(vm.pointer(task, l.method))
	if err != nil {
		return "", false
	}
	level, err := vm.mem.U8(task + uint64(l.level))
	if err != nil || vm.pointer(t.Addr, l.env) != env {
		return "", false
	}
	return fmt.Sprintf("%s %s", vm.compilerName(level), m.Full()), true
}

// compilerName names the compiler of a level: 1 to 3 are C1's (compiler/compilerDefinitions.hpp).
func (vm *VM) compilerName(level uint8) string {
	switch {
	case level < 4:
		return "C1"
	case vm.flagOn("UseJVMCICompiler"):
		return "JVMCI"
	}
	return "C2"
}

// TaskSize is the number of bytes of a CompileTask that TaskMethod needs, in all releases.
const TaskSize = 64

// TaskMethod returns the name of a CompileTask's method, empty if not known. task is a copy of the first TaskSize
// bytes, because a task is reused as soon as its method is compiled.
func (vm *VM) TaskMethod(task []byte) string {
	l := &vm.l.task
	if !l.method.ok() || uint64(l.method)+8 > uint64(len(task)) {
		return ""
	}
	m, err := vm.MethodNow(binary.LittleEndian.Uint64(task[l.method:]))
	if err != nil {
		return ""
	}
	return m.Full()
}
