package postmortem

import (
	"goprof/process/maybe"
	"goprof/vmstructs"
)

// Facts are a core file's facts besides its threads. Package autopsy judges them.
type Facts struct {
	CPU     string // "amd64"
	Version string // of the JVM
	// Stack is the stack of the thread that died, first its end. It is 0 if it is not known.
	Stack       [2]uint64
	Heap        vmstructs.HeapUse
	Code        []vmstructs.CodeUse
	Compiling   maybe.Value[bool] // false: the JVM has stopped its compilers
	OutOfMemory maybe.Value[uint64]
	Overflows   maybe.Value[uint64]
}

func (j *JVM) Facts() *Facts {
	h := j.VM.NewHealth()
	f := &Facts{CPU: j.Core.CPU().Name, Version: j.VM.Version().Info, Heap: h.Heap(), Code: h.Code(),
		Compiling: h.Compiling(), OutOfMemory: h.OutOfMemory(), Overflows: h.Overflows()}
	if len(j.threads) > 0 {
		if t := &j.threads[0].java; t.Addr != 0 && t.StackSize > 0 && t.StackSize <= t.StackBase {
			f.Stack = [2]uint64{t.StackBase - t.StackSize, t.StackBase}
		}
	}
	return f
}
