package vmstructs

import "strings"

// threadLayout says where the threads are, and what stands in a JavaThread: runtime/javaThread.hpp (thread.hpp up to
// 18), threadSMR.hpp, osThread.hpp, javaFrameAnchor.hpp, javaCalls.hpp.
type threadLayout struct {
	list        uint64 // ThreadsSMRSupport::_java_thread_list: 17 and later export it
	listLength  offset
	listThreads offset
	head        uint64 // Threads::_thread_list: 8 and 11 export it
	next        offset // JavaThread: the next one of that list

	osThread  offset
	threadObj offset
	objHandle bool // threadObj is an OopHandle (17 and later) rather than an oop
	state     offset
	states    stateNumbers
	stackBase offset
	stackSize offset
	anchor    offset
	begin     offset // VM.Threads reads [begin, end) of each JavaThread
	end       int
	tid       offset // OSThread
	pthread   offset // OSThread

	sp, pc, fp    offset // JavaFrameAnchor
	anchorSpan    int
	wrapperAnchor offset // JavaCallWrapper
	trapPC        offset // JavaThread._saved_exception_pc: where compiled code was when a signal sent it into a stub
}

func (r *resolver) thread() threadLayout {
	l := threadLayout{
		list:        r.static("", "ThreadsSMRSupport._java_thread_list"),
		listLength:  r.field("", "ThreadsList._length"),
		listThreads: r.field("", "ThreadsList._threads"),
		head:        r.static("", "Threads._thread_list"),
		next:        r.field("", "JavaThread._next"),

		osThread:  r.field(capThreads, "Thread._osthread|JavaThread._osthread"),
		threadObj: r.field(capNames, "JavaThread._threadObj"),
		state:     r.field(capThreads, "JavaThread._thread_state"),
		states:    r.stateNumbers(),
		stackBase: r.field(capThreads, "JavaThread._stack_base"),
		stackSize: r.field(capThreads, "JavaThread._stack_size"),
		anchor:    r.field(capAnchors, "JavaThread._anchor"),
		tid:       r.field(capThreads, "OSThread._thread_id"),
		pthread:   r.field("", "OSThread._pthread_id"),

		sp:            r.field(capAnchors, "JavaFrameAnchor._last_Java_sp"),
		pc:            r.field(capAnchors, "JavaFrameAnchor._last_Java_pc"),
		fp:            r.field("", "JavaFrameAnchor._last_Java_fp"),
		wrapperAnchor: r.field(capAnchors, "JavaCallWrapper._anchor"),
		trapPC:        r.field("", "JavaThread._saved_exception_pc"),
	}
	smr := l.list != 0 && l.listLength.ok() && l.listThreads.ok()
	if linked := l.head != 0 && l.next.ok(); !smr && !linked {
		r.lost(capThreads, "ThreadsSMRSupport._java_thread_list")
	}
	if f, ok := r.lookup("JavaThread._threadObj", false); ok {
		if l.objHandle = strings.Contains(f.typ, "OopHandle"); !l.objHandle && f.typ != "oop" {
			r.lost(capNames, "JavaThread._threadObj (here a "+f.typ+")")
			l.threadObj = absent
		}
	}
	l.begin = min(l.osThread, l.threadObj, l.state, l.stackBase, l.stackSize)
	l.end = span(l.osThread, l.threadObj, l.state, l.stackBase, l.stackSize, l.next)
	if l.next.ok() {
		l.begin = min(l.begin, l.next)
	}
	l.anchorSpan = span(l.sp, l.pc, l.fp)
	return l
}

// stubLayout says where the interpreter's codelets and the stub routines are: interpreter/abstractInterpreter.hpp,
// interpreter/interpreter.hpp, code/stubs.hpp, runtime/stubRoutines.hpp.
type stubLayout struct {
	code         uint64 // AbstractInterpreter::_code: StubQueue*
	buffer       offset
	limit        offset
	codeletSize  offset
	description  offset
	codeletBytes uint64
	callReturn   uint64            // StubRoutines::_call_stub_return_address
	entries      map[string]uint64 // static address of each named entry point
}

func (r *resolver) stubs() stubLayout {
	l := stubLayout{
		code:         r.static(capInterp, "AbstractInterpreter._code"),
		buffer:       r.field(capInterp, "StubQueue._stub_buffer"),
		limit:        r.field(capInterp, "StubQueue._buffer_limit"),
		codeletSize:  r.field(capInterp, "InterpreterCodelet._size"),
		description:  r.field(capInterp, "InterpreterCodelet._description"),
		codeletBytes: r.size(capInterp, "InterpreterCodelet"),
		callReturn:   r.static(capStubs, "StubRoutines._call_stub_return_address"),
		entries:      map[string]uint64{},
	}
	for name, f := range r.t.fields {
		if f.static && f.typ == "address" && strings.HasPrefix(name.typ, "StubRoutines") {
			l.entries[strings.TrimPrefix(name.field, "_")] = f.addr
		}
	}
	return l
}

// flagLayout says where the JVM's flags, arguments and version are: runtime/flags/jvmFlag.hpp (globals.hpp in 8),
// arguments.hpp, vm_version.hpp.
type flagLayout struct {
	flags, count     uint64
	size             uint64
	name, addr, typ  offset
	origin           offset // its low bits say who set the flag (JVMFlagOrigin)
	typeIsText       bool   // 8 and 11: the type is a char*; 17 and later: a number
	span             int
	command          uint64
	args, argCount   uint64
	release, info    uint64
	major            uint64
	jdk              uint64 // JDK_Version::_current: 8 to 21 export it, 25 and later do not
	majorOfJDKOffset offset
}

func (r *resolver) flags() flagLayout {
	l := flagLayout{
		flags:            r.static(capFlags, "JVMFlag.flags|Flag.flags"),
		count:            r.static(capFlags, "JVMFlag.numFlags|Flag.numFlags"),
		name:             r.field(capFlags, "JVMFlag._name|Flag._name"),
		addr:             r.field(capFlags, "JVMFlag._addr|Flag._addr"),
		typ:              r.field(capFlags, "JVMFlag._type|Flag._type"),
		origin:           r.field("", "JVMFlag._flags|Flag._flags"),
		command:          r.static(capArgs, "Arguments._java_command"),
		args:             r.static(capArgs, "Arguments._jvm_args_array"),
		argCount:         r.static(capArgs, "Arguments._num_jvm_args"),
		release:          r.static(capVersion, "Abstract_VM_Version._s_vm_release"),
		info:             r.static(capVersion, "Abstract_VM_Version._s_internal_vm_info_string"),
		major:            r.static(capVersion, "Abstract_VM_Version._vm_major_version"),
		jdk:              r.static("", "JDK_Version._current"),
		majorOfJDKOffset: r.field("", "JDK_Version._major"),
	}
	if l.size = r.t.sizes["JVMFlag"]; l.size == 0 {
		l.size = r.size(capFlags, "Flag")
	}
	if f, ok := r.lookup("JVMFlag._type|Flag._type", false); ok {
		l.typeIsText = strings.Contains(f.typ, "char")
	}
	l.span = span(l.name, l.addr) // the type may be the entry's last four bytes
	if l.size < uint64(l.span) || l.size < uint64(l.typ)+4 || l.size > maxStride {
		r.lost(capFlags, "sizeof JVMFlag")
		l.size = 0
	}
	if uint64(l.origin)+4 > l.size {
		l.origin = absent
	}
	return l
}

// compilerLayout says where a compiler thread keeps what it compiles: compiler/compilerThread.hpp, ci/ciEnv.hpp,
// compiler/compileTask.hpp.
type compilerLayout struct {
	env, task     offset
	method, level offset
	prev          offset // CompileTask._prev
	size          uint64 // of a CompileTask
}

func (r *resolver) compiler() compilerLayout {
	return compilerLayout{
		env:    r.field(capCompiler, "CompilerThread._env"),
		task:   r.field(capCompiler, "ciEnv._task"),
		method: r.field(capCompiler, "CompileTask._method"),
		level:  r.field(capCompiler, "CompileTask._comp_level"),
		prev:   r.field(capCompiler, "CompileTask._prev"),
		size:   r.size(capCompiler, "CompileTask"),
	}
}

// deoptLayout says where a thread that is being deoptimised keeps the frames that it will have:
// runtime/vframeArray.hpp.
type deoptLayout struct {
	head        offset // JavaThread: its vframeArray
	frames      offset // how many elements a vframeArray has
	elements    int    // where the elements begin: they are the last member of vframeArray
	elementSize uint64
	bci, method offset
	caller      offset // the caller of the unpacked frame: a frame begins with its _sp and _pc (runtime/frame.hpp)
	thrownAt    offset // JavaThread._exception_pc
	whole       bool   // all fields of this struct but thrownAt exist, and lie within a vframeArray
}

func (r *resolver) deopt() deoptLayout {
	l := deoptLayout{
		head:        r.field(capDeopt, "JavaThread._vframe_array_head"),
		frames:      r.field(capDeopt, "vframeArray._frames"),
		elementSize: r.size(capDeopt, "vframeArrayElement"),
		bci:         r.field(capDeopt, "vframeArrayElement._bci"),
		method:      r.field(capDeopt, "vframeArrayElement._method"),
		caller:      r.field(capDeopt, "vframeArray._caller"),
		thrownAt:    r.field("", "JavaThread._exception_pc"),
	}
	l.elements = int(r.size(capDeopt, "vframeArray")) - int(l.elementSize)
	if l.elements < span(l.frames, l.caller)+8 || int(l.elementSize) < max(span(l.method), span(l.bci)-4) {
		r.lost(capDeopt, "sizeof vframeArrayElement")
	}
	l.whole = len(r.missing[capDeopt]) == 0
	return l
}
