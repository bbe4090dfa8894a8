package vmstructs

// The capabilities to which fields belong, as VM.Missing names them.
const (
	capCode       = "code cache"
	capBlobs      = "code blobs"
	capNmethods   = "compiled frames"
	capScopes     = "inlined frames"
	capNulls      = "implicit null checks"
	capSafepoints = "which records are safepoints"
	capProfiles   = "whose profile code counts for"
	capMethods    = "method names"
	capLines      = "line numbers"
	capInvokes    = "which method an invoke calls"
	capReceivers  = "what calls of interfaces call"
	capHandles    = "what calls of VarHandles call"
	capFiles      = "source files"
	capThreads    = "threads"
	capAnchors    = "frame anchors"
	capNames      = "thread names"
	capStates     = "thread states of Java"
	capInterp     = "interpreted frames"
	capStubs      = "call stub"
	capCompiler   = "what compiler threads compile"
	capDeopt      = "frames in deoptimization"
	capFlags      = "flags"
	capArgs       = "command line"
	capVersion    = "version"
)

// essential are the capabilities without which goprof refuses a JVM. Without the first three it could report nothing.
// Without compiled frames its stacks could be wrong, because in code that a compiled frame calls, a wrong frame pointer
// may skip that frame.
var essential = []string{capCode, capBlobs, capMethods, capNmethods}

// layout has every offset, size, constant and static address that this package uses, resolved once. If releases differ,
// layout has a field for each form, and the absent one shows which release it is. docs/evidence/hotspot.md says why
// goprof chooses by presence: fields differ between vendors and even between updates (25.0.5 has another ConstantPool
// than 25.0.3).
type layout struct {
	jdk8      bool // interpreter frames have no mirror slot
	code      codeLayout
	blob      blobLayout
	nm        nmethodLayout
	method    methodLayout
	thread    threadLayout
	oops      oopLayout
	stubs     stubLayout
	flags     flagLayout
	task      compilerLayout
	deopt     deoptLayout
	cont      contLayout
	wait      waitLayout
	locks     lockLayout
	health    healthLayout
	invoke    invokeLayout
	profile   profileLayout
	hierarchy hierarchyLayout
	handles   handleLayout
	trap      trapLayout
	objects   objectsLayout
	areas     areasLayout
	memory    memoryLayout
	dump      dumpLayout

	perfStart, perfCapacity uint64 // PerfMemory
	oopMaps                 oopMapLayout
}

// codeLayout: memory/heap.hpp, code/codeCache.hpp, memory/virtualspace.hpp.
type codeLayout struct {
	heap                uint64 `vm:"CodeCache._heap"`
	heaps               uint64 `vm:"CodeCache._heaps"` // since 9; heap before that
	lowBound            uint64 `vm:"CodeCache._low_bound"`
	highBound           uint64 `vm:"CodeCache._high_bound"`
	arrayLen, arrayData offset // GrowableArray
	memory              offset `need:"CodeHeap._memory"`
	segmap              offset `need:"CodeHeap._segmap"`
	log2Segment         offset `need:"CodeHeap._log2_segment_size"`
	low                 offset `need:"VirtualSpace._low"`
	high                offset `need:"VirtualSpace._high"`
	highBoundary        offset `need:"VirtualSpace._high_boundary"`
	blockSize           uint64 `need:"HeapBlock"`
	blockLength         sized  `need:"HeapBlock::Header._length"`
	blockUsed           offset `need:"HeapBlock::Header._used"`
}

func (r *resolver) code() codeLayout {
	l := fill[codeLayout](r, capCode)
	if l.heap == 0 && l.heaps == 0 {
		r.lost(capCode, "CodeCache._heaps")
	}
	if l.heaps != 0 {
		l.arrayLen = r.field(capCode, "GrowableArrayBase._len|GenericGrowableArray._len")
		l.arrayData = r.field(capCode, "GrowableArray<int>._data")
	}
	return l
}

// blobLayout: code/codeBlob.hpp.
type blobLayout struct {
	size          uint64 `need:"CodeBlob"`
	name          offset `need:"CodeBlob._name"`
	length        offset `need:"CodeBlob._size"`
	codeBegin     offset `vm:"CodeBlob._code_begin"` // 9 to 22: pointers
	codeEnd       offset `vm:"CodeBlob._code_end"`
	codeOffset    offset `vm:"CodeBlob._code_offset"` // 8, and since 23: offset from the blob
	dataOffset    offset `vm:"CodeBlob._data_offset"`
	frameComplete sized  `need:"CodeBlob._frame_complete_offset"`
	frameSize     offset `need:"CodeBlob._frame_size"`
	oopMaps       offset `need:"CodeBlob._oop_maps" cap:"which records are safepoints"`
	span          int
	kind          offset        `vm:"CodeBlob._kind"`         // since 23
	mutable       offset        `vm:"CodeBlob._mutable_data"` // since 25: has relocations and metadata
	mutableSize   offset        `vm:"CodeBlob._mutable_data_size"`
	relocSize     offset        `vm:"CodeBlob._relocation_size"`
	kinds         [256]BlobKind // of _kind, with the numbers of the release
}

func (r *resolver) blob() blobLayout {
	l := fill[blobLayout](r, capBlobs)
	l.span = span(l.name, l.length, l.codeBegin, l.codeEnd, l.codeOffset, l.dataOffset,
		l.frameComplete.offset, l.frameSize, l.oopMaps, l.kind, l.mutable, l.mutableSize, l.relocSize)
	pointers := l.codeBegin.ok() && l.codeEnd.ok()
	if !pointers && !(l.codeOffset.ok() && l.dataOffset.ok()) {
		r.lost(capBlobs, "CodeBlob._code_begin|CodeBlob._code_offset")
	}
	for name, kind := range map[string]BlobKind{
		"Adapter": Adapter, "Vtable": VtableStub, "MHAdapter": Adapter,
		"RuntimeStub": RuntimeStub, "Deoptimization": Deopt, "Safepoint": Safepoint,
		"Exception": Exception, "UncommonTrap": UncommonTrap, "Upcall": Upcall,
	} {
		if v, ok := r.t.ints["CodeBlobKind::"+name]; ok && v > 0 && int(v) < len(l.kinds) {
			l.kinds[v] = kind
		}
	}
	return l
}

// nmethodLayout: code/nmethod.hpp, code/compiledMethod.hpp (9 to 22), code/pcDesc.hpp.
type nmethodLayout struct {
	method      offset `need:"nmethod._method|CompiledMethod._method"`
	compileID   offset `need:"nmethod._compile_id"`
	level       offset `need:"nmethod._comp_level"` // an int up to 20, then a byte: the low byte is right for both
	entryBCI    offset `need:"nmethod._entry_bci"`
	noEntryBCI  int32  `vm:"InvocationEntryBci" else:"-1"`
	entry       offset `vm:"nmethod._entry_point"` // up to 22: pointers
	verified    offset `vm:"nmethod._verified_entry_point"`
	entryOff    sized  `vm:"nmethod._entry_offset"` // since 23: offset from the code's beginning
	verifiedOff sized  `vm:"nmethod._verified_entry_offset"`
	osrEntry    offset `vm:"nmethod._osr_entry_point"` // a pointer in all releases
	stub        offset `vm:"nmethod._stub_offset"`
	origPC      offset `need:"nmethod._orig_pc_offset"`
	// scopesPCs counts from the nmethod, or from its immutable data.
	scopesPCs offset `need:"nmethod._scopes_pcs_offset" cap:"inlined frames"`
	// dependencies is where the PcDescs end, up to 22.
	dependencies  offset `vm:"nmethod._dependencies_offset"`
	scopesData    offset `vm:"nmethod._scopes_data_offset"`                                  // 8, and since 23
	scopesDataPtr offset `vm:"CompiledMethod._scopes_data_begin|nmethod._scopes_data_begin"` // 9 to 22
	immutable     offset `vm:"nmethod._immutable_data"`                                      // since 23
	immutableSize offset `vm:"nmethod._immutable_data_size"`
	metadata      sized  `vm:"nmethod._metadata_offset"`                                   // 8 to 24
	nullTable     sized  `need:"nmethod._nul_chk_table_offset" cap:"implicit null checks"` // as scopesPCs
	handlers      sized
	end           offset // 8 to 22: the end of its data
	span          int
	deopt         [2]offset // up to 8, and since 23: offsets of handlers from the nmethod
	deoptPtr      [2]offset // 9 to 22: pointers
}

func (r *resolver) nmethod() nmethodLayout {
	l := fill[nmethodLayout](r, capNmethods)
	l.handlers, l.end = sized{absent, 0}, absent
	for i, names := range [...][2]string{
		{"nmethod._deopt_handler_entry_offset|nmethod._deopt_handler_offset|nmethod._deoptimize_offset",
			"CompiledMethod._deopt_handler_begin|nmethod._deopt_handler_begin"},
		{"nmethod._deopt_mh_handler_offset|nmethod._deoptimize_mh_offset",
			"CompiledMethod._deopt_mh_handler_begin|nmethod._deopt_mh_handler_begin"},
	} {
		l.deopt[i], l.deoptPtr[i] = r.field("", names[0]), r.field("", names[1])
	}
	if l.immutable.ok() {
		l.handlers = r.sized(capNulls, "nmethod._handler_table_offset")
	} else {
		l.end = r.field(capNulls, "nmethod._nmethod_end_offset")
	}
	l.span = span(l.method, l.compileID, l.level, l.entryBCI, l.entry, l.verified, l.entryOff.offset,
		l.verifiedOff.offset, l.osrEntry, l.stub, l.origPC, l.scopesPCs, l.dependencies, l.scopesData,
		l.scopesDataPtr, l.immutable, l.immutableSize, l.metadata.offset, l.nullTable.offset, l.handlers.offset, l.end,
		l.deopt[0], l.deopt[1],
		l.deoptPtr[0], l.deoptPtr[1])
	if !l.verified.ok() && !l.verifiedOff.ok() {
		r.lost(capNmethods, "nmethod._verified_entry_offset")
	}
	if !l.deopt[0].ok() && !l.deoptPtr[0].ok() {
		r.lost(capNmethods, "nmethod._deopt_handler_offset")
	}
	inside := l.dependencies.ok() && l.metadata.ok() && (l.scopesData.ok() || l.scopesDataPtr.ok())
	outside := l.immutable.ok() && l.immutableSize.ok() && l.scopesData.ok() && (l.metadata.ok() || r.hasMutableData())
	if !inside && !outside {
		r.lost(capScopes, "nmethod._scopes_data_offset")
	}
	// code/pcDesc.hpp: four ints, in all releases; decode.go relies on it.
	if n := r.t.sizes["PcDesc"]; n != 0 && n != pcDescSize {
		r.lost(capScopes, "PcDesc of 16 bytes")
	}
	return l
}

func (r *resolver) hasMutableData() bool {
	return r.field("", "CodeBlob._mutable_data").ok() && r.field("", "CodeBlob._mutable_data_size").ok() &&
		r.field("", "CodeBlob._relocation_size").ok()
}

// resolve resolves all entries of the layout, and lists the missing ones.
func resolve(t *tables) (*layout, *resolver) {
	r := &resolver{t: t, missing: map[string][]string{}, odd: map[string]string{}}
	_, jdk8 := t.sizes["Flag"] // renamed JVMFlag in 9 or 10
	return &layout{
		jdk8:      jdk8,
		code:      r.code(),
		blob:      r.blob(),
		nm:        r.nmethod(),
		method:    r.method(),
		thread:    r.thread(),
		oops:      fill[oopLayout](r, capNames),
		stubs:     r.stubs(),
		flags:     r.flags(),
		task:      fill[compilerLayout](r, capCompiler),
		deopt:     r.deopt(),
		cont:      r.continuation(),
		wait:      r.wait(),
		locks:     r.locks(),
		health:    r.health(),
		invoke:    r.invoke(),
		profile:   r.profile(),
		hierarchy: fill[hierarchyLayout](r, capReceivers),
		handles:   r.handles(jdk8),
		trap:      r.trap(),
		objects:   fill[objectsLayout](r, capObjects),
		areas:     r.areas(),
		memory:    fill[memoryLayout](r, ""),
		dump:      r.dump(),

		perfStart:    r.static("", "PerfMemory._start"),
		perfCapacity: r.static("", "PerfMemory._capacity"),
		oopMaps:      r.oopMaps(),
	}, r
}
