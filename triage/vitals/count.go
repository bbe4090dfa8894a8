//go:build linux

package vitals

import (
	"goprof/session"
)

// configuring are the flags that Count reads into JVM.Flags with memory set.
var configuring = []string{"ParallelGCThreads", "ConcGCThreads", "UseDynamicNumberOfGCThreads",
	"ExplicitGCInvokesConcurrent", "DisableExplicitGC", "MaxHeapSize", "InitialHeapSize", "TieredCompilation"}

// Count reads the JVM's counters for jstat, which takes some tens of microseconds. With memory set it also reads the
// use of heap and code cache, and flags. ok is false for a JVM without counters (-XX:-UsePerfData).
func (v *Vitals) Count(memory bool) (j JVM, ok bool, err error) {
	j, err = session.Ask(v.s, func() (j JVM, _ error) {
		j.GC.Name = v.health.Collector()
		if memory {
			j.Flags = map[string]string{}
			for _, name := range configuring {
				if f, ok := v.health.Flag(name); ok {
					j.Flags[name] = f.String()
				}
			}
			v.readCode(&j.Code)
			heap := v.health.Heap()
			j.GC.Heap = Pool(heap.Heap)
		}
		if c, ok := v.health.Counters(); ok {
			takeCounters(&j, c)
		}
		return j, nil
	})
	return j, len(j.GC.Collectors) > 0, err
}

// Load reads the CPU time of the process and the machine.
func (v *Vitals) Load() (Process, Machine) {
	var r Reading
	v.readProcess(&r)
	readMachine(&r.Machine)
	return r.Process, r.Machine
}

// Heap reads the use of the heap.
func (v *Vitals) Heap() (Pool, error) {
	return session.Ask(v.s, func() (Pool, error) { return Pool(v.health.Heap().Heap), nil })
}
