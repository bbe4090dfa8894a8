package vmstructs

import "strings"

// readWidths has the number of bytes that are read of each field that is not a pointer. For fields that are not in the
// list, it is 8. If a release makes a field narrower (as 21 did with nmethod._comp_level and 25 with
// CodeBlob._frame_complete_offset), a read would include its neighbours' bytes. So the field counts as missing in that
// release. If a release makes a field wider, its low bytes have the same meaning, because all supported CPUs are
// little-endian. Fields of type sized are not in the list.
var readWidths = map[string]uint8{
	"Array<int>._length": 4, "Array<u1>._data": 1, "Array<u2>._data": 2, "GrowableArrayBase._len": 4,
	"GenericGrowableArray._len": 4,

	"CodeHeap._log2_segment_size": 4, "HeapBlock::Header._used": 1,
	"CodeBlob._size": 4, "CodeBlob._code_offset": 4, "CodeBlob._data_offset": 4, "CodeBlob._frame_size": 4,
	"CodeBlob._kind":              1,
	"CodeBlob._mutable_data_size": 4, "CodeBlob._relocation_size": 4,
	"nmethod._compile_id": 4, "nmethod._comp_level": 1, "nmethod._entry_bci": 4, "nmethod._stub_offset": 4,
	"nmethod._orig_pc_offset":    4,
	"nmethod._scopes_pcs_offset": 4, "nmethod._dependencies_offset": 4, "nmethod._scopes_data_offset": 4,
	"nmethod._immutable_data_size":        4,
	"nmethod._deopt_handler_entry_offset": 4, "nmethod._deopt_handler_offset": 4, "nmethod._deopt_mh_handler_offset": 4,
	"nmethod._deoptimize_offset": 4, "nmethod._deoptimize_mh_offset": 4,

	"nmethod._nmethod_end_offset": 4,
	"OopMapSet._om_count":         4, "OopMap._pc_offset": 4, "ImmutableOopMapSet._count": 4,
	"ImmutableOopMapPair._pc_offset": 4,

	"Method._access_flags": 2, "ConstMethod._constMethod_size": 4, "ConstMethod._code_size": 2,
	"ConstMethod._name_index":      2,
	"ConstMethod._signature_index": 2, "ConstMethod._method_idnum": 2, "ConstMethod._flags": 1,
	"ConstMethod._flags._flags": 1,
	"ConstantPool._length":      4, "ConstantPool._source_file_name_index": 2, "InstanceKlass._source_file_name_index": 2,
	"InstanceKlass._java_fields_count": 2, "Symbol._length": 2, "Symbol._body": 1, "Symbol._body[0]": 1,
	"Klass._layout_helper": 4, "Klass._super_check_offset": 4, "ShenandoahHeapRegion._state": 4,
	"ZPage._type": 1, "ZForwarding._ref_count": 4, "XForwarding._ref_count": 4,
	"ConstantPoolCache._length": 4, "ResolvedMethodEntry._cpool_index": 2, "Klass._vtable_len": 4,
	"InstanceKlass._vtable_len": 4,

	"ThreadsList._length": 4, "JavaThread._thread_state": 4, "OSThread._thread_id": 4,
	"StubQueue._buffer_limit": 4, "InterpreterCodelet._size": 4, "JVMFlag._type": 4, "Flag._type": 4,
	"JVMFlag._flags": 4, "Flag._flags": 4,
	"JDK_Version._major":               1,
	"CollectedHeap._total_collections": 4, "CollectedHeap._is_gc_active": 1, "CollectedHeap._is_stw_gc_active": 1,
	"HeapRegionSetBase._length": 4, "G1HeapRegionSetBase._length": 4, "HeapRegionSetCount._length": 4,
	"HeapRegionType._tag": 4, "G1HeapRegionType._tag": 4, "HeapRegion._type": 4, "G1HeapRegion._type": 4,
	"CompileTask._comp_level": 1, "vframeArray._frames": 4, "vframeArrayElement._bci": 4,
	"JNIHandleBlock._top": 4,
}

// tooNarrow reports whether a field has fewer bytes than are read of it. It returns false if its type's size is not
// known.
func (r *resolver) tooNarrow(name string, f tableField) bool {
	want, ok := readWidths[name]
	if !ok {
		want = 8
	}
	width, known := r.knownWidth(f.typ)
	return known && width < want
}

// knownWidth returns the size of a C++ type. It returns false for a type that is neither a number nor a pointer, if the
// tables do not have its size.
func (r *resolver) knownWidth(typ string) (uint8, bool) {
	typ = strings.TrimPrefix(strings.TrimPrefix(typ, "volatile "), "const ")
	if strings.HasSuffix(typ, "*") {
		return 8, true
	}
	switch size := r.t.sizes[typ]; size {
	case 1, 2, 4, 8:
		return uint8(size), true
	}
	switch typ {
	case "u1", "uint8_t", "int8_t", "jbyte", "bool", "char":
		return 1, true
	case "u2", "uint16_t", "int16_t", "short", "unsigned short":
		return 2, true
	case "u4", "uint32_t", "int32_t", "int", "uint", "jint":
		return 4, true
	case "u8", "uint64_t", "int64_t", "size_t", "intptr_t", "uintptr_t", "address":
		return 8, true
	}
	return 0, false
}
