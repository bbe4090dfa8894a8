package vmstructs

// contLayout has the pointers from a carrier thread to its virtual thread, and to the frames of the virtual thread that
// are in the heap: runtime/javaThread.hpp, continuationEntry.hpp, oops/klass.hpp, compressedKlass.hpp,
// classfile/classLoaderData.hpp.
type contLayout struct {
	entry   offset // JavaThread._cont_entry, exported since 22 or so; otherwise VM.entryOffset derives it
	vthread offset // JavaThread._vthread, an OopHandle; since 21
	entryPC uint64 // ContinuationEntry::_return_pc, since 22 or so

	super        offset // Klass
	layoutHelper offset
	mirror       offset // an OopHandle
	nextKlass    offset // the next class of the same loader
	nextLoader   offset // ClassLoaderData
	klasses      offset
	loaders      uint64 // ClassLoaderDataGraph::_head

	narrowBase, narrowShift  uint64 // of class pointers
	zOffsetMask, xOffsetMask offset // pointers to the bits of a reference that are not colour
}

// capVirtual is lost by JVMs that have virtual threads and do not show them.
const capVirtual = "virtual threads"

func (r *resolver) continuation() contLayout {
	l := contLayout{vthread: r.field("", "JavaThread._vthread")}
	if !l.vthread.ok() {
		if _, has := r.t.fields[fieldName{"JavaThread", "_jvmti_vthread"}]; has || r.t.sizes["ContinuationEntry"] != 0 {
			r.lost(capVirtual, "JavaThread._vthread") // it stands beside what is there since 21
		}
		return l // otherwise there are no virtual threads
	}
	l.entry = r.field("", "JavaThread._cont_entry")
	l.entryPC = r.static("", "ContinuationEntry._return_pc")
	l.super = r.field(capVirtual, "Klass._super")
	l.layoutHelper = r.field(capVirtual, "Klass._layout_helper")
	l.mirror = r.field(capVirtual, "Klass._java_mirror")
	l.nextKlass = r.field(capVirtual, "Klass._next_link")
	l.nextLoader = r.field(capVirtual, "ClassLoaderData._next")
	l.klasses = r.field(capVirtual, "ClassLoaderData._klasses")
	l.loaders = r.static(capVirtual, "ClassLoaderDataGraph._head")
	l.narrowBase = r.static(capVirtual, "CompressedKlassPointers._base|CompressedKlassPointers._narrow_klass._base")
	l.narrowShift = r.static(capVirtual, "CompressedKlassPointers._shift|CompressedKlassPointers._narrow_klass._shift")
	l.zOffsetMask = r.field("", "ZGlobalsForVMStructs._ZAddressOffsetMask")
	l.xOffsetMask = r.field("", "XGlobalsForVMStructs._XAddressOffsetMask")
	return l
}

// A ContinuationEntry on the stack (runtime/continuationEntry.hpp); the same in 21 to 27. Its type is
// exported with its size only.
const (
	entryParent  = 8  // of the continuation around this one
	entryCont    = 16 // jdk.internal.vm.Continuation
	entryFlags   = 32 // not 0: a virtual thread's
	entryArgSize = 36 // words of arguments that the lowest frame has on the stack
	entrySize    = 40 // as far as goprof reads
)
