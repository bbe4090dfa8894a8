package vmstructs

// methodLayout says where the names and lines of a method are: oops/method.hpp, constMethod.hpp, constantPool.hpp,
// klass.hpp, instanceKlass.hpp, symbol.hpp, array.hpp.
type methodLayout struct {
	constMethod offset // Method
	accessFlags offset
	data        offset // its MethodData; absent before it was asked for
	span        int

	constSize   uint64 // ConstMethod; the bytecodes follow it
	constants   offset
	wordSize    offset // _constMethod_size, in words
	codeSize    offset
	nameIndex   offset
	sigIndex    offset
	idnum       offset
	constFlags  offset
	hasLines    uint8 // the bit of constFlags that says that a line table follows the bytecodes
	constSpan   int
	idBegin     offset // code size, idnum and the two indexes lie in [idBegin, idEnd)
	idEnd       offset
	poolSize    uint64 // ConstantPool; its entries follow it
	poolHolder  offset
	poolLength  offset
	poolFile    offset // the index of the source file's name; JDK 17 and later have it here
	poolSpan    int
	klassFile   offset // InstanceKlass: the same index in JDK 8 and 11
	klassName   offset
	symLength   offset
	symBody     offset
	unsigned5X  uint8 // how many byte values UNSIGNED5 never writes; see unsigned5.go
	fieldTuples offset
	fieldCount  offset
	fieldStream offset
	fieldFlags  fieldFlags
	arrayU1     offset // Array<u1>._data
	arrayU2     offset
	arrayLen    offset
	klassPool   offset // InstanceKlass._constants
}

func (r *resolver) method() methodLayout {
	l := methodLayout{
		constMethod: r.field(capMethods, "Method._constMethod"),
		accessFlags: r.field(capMethods, "Method._access_flags"),
		data:        r.field(capProfiles, "Method._method_data"),

		constSize:  r.size(capMethods, "ConstMethod"),
		constants:  r.field(capMethods, "ConstMethod._constants"),
		wordSize:   r.field(capLines, "ConstMethod._constMethod_size"),
		codeSize:   r.field(capMethods, "ConstMethod._code_size"),
		nameIndex:  r.field(capMethods, "ConstMethod._name_index"),
		sigIndex:   r.field(capMethods, "ConstMethod._signature_index"),
		idnum:      r.field(capMethods, "ConstMethod._method_idnum"),
		constFlags: r.field(capLines, "ConstMethod._flags._flags|ConstMethod._flags"),
		hasLines: uint8(r.int("ConstMethodFlags::_misc_has_linenumber_table",
			r.int("ConstMethod::_has_linenumber_table", 1))),

		poolSize:   r.size(capMethods, "ConstantPool"),
		poolHolder: r.field(capMethods, "ConstantPool._pool_holder"),
		poolLength: r.field(capMethods, "ConstantPool._length"),
		poolFile:   r.field("", "ConstantPool._source_file_name_index"),
		klassFile:  r.field("", "InstanceKlass._source_file_name_index"),
		klassName:  r.field(capMethods, "Klass._name"),
		symLength:  r.field(capMethods, "Symbol._length"),
		symBody:    r.field(capMethods, "Symbol._body|Symbol._body[0]"),

		fieldTuples: r.field("", "InstanceKlass._fields"),
		fieldCount:  r.field("", "InstanceKlass._java_fields_count"),
		fieldStream: r.field("", "InstanceKlass._fieldinfo_stream"),
		fieldFlags:  r.fieldFlags(),
		arrayU1:     r.field("", "Array<u1>._data"),
		arrayU2:     r.field("", "Array<u2>._data"),
		arrayLen:    r.field(capNames, "Array<int>._length"),
		klassPool:   r.field(capNames, "InstanceKlass._constants"),
	}
	if !l.poolFile.ok() && !l.klassFile.ok() {
		r.lost(capFiles, "ConstantPool._source_file_name_index")
	}
	l.span = span(l.constMethod, l.accessFlags)
	l.constSpan = max(int(l.constSize), span(l.constants, l.wordSize, l.codeSize, l.nameIndex, l.sigIndex, l.idnum,
		l.constFlags))
	l.poolSpan = span(l.poolHolder, l.poolLength, l.poolFile)
	l.idBegin = min(l.codeSize, l.nameIndex, l.sigIndex, l.idnum)
	l.idEnd = max(l.codeSize, l.nameIndex, l.sigIndex, l.idnum) + 2
	stream := l.fieldStream.ok() && l.arrayU1.ok()
	tuples := l.fieldTuples.ok() && l.fieldCount.ok() && l.arrayU2.ok()
	if !stream && !tuples {
		r.lost(capNames, "InstanceKlass._fieldinfo_stream")
	}
	return l
}

// oopLayout says what is needed to read a java.lang.Thread and its name out of the heap: oops/oop.hpp,
// compressedOops.hpp, classfile/vmClasses.hpp (systemDictionary.hpp before), gc/z/vmStructs_z.hpp.
type oopLayout struct {
	threadKlass, stringKlass, holderKlass uint64 // addresses of InstanceKlass* variables
	groupKlass                            uint64 // the same of ThreadGroup
	narrowBase, narrowShift               uint64
	zGlobals                              uint64 // ZGlobalsForVMStructs*
	zBadMask                              offset // up to 20: a pointer to the mask
	xGlobals                              uint64 // 21 to 23: the ZGC without generations has X in its names
	xBadMask                              offset
	zLoadBadMask                          offset // ZGC with generations, 21 and later: a pointer to the mask
	zLoadShift                            offset
}

// wellKnown is the tables' name of the variable that holds a class which the VM knows by itself: the name in 17 and
// later, and the one before (classfile/vmClasses.hpp, systemDictionary.hpp).
func wellKnown(class string) string {
	return "vmClasses._klasses[static_cast<int>(vmClassID::" + class + "_klass_knum)]|" +
		"SystemDictionary._well_known_klasses[SystemDictionary::" + class + "_klass_knum]"
}

func (r *resolver) oops() oopLayout {
	return oopLayout{
		threadKlass: r.static(capNames, wellKnown("Thread")),
		stringKlass: r.static(capNames, wellKnown("String")),
		holderKlass: r.static("", wellKnown("Thread_FieldHolder")),
		groupKlass:  r.static("", wellKnown("ThreadGroup")),
		narrowBase:  r.static(capNames, "CompressedOops._base|CompressedOops._narrow_oop._base|Universe._narrow_oop._base"),
		narrowShift: r.static(capNames, "CompressedOops._shift|CompressedOops._narrow_oop._shift|"+
			"Universe._narrow_oop._shift"),
		zGlobals:     r.static("", "ZGlobalsForVMStructs._instance_p"),
		xGlobals:     r.static("", "XGlobalsForVMStructs._instance_p"),
		xBadMask:     r.field("", "XGlobalsForVMStructs._XAddressBadMask"),
		zBadMask:     r.field("", "ZGlobalsForVMStructs._ZAddressBadMask"),
		zLoadBadMask: r.field("", "ZGlobalsForVMStructs._ZPointerLoadBadMask"),
		zLoadShift:   r.field("", "ZGlobalsForVMStructs._ZPointerLoadShift"),
	}
}
