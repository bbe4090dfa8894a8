package vmstructs

import (
	"math"
	"strings"
)

// How goprof proves an old snapshot. A Proof shows that the data which a walk used is true now. But a snapshot that has
// waited is older: its thread's code may have been freed, and other code may be at the same address. A Proof of the
// other code would succeed, and if many classes are alike, even the stack may fit it.
//
// So goprof keeps for each blob the moment at which it first found the blob: by a walk, or by a sighting
// (sightings.go). The JVM never gives a compile id twice. So a blob that existed at that moment, and exists now, also
// existed in between.
//
// A method has no such number. But the VM counts the classes that it unloads. While the count is unchanged, each method
// that was on a stack stays at its address. A method of a class that is never unloaded exists since it was first read.
//
// Proof.Since is the latest of all these moments. A snapshot that is not older is proven.
//
// One case is not covered: a class is redefined while a snapshot waits, the version that its thread ran is freed, and
// another method of the same class loader gets its address.

// SetClock sets the clock that dates snapshots. Without a clock no blob or method counts as older than a snapshot.
func (vm *VM) SetClock(now func() int64) {
	vm.clock = now
	vm.unloads = vm.findUnloads()
}

func (vm *VM) now() int64 {
	if vm.clock == nil {
		return math.MaxInt64
	}
	return vm.clock()
}

// Since returns the time since which everything that was noted is known to exist. It is valid until Check.
func (p *Proof) Since() int64 { return p.since(p.blobs, p.methods) }

// SinceOf is Since for one of the finished walks. The first walk is 0.
func (p *Proof) SinceOf(walk int) int64 {
	var from walkEnd
	if walk > 0 {
		from = p.ends[walk-1]
	}
	to := p.ends[walk]
	return p.since(p.blobs[from.blobs:to.blobs], p.methods[from.methods:to.methods])
}

func (p *Proof) since(blobs []*Blob, methods []*Method) (since int64) {
	p.vm.takeNotes()
	for _, b := range blobs {
		if at, ok := p.vm.sightedAt(b, b.since); ok {
			b.since = at
		}
		since = max(since, b.since)
	}
	for _, m := range methods {
		since = max(since, p.vm.methodSince(m))
	}
	return since
}

// blobSince returns the time since which a blob is known to exist, for a blob that has just been read. Some blobs are
// made when the VM starts and are never freed (code/codeBlob.hpp, BufferBlob, SingletonBlob; opto/runtime.cpp,
// c1/c1_Runtime1.cpp).
func (vm *VM) blobSince(k BlobKind) int64 {
	switch k {
	case InterpreterBlob, StubRoutines, RuntimeStub, Safepoint, Deopt, UncommonTrap, Exception:
		return 0
	}
	return vm.now()
}

// methodSince returns the time since which a method is known to exist.
func (vm *VM) methodSince(m *Method) int64 {
	if m.unloadable {
		return vm.unloads.since
	}
	return min(m.since, vm.unloads.since)
}

// isUnloadable reports whether a class may ever be unloaded. Only the VM's own loaders define classes in packages
// "java." (java.lang.ClassLoader, preDefineClass), and these loaders live as long as the VM. Hidden classes may be
// unloaded. Their names have a number after a '+'. Up to JDK 14 it is after a '/', which is a dot here.
func isUnloadable(class string) bool {
	if !strings.HasPrefix(class, "java.") || strings.Contains(class, "+") {
		return true
	}
	for _, part := range strings.Split(class, ".") {
		if part == "" || part[0] >= '0' && part[0] <= '9' {
			return true
		}
	}
	return false
}

// unloads is the VM's count of unloaded classes. The count grows before the memory of the classes is freed
// (services/classLoadingService.cpp, notify_class_unloaded; classfile/classLoaderData.cpp, unload).
type unloads struct {
	addr  uint64 // 0: the count cannot be read
	count [8]byte
	since int64 // when the present count was first seen
}

// The counters that jstat reads have the same layout in all releases (runtime/perfMemory.hpp, PerfDataPrologue,
// PerfDataEntry).
const (
	perfMagic       = 0xc0c0feca // as bytes: ca fe c0 c0
	perfPrologue    = 32
	perfEntryOffset = 24
	perfEntries     = 28
	perfEntry       = 20
	perfNameOffset  = 4
	perfDataOffset  = 16
	// maxPerf bounds the bytes of the counters that are read. They take 32 KB.
	maxPerf       = 1 << 20
	unloadCounter = "java.cls.unloadedClasses"
)

// findUnloads finds the count. With -XX:-UsePerfData there is none.
func (vm *VM) findUnloads() (u unloads) {
	u.since = math.MaxInt64
	var all counterArea
	if !all.read(vm) {
		return u
	}
	if c, ok := all.at[unloadCounter]; ok && c.length == 0 {
		var count [8]byte
		if u.addr = all.start + uint64(c.at); vm.mem.Bytes(u.addr, count[:]) == nil {
			u.note(count[:], vm.now())
		}
	}
	return u
}

// note updates the count with a value that has just been read.
func (u *unloads) note(count []byte, now int64) {
	if string(count) != string(u.count[:]) || u.since == math.MaxInt64 {
		copy(u.count[:], count)
		u.since = now
	}
}
