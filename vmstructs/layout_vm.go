package vmstructs

import "strings"

// threadLayout has the list of threads, and fields of a JavaThread: runtime/javaThread.hpp (thread.hpp up to 18),
// threadSMR.hpp, osThread.hpp, javaFrameAnchor.hpp, javaCalls.hpp.
type threadLayout struct {
	list        uint64 `vm:"ThreadsSMRSupport._java_thread_list"` // since 17
	listLength  offset `vm:"ThreadsList._length"`
	listThreads offset `vm:"ThreadsList._threads"`
	head        uint64 `vm:"Threads._thread_list"` // 8 and 11
	next        offset `vm:"JavaThread._next"`     // of that list

	osThread  offset `need:"Thread._osthread|JavaThread._osthread"`
	threadObj offset `need:"JavaThread._threadObj" cap:"thread names"`
	objHandle bool   // threadObj is an OopHandle (since 17), not an oop
	state     offset `need:"JavaThread._thread_state"`
	states    stateNumbers
	stackBase offset `need:"JavaThread._stack_base"`
	stackSize offset `need:"JavaThread._stack_size"`
	anchor    offset `need:"JavaThread._anchor" cap:"frame anchors"`
	begin     offset // VM.Threads reads [begin, end) of each JavaThread
	end       int
	tid       offset `need:"OSThread._thread_id"`
	pthread   offset `vm:"OSThread._pthread_id"`

	sp            offset `need:"JavaFrameAnchor._last_Java_sp" cap:"frame anchors"`
	pc            offset `need:"JavaFrameAnchor._last_Java_pc" cap:"frame anchors"`
	fp            offset `vm:"JavaFrameAnchor._last_Java_fp"`
	anchorSpan    int
	wrapperAnchor offset `need:"JavaCallWrapper._anchor" cap:"frame anchors"`
	trapPC        offset `vm:"JavaThread._saved_exception_pc"` // where a signal moved compiled code to a stub
}

func (r *resolver) thread() threadLayout {
	l := fill[threadLayout](r, capThreads)
	l.states = r.stateNumbers()
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

// stubLayout has the places of the interpreter's codelets and of the stub routines:
// interpreter/abstractInterpreter.hpp, interpreter/interpreter.hpp, code/stubs.hpp, runtime/stubRoutines.hpp.
type stubLayout struct {
	code         uint64            `need:"AbstractInterpreter._code"` // a StubQueue*
	buffer       offset            `need:"StubQueue._stub_buffer"`
	limit        offset            `need:"StubQueue._buffer_limit"`
	codeletSize  offset            `need:"InterpreterCodelet._size"`
	description  offset            `need:"InterpreterCodelet._description"`
	codeletBytes uint64            `need:"InterpreterCodelet"`
	callReturn   uint64            `need:"StubRoutines._call_stub_return_address" cap:"call stub"`
	entries      map[string]uint64 // static address of each named entry point
}

func (r *resolver) stubs() stubLayout {
	l := fill[stubLayout](r, capInterp)
	l.entries = map[string]uint64{}
	for name, f := range r.t.fields {
		if f.static && f.typ == "address" && strings.HasPrefix(name.typ, "StubRoutines") {
			l.entries[strings.TrimPrefix(name.field, "_")] = f.addr
		}
	}
	return l
}

// flagLayout has the JVM's flags, arguments and version: runtime/flags/jvmFlag.hpp (globals.hpp in 8), arguments.hpp,
// vm_version.hpp.
type flagLayout struct {
	flags            uint64 `need:"JVMFlag.flags|Flag.flags"`
	count            uint64 `need:"JVMFlag.numFlags|Flag.numFlags"`
	size             uint64
	name             offset `need:"JVMFlag._name|Flag._name"`
	addr             offset `need:"JVMFlag._addr|Flag._addr"`
	typ              offset `need:"JVMFlag._type|Flag._type"`
	origin           offset `vm:"JVMFlag._flags|Flag._flags"` // its low bits show who set the flag (JVMFlagOrigin)
	typeIsText       bool   // 8 and 11: the type is a char*; 17 and later: a number
	span             int
	command          uint64 `need:"Arguments._java_command" cap:"command line"`
	args             uint64 `need:"Arguments._jvm_args_array" cap:"command line"`
	argCount         uint64 `need:"Arguments._num_jvm_args" cap:"command line"`
	release          uint64 `need:"Abstract_VM_Version._s_vm_release" cap:"version"`
	info             uint64 `need:"Abstract_VM_Version._s_internal_vm_info_string" cap:"version"`
	major            uint64 `need:"Abstract_VM_Version._vm_major_version" cap:"version"`
	jdk              uint64 `vm:"JDK_Version._current"` // 8 to 21
	majorOfJDKOffset offset `vm:"JDK_Version._major"`
}

func (r *resolver) flags() flagLayout {
	l := fill[flagLayout](r, capFlags)
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

// compilerLayout has the fields for the present work of a compiler thread: compiler/compilerThread.hpp, ci/ciEnv.hpp,
// compiler/compileTask.hpp.
type compilerLayout struct {
	env    offset `need:"CompilerThread._env"`
	task   offset `need:"ciEnv._task"`
	method offset `need:"CompileTask._method"`
	level  offset `need:"CompileTask._comp_level"`
	prev   offset `need:"CompileTask._prev"`
	size   uint64 `need:"CompileTask"`
}

// deoptLayout has the fields for the future frames of a thread that is being deoptimised: runtime/vframeArray.hpp.
type deoptLayout struct {
	head        offset `need:"JavaThread._vframe_array_head"` // a vframeArray
	frames      offset `need:"vframeArray._frames"`           // number of elements
	elements    int    // offset of the elements, which are the last member of vframeArray
	elementSize uint64 `need:"vframeArrayElement"`
	bci         offset `need:"vframeArrayElement._bci"`
	method      offset `need:"vframeArrayElement._method"`
	caller      offset `need:"vframeArray._caller"` // a frame, which begins with its _sp and _pc (runtime/frame.hpp)
	thrownAt    offset `vm:"JavaThread._exception_pc"`
	whole       bool   // all fields of this struct but thrownAt exist, and are within a vframeArray
}

func (r *resolver) deopt() deoptLayout {
	l := fill[deoptLayout](r, capDeopt)
	l.elements = int(r.size(capDeopt, "vframeArray")) - int(l.elementSize)
	if l.elements < span(l.frames, l.caller)+8 || int(l.elementSize) < max(span(l.method), span(l.bci)-4) {
		r.lost(capDeopt, "sizeof vframeArrayElement")
	}
	l.whole = len(r.missing[capDeopt]) == 0
	return l
}
