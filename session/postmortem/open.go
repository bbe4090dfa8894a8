package postmortem

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"goprof/process"
	"goprof/unwind"
	"goprof/vmstructs"
)

// JVM is a JVM in a core file. It belongs to one goroutine.
type JVM struct {
	Core   *process.Core
	VM     *vmstructs.VM
	Walker *unwind.Walker

	threads []coreThread
	conts   *vmstructs.Continuations // nil: it has no virtual threads
}

// coreThread is one thread of the core, and the JVM's own record of it.
type coreThread struct {
	process.CoreThread
	java vmstructs.Thread // Addr 0: not a Java thread
}

// Open finds the JVM in a core file of the given size.
func Open(file io.ReaderAt, size int64, opt process.CoreOptions) (*JVM, error) {
	core, err := process.OpenCore(file, size, opt)
	if err != nil {
		return nil, err
	}
	vm, err := vmstructs.Open(core)
	if err != nil {
		return &JVM{Core: core}, named(err, "the JVM's tables")
	}
	j := &JVM{Core: core, VM: vm, Walker: unwind.New(core, vm)}
	if maps := core.Mappings(); len(maps) > 0 {
		j.Walker.MemoryEnds(highest(maps))
	}
	if j.conts = vm.NewContinuations(); j.conts != nil {
		j.conts.CollectorRests(true)
	}
	return j, j.findThreads()
}

// named says what could not be read because the core lacks memory: a part was lost, or was never written.
func named(err error, what string) error {
	if errors.Is(err, process.ErrFault) {
		return fmt.Errorf("%s cannot be read, because the core lacks that memory (%w)", what, err)
	}
	return err
}

// highest returns the end of the program's own memory. Some kernels map a page of their own far above it.
func highest(maps []process.Mapping) uint64 {
	end := uint64(1 << 32)
	for _, m := range maps {
		if m.End <= 1<<56 {
			end = max(end, m.End)
		}
	}
	return end
}

// Close closes the kept files.
func (j *JVM) Close() error { return j.Core.Close() }

// findThreads finds the JavaThread of each thread of the core, first by stack pointer, then by thread number. The
// number is weaker: the JVM knows the number in its own pid namespace, and a core of gcore may have other numbers.
func (j *JVM) findThreads() error {
	java, err := j.VM.Threads()
	if err != nil {
		return named(err, "the JVM's list of threads")
	}
	sp := j.Core.CPU().SP
	byTID := map[int]vmstructs.Thread{}
	for _, t := range java {
		byTID[t.NSTID] = t
	}
	sort.Slice(java, func(i, j int) bool { return java[i].StackBase < java[j].StackBase })
	taken := map[uint64]bool{}
	for _, c := range j.Core.Threads() {
		t := coreThread{CoreThread: c}
		if found, ok := onStack(java, c.Regs[sp]); ok && !taken[found.Addr] {
			t.java = found
			taken[found.Addr] = true
		}
		j.threads = append(j.threads, t)
	}
	for i := range j.threads {
		t := &j.threads[i]
		// A signal handler may run on a stack of its own.
		if found, ok := byTID[t.TID]; ok && t.java.Addr == 0 && !taken[found.Addr] && found.NSTID != 0 {
			t.java = found
			taken[found.Addr] = true
		}
	}
	return nil
}

// onStack returns the thread whose stack contains an address. The threads must be sorted by their stacks.
func onStack(java []vmstructs.Thread, addr uint64) (vmstructs.Thread, bool) {
	i, _ := slices.BinarySearchFunc(java, addr, func(t vmstructs.Thread, a uint64) int {
		if t.StackBase <= a {
			return -1
		}
		return 1
	})
	if i == len(java) || java[i].StackSize == 0 || addr < java[i].StackBase-java[i].StackSize {
		return vmstructs.Thread{}, false
	}
	return java[i], true
}
