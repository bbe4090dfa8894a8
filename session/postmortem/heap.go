package postmortem

import (
	"encoding/binary"

	"goprof/heap/heapdump"
	"goprof/process"
	"goprof/profile"
)

// HeapThreads calls f for each Java thread, for a heap dump.
func (j *JVM) HeapThreads(f func(*heapdump.Thread)) {
	j.Walker.RawNames = true // the dump names methods as the class files do
	j.Walker.Warm()
	var snap process.Snapshot
	var stack profile.Stack
	for i := range j.threads {
		t := &j.threads[i]
		if t.java.Addr == 0 {
			continue
		}
		j.snapshot(t, j.Walker.MaxDepth, &snap)
		j.Walker.Walk(&snap, &stack)
		f(&heapdump.Thread{Java: t.java, Stack: &stack, Words: [][]byte{registersOf(&snap), snap.Stack, snap.Under}})
	}
}

// registersOf are the registers of a thread, as memory.
func registersOf(s *process.Snapshot) (b []byte) {
	for _, r := range s.Regs {
		b = binary.LittleEndian.AppendUint64(b, r)
	}
	return b
}
