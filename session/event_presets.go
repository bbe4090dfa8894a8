//go:build linux

package session

import (
	"bytes"
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/sampler/events"
	"goprof/sampler/look"
	"goprof/vmstructs"
)

// EventPreset is an event with a name of its own: functions of the JVM or of the C library, or a counter of the kernel.
type EventPreset struct {
	Name string
	Help string
	Unit profile.Weight
	// Every is the default of the mean amount between two samples. 0: each hit is a sample.
	Every uint64
	// ways are the ways to record the event, the best first.
	ways []presetWay
}

// presetWay is a set of functions, or a counter. All of its functions must exist.
type presetWay struct {
	in      string // the library, or the provider of markers
	marked  bool   // probes are markers
	probes  []presetProbe
	counter *counterEvent
	pairs   *presetPairs
	io      bool   // calls that read and write (io.go)
	note    string // which calls this way does not see
}

type presetProbe struct {
	symbol string
	amount int // the argument, counted from 1
	times  int // the argument by which amount is multiplied
	given  int // the argument that must not be 0, otherwise the call does not count
	buffer events.BufferHit
	object int // the argument with the size of the object that the buffer is made for
	// at and thread are the arguments with the object's address and its thread. 0: there is none.
	at, thread int
	copies     []events.Copy
	eventPart
}

type counterEvent struct {
	kind   uint32
	config uint64
}

const (
	libjvm = "libjvm.so"
	libc   = "libc"
)

const defaultAllocEvery = 512 << 10

// eventPresets are all presets, in the order in which they are listed.
//
// A preset uses a function of HotSpot only under two conditions: the JVM calls it whatever is switched on, and no C++
// compiler has split or inlined it in the tested builds. The functions are in src/hotspot/share:
// gc/shared/allocTracer.hpp, prims/jvm.cpp, classfile/systemDictionary.hpp, runtime/vmThread.hpp,
// runtime/deoptimization.hpp, compiler/compileBroker.hpp.
var eventPresets = []EventPreset{
	{Name: "alloc", Help: "allocations in the Java heap, by class, weighted by bytes", Unit: profile.Bytes,
		Every: defaultAllocEvery, ways: allocWays},
	{Name: "exceptions", Help: "exceptions that fill in their stack trace, by class", ways: []presetWay{
		{in: libjvm, probes: []presetProbe{{symbol: "JVM_FillInStackTrace", copies: objectOf(2),
			eventPart: eventPart{leaf: classOfObject, kind: profile.Native, java: true}}}}}},
	{Name: "class-load", Help: "classes that are defined, by name", ways: []presetWay{
		{in: libjvm, probes: []presetProbe{{symbol: "SystemDictionary::define_instance_class",
			eventPart: eventPart{leaf: classOfArgument(1), kind: profile.Native, java: true}}},
			note: "hidden classes (lambdas among them) are not seen"},
		{in: libjvm, probes: []presetProbe{{symbol: "JVM_DefineClassWithSource",
			copies:    []events.Copy{{From: 2, Size: maxEventText, Text: true}},
			eventPart: eventPart{leaf: classOfText, kind: profile.Native, java: true}}},
			note: "this libjvm.so has no full symbols: only classes that class loaders define themselves are seen"}}},
	{Name: "thread-start", Help: "Java threads that are started", ways: []presetWay{
		{in: libjvm, probes: []presetProbe{{symbol: "JVM_StartThread", copies: objectOf(2),
			eventPart: eventPart{leaf: classOfObject, kind: profile.Native, java: true}}}}}},
	{Name: "gc-request", Help: "calls of System.gc", ways: []presetWay{
		{in: libjvm, probes: []presetProbe{{symbol: "JVM_GC", eventPart: eventPart{java: true}}}}}},
	{Name: "safepoint", Help: "VM operations that are asked for, by name; those at a safepoint among them",
		ways: []presetWay{{in: libjvm, probes: []presetProbe{{symbol: "VMThread::execute",
			copies: []events.Copy{{From: 1, Size: 8}}, eventPart: eventPart{leaf: nameOfTable, kind: profile.Native}}}}}},
	{Name: "deopt", Help: "compiled frames that are deoptimised", ways: deoptWays},
	{Name: "compile", Help: "methods that are compiled, in the compilers' threads", ways: []presetWay{
		{in: libjvm, probes: []presetProbe{{symbol: "CompileBroker::invoke_compiler_on_method",
			copies:    []events.Copy{{From: 1, Size: vmstructs.TaskSize}},
			eventPart: eventPart{leaf: methodOfTask, kind: profile.Native}}}}}},
	{Name: "malloc", Help: "memory of the C library's malloc, calloc and realloc, weighted by bytes", Unit: profile.Bytes,
		Every: defaultAllocEvery, ways: mallocWays},
	{Name: profile.EventLeak, Help: "memory of malloc and its like that is not freed by the end, weighted by bytes",
		Unit: profile.Bytes, Every: defaultAllocEvery, ways: leakWays},
	{Name: profile.EventIO, Help: "reads, writes, fsync, connect, accept and look-ups of names, by file and peer",
		Unit: profile.WallTime, Every: defaultIOEvery, ways: []presetWay{{io: true}}},
	{Name: "mmap", Help: "memory and files that are mapped, weighted by bytes", Unit: profile.Bytes,
		Every: defaultAllocEvery, ways: []presetWay{{in: libc, probes: []presetProbe{{symbol: "mmap", amount: 2}}}}},
	{Name: profile.EventMapLeak, Help: "memory and files that are mapped and not unmapped by the end, weighted by bytes",
		Unit: profile.Bytes, Every: defaultAllocEvery, ways: mapLeakWays},
	counterPreset("page-faults",
		"pages that are touched for the first time, or read from disk: what makes the process grow", 16,
		unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS),
	counterPreset("major-faults", "pages that are read from disk", 1,
		unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ),
	counterPreset("context-switches", "a thread leaves its CPU", 1,
		unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CONTEXT_SWITCHES),
	counterPreset("cpu-migrations", "a thread goes on on another CPU", 1,
		unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_MIGRATIONS),
	counterPreset("cycles", "the CPU's cycles", 10_000_000, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES),
	counterPreset("instructions", "instructions of the CPU", 10_000_000,
		unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS),
	counterPreset("cache-misses", "misses of the CPU's last cache", 10_000,
		unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES),
	counterPreset("branch-misses", "branches that the CPU guessed wrong", 100_000,
		unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES),
}

func counterPreset(name, help string, every uint64, kind uint32, config uint64) EventPreset {
	return EventPreset{Name: name, Help: help, Every: every,
		ways: []presetWay{{counter: &counterEvent{kind, config}}}}
}

// mallocWays are the probes for glibc and for musl. realloc(NULL, n) calls malloc, whose probe counts it (glibc:
// malloc/malloc.c, __libc_realloc), so the probe at realloc does not. Other calls of realloc count with their whole new
// size. The C library of musl is its loader. There, calloc and realloc may call malloc.
var mallocWays = []presetWay{
	{in: libc, probes: []presetProbe{{symbol: "malloc", amount: 1}, {symbol: "calloc", amount: 1, times: 2},
		{symbol: "realloc", amount: 2, given: 1}}},
	{in: "ld-musl", probes: []presetProbe{{symbol: "malloc", amount: 1}}, note: "calloc and realloc are not seen"},
}

// deoptWays has two cases: a thread reaches code that C2 has left out (an uncommon trap), or the code of a frame is no
// longer valid. Both end in Deoptimization::fetch_unroll_info_helper, which some compilers may inline into its two
// callers.
var deoptWays = []presetWay{{in: libjvm, probes: []presetProbe{
	{symbol: "Deoptimization::fetch_unroll_info", eventPart: eventPart{java: true}},
	{symbol: "Deoptimization::uncommon_trap", eventPart: eventPart{java: true}}}}}

// allocWays has one way for each pair of functions with which a release allocates.
var allocWays = func() (ways []presetWay) {
	for _, a := range vmstructs.AllocTracers {
		inside := presetProbe{symbol: a.InNewTLAB, amount: a.Bytes, object: a.Bytes + 1, buffer: events.NewBuffer,
			eventPart: newTLAB}
		outside := presetProbe{symbol: a.OutsideTLAB, amount: a.Bytes, buffer: events.OutsideBuffer,
			eventPart: outsideTLAB}
		if a.At > 0 {
			inside.at, inside.thread, outside.at, outside.thread = a.At, a.Bytes+2, a.At, a.Bytes+1
		}
		ways = append(ways, presetWay{in: libjvm, probes: []presetProbe{inside, outside}, note: a.Unseen})
	}
	return ways
}()

// Flame graph tools colour frames by these marks: _[i] and _[k].
var (
	newTLAB     = eventPart{leaf: classOfArgument(1), kind: profile.Inlined, java: true}
	outsideTLAB = eventPart{leaf: classOfArgument(1), kind: profile.Kernel, java: true}
)

// objectOf copies the header of the object that a JNI reference in an argument leads to.
func objectOf(argument int) []events.Copy {
	return []events.Copy{{From: argument, Size: 8}, {Before: 8, Size: vmstructs.HeadSize}}
}

const maxEventText = 256

// classOfArgument names the class whose Klass is an argument.
func classOfArgument(number int) eventLeaf {
	return func(r *eventReader, hit *look.Look) string {
		return r.className(r.classes.OfKlass(r.args(hit, number)))
	}
}

func classOfObject(r *eventReader, hit *look.Look) string {
	if data := hit.Event.Data; len(data) >= 8+vmstructs.HeadSize {
		return r.className(r.classes.OfHead(data[8:]))
	}
	return profile.UnknownClass
}

// className returns the name of a class as users know it. The class of a lambda has the same name in every run.
func (e *eventReader) className(name string, err error) string {
	switch {
	case err != nil || name == "":
		return profile.UnknownClass
	case e.Walker.RawNames:
		return name
	}
	return naming.Class(name)
}

// classOfText names the class whose name was copied as a text.
func classOfText(_ *eventReader, hit *look.Look) string {
	text, _, _ := bytes.Cut(hit.Event.Data, []byte{0})
	if len(text) == 0 {
		return profile.UnknownClass
	}
	return strings.ToValidUTF8(vmstructs.JavaName(string(text)), "\uFFFD")
}

// methodOfTask names the method that a compiler starts to compile.
func methodOfTask(r *eventReader, hit *look.Look) string { return r.VM.TaskMethod(hit.Event.Data) }

// maxTables bounds the number of C++ classes whose function tables are known by name.
const maxTables = 1 << 15

// nameOfTable names the C++ class of the object that an argument points to. The object's first word points two words
// after the symbol "vtable for" the class (Itanium C++ ABI, 2.5).
func nameOfTable(r *eventReader, hit *look.Look) string {
	if r.tables == nil {
		r.tables = map[uint64]string{}
		if all, err := r.Process.Globals(libjvm, "_ZTV", maxTables); err == nil {
			r.tables = all
		}
	}
	if len(hit.Event.Data) < 8 {
		return ""
	}
	symbol, ok := r.tables[binary.LittleEndian.Uint64(hit.Event.Data)-16]
	if !ok {
		return "[VM operation]"
	}
	return strings.TrimLeft(strings.TrimPrefix(symbol, "_ZTV"), "0123456789") // 10VM_GC_Oops: the length, and the name
}
