package vmstructs

// contLayout has the pointers from a carrier thread to its virtual thread, and to the frames of the virtual thread that
// are in the heap: runtime/javaThread.hpp, continuationEntry.hpp, oops/klass.hpp, compressedKlass.hpp,
// classfile/classLoaderData.hpp.
type contLayout struct {
	entry   offset `vm:"JavaThread._cont_entry"`       // since 22 or so; otherwise VM.entryOffset derives it
	vthread offset `vm:"JavaThread._vthread"`          // an OopHandle, since 21
	entryPC uint64 `vm:"ContinuationEntry._return_pc"` // since 22 or so

	super        offset `need:"Klass._super"`
	layoutHelper offset `need:"Klass._layout_helper"`
	nextKlass    offset `need:"Klass._next_link"` // the next class of the same loader
	nextLoader   offset `need:"ClassLoaderData._next"`
	klasses      offset `need:"ClassLoaderData._klasses"`
	loaders      uint64 `need:"ClassLoaderDataGraph._head"`

	zOffsetMask offset `vm:"ZGlobalsForVMStructs._ZAddressOffsetMask"` // a pointer to the mask of bits without the colour
	xOffsetMask offset `vm:"XGlobalsForVMStructs._XAddressOffsetMask"`
}

// capVirtual is missing if a JVM has virtual threads but does not export their fields.
const capVirtual = "virtual threads"

func (r *resolver) continuation() contLayout {
	l := contLayout{vthread: r.field("", "JavaThread._vthread")}
	if !l.vthread.ok() {
		if _, has := r.t.fields[fieldName{"JavaThread", "_jvmti_vthread"}]; has || r.t.sizes["ContinuationEntry"] != 0 {
			r.lost(capVirtual, "JavaThread._vthread") // the fields of 21 and later exist, so this one should
		}
		return l // otherwise there are no virtual threads
	}
	return fill[contLayout](r, capVirtual)
}

// A ContinuationEntry on the stack (runtime/continuationEntry.hpp) is the same in 21 to 27. Only the size of this type
// is exported.
const (
	entryParent  = 8  // the entry of the enclosing continuation
	entryCont    = 16 // jdk.internal.vm.Continuation
	entryFlags   = 32 // not 0: a virtual thread's
	entryArgSize = 36 // words of arguments that the lowest frame has on the stack
	entrySize    = 40 // the part that goprof reads
)
