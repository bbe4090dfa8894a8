package vmstructs

// methodLayout has the fields for the names and lines of a method: oops/method.hpp, constMethod.hpp, constantPool.hpp,
// klass.hpp, instanceKlass.hpp, symbol.hpp, array.hpp.
type methodLayout struct {
	constMethod offset `need:"Method._constMethod"`
	accessFlags offset `need:"Method._access_flags"`
	data        offset `need:"Method._method_data" cap:"whose profile code counts for"`
	span        int

	constSize  uint64 `need:"ConstMethod"` // the bytecodes follow it
	constants  offset `need:"ConstMethod._constants"`
	wordSize   offset `need:"ConstMethod._constMethod_size" cap:"line numbers"` // in words
	codeSize   offset `need:"ConstMethod._code_size"`
	nameIndex  offset `need:"ConstMethod._name_index"`
	sigIndex   offset `need:"ConstMethod._signature_index"`
	idnum      offset `need:"ConstMethod._method_idnum"`
	constFlags offset `need:"ConstMethod._flags._flags|ConstMethod._flags" cap:"line numbers"`
	hasLines   uint8  // the bit of constFlags that is set if a line table follows the bytecodes
	constSpan  int
	idBegin    offset // code size, idnum and the two indexes are in [idBegin, idEnd)
	idEnd      offset
	poolSize   uint64 `need:"ConstantPool"` // its entries follow it
	poolHolder offset `need:"ConstantPool._pool_holder"`
	poolLength offset `need:"ConstantPool._length"`
	poolFile   offset `vm:"ConstantPool._source_file_name_index"` // since 17
	poolSpan   int
	klassFile  offset `vm:"InstanceKlass._source_file_name_index"` // 8 and 11
	klassName  offset `need:"Klass._name"`
	symLength  offset `need:"Symbol._length"`
	symBody    offset `need:"Symbol._body|Symbol._body[0]"`
	unsigned5X uint8  // the number of byte values that UNSIGNED5 never writes; see unsigned5.go

	fieldTuples offset `vm:"InstanceKlass._fields"`
	fieldCount  offset `vm:"InstanceKlass._java_fields_count"`
	fieldStream offset `vm:"InstanceKlass._fieldinfo_stream"`
	fieldFlags  fieldFlags
	arrayU1     offset `vm:"Array<u1>._data"`
	arrayU2     offset `vm:"Array<u2>._data"`
	arrayLen    offset `need:"Array<int>._length" cap:"thread names"`
	klassPool   offset `need:"InstanceKlass._constants" cap:"thread names"`
}

func (r *resolver) method() methodLayout {
	l := fill[methodLayout](r, capMethods)
	l.hasLines = uint8(r.int("ConstMethodFlags::_misc_has_linenumber_table",
		r.int("ConstMethod::_has_linenumber_table", 1)))
	l.fieldFlags = r.fieldFlags()
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

// oopLayout has the fields for reading a java.lang.Thread and its name from the heap: oops/oop.hpp, compressedOops.hpp,
// classfile/vmClasses.hpp (systemDictionary.hpp before), gc/z/vmStructs_z.hpp.
type oopLayout struct {
	threadKlass  uint64 `need:"class Thread"`
	stringKlass  uint64 `need:"class String"`
	holderKlass  uint64 `vm:"class Thread_FieldHolder"`
	groupKlass   uint64 `vm:"class ThreadGroup"`
	narrowBase   uint64 `need:"CompressedOops._base|CompressedOops._narrow_oop._base|Universe._narrow_oop._base"`
	narrowShift  uint64 `need:"CompressedOops._shift|CompressedOops._narrow_oop._shift|Universe._narrow_oop._shift"`
	zGlobals     uint64 `vm:"ZGlobalsForVMStructs._instance_p"`
	zBadMask     offset `vm:"ZGlobalsForVMStructs._ZAddressBadMask"` // up to 20: a pointer to the mask
	xGlobals     uint64 `vm:"XGlobalsForVMStructs._instance_p"`      // 21 to 23: of the ZGC without generations
	xBadMask     offset `vm:"XGlobalsForVMStructs._XAddressBadMask"`
	zLoadBadMask offset `vm:"ZGlobalsForVMStructs._ZPointerLoadBadMask"` // ZGC with generations: a pointer to the mask
	zLoadShift   offset `vm:"ZGlobalsForVMStructs._ZPointerLoadShift"`
}

// wellKnown returns the tables' name of the variable for a class that the VM itself uses: the name in 17 and later, and
// the one before (classfile/vmClasses.hpp, systemDictionary.hpp).
func wellKnown(class string) string {
	return "vmClasses._klasses[static_cast<int>(vmClassID::" + class + "_klass_knum)]|" +
		"SystemDictionary._well_known_klasses[SystemDictionary::" + class + "_klass_knum]"
}
