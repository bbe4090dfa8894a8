package vmstructs

import (
	"encoding/binary"
	"fmt"
)

// Compiling says what a compiler thread compiles: "C2 java.lang.String.hashCode". It returns false while the thread
// has nothing to do.
func (vm *VM) Compiling(t Thread) (string, bool) {
	l := &vm.l.task
	if !t.Compiler || !l.env.ok() || !l.task.ok() || !l.method.ok() || !l.level.ok() {
		return "", false
	}
	// The environment is an object on the compiler thread's stack (ci/ciEnv.hpp). The task is an object that is reused.
	// So each step may fail at any time.
	env, err := vm.mem.Ptr(t.Addr + uint64(l.env))
	if err != nil || env == 0 {
		return "", false
	}
	task, err := vm.mem.Ptr(env + uint64(l.task))
	if err != nil || task == 0 {
		return "", false
	}
	addr, err := vm.mem.Ptr(task + uint64(l.method))
	if err != nil {
		return "", false
	}
	level, err := vm.mem.U8(task + uint64(l.level))
	if err != nil {
		return "", false
	}
	m, err := vm.MethodNow(addr)
	if err != nil {
		return "", false
	}
	if again, err := vm.mem.Ptr(t.Addr + uint64(l.env)); err != nil || again != env {
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

// TaskSize is how much of a CompileTask TaskMethod wants: all releases have the method within.
const TaskSize = 64

// TaskMethod names the method of a CompileTask, by a copy of the task's first TaskSize bytes: a task is reused as soon
// as its method is compiled. The name is empty if it is not known.
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
