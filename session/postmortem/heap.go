package postmortem

import (
	"goprof/heap/heapdump"
	"goprof/process"
	"goprof/profile"
)

// HeapThreads calls f for each Java thread, for a heap dump.
func (j *JVM) HeapThreads(f func(*heapdump.Thread)) {
	j.Walker.RawNames = true // the dump names methods as class files do
	j.Walker.Warm()
	var snap process.Snapshot
	var stack profile.Stack
	for i := range j.threads {
		t := &j.threads[i]
		if t.java.Addr == 0 {
			continue
		}
		j.snapshot(t, mostStack/bytesOfFrame, &snap) // each root counts
		j.Walker.Walk(&snap, &stack)
		f(&heapdump.Thread{Java: t.java, Stack: &stack, Snap: &snap})
	}
}
