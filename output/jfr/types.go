package jfr

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// typeID is a type's number in goprof's files. Events and constants refer to types by it. Readers find it in the
// metadata.
type typeID uint32

// The two events that every reader knows by number (jdk.jfr.internal.consumer.ChunkParser, ChunkHeader).
const (
	typeMetadata   typeID = 0
	typeCheckpoint typeID = 1
)

const (
	typeBoolean typeID = iota + 4 // in HotSpot's order, BasicType
	typeChar
	typeFloat
	typeDouble
	typeByte
	typeShort
	typeInt
	typeLong
)

const (
	typeString typeID = iota + 20
	typeClass
	typeThread
	typeThreadGroup
	typeClassLoader
	typeFrameType
	typeThreadState
	typeStackTrace
	typeStackFrame
	typeMethod
	typePackage
	typeModule
	typeSymbol
	typeCertainty
	typeGCName
	typeGCCause
	typeGCWhen
	typeCodeBlobType
	typeVirtualSpace
)

const (
	typeAnnotationLabel typeID = iota + 40
	typeAnnotationDescription
	typeAnnotationCategory
	typeAnnotationTimestamp
	typeAnnotationTimespan
	typeAnnotationAmount
	typeAnnotationUnsigned
	typeAnnotationPercentage
	typeAnnotationContentType
	typeAnnotationFrequency
)

// Events. A reader that searches the next chunk's "FLR" stops at each event of type 'L' (76). So the numbers begin
// above it.
const (
	typeExecutionSample typeID = iota + 101
	typeNativeMethodSample
	typeWallClockSample
	typeSampleDetail
	typeThreadStart
	typeThreadEnd
	typeActiveSetting
	typeJVMInformation
	typeOSInformation
	typeCPUInformation
	typeThreadStatistics
	typeRecording
	typeAccount
	typeUnseen
	typePauses
	typeNote
	typeSource
	typeMark
	typeThreadAllocation
	typeObjectAllocation
	typeException
	typeClassDefine
	typeEventKind
	typeEventCount
	typeEarlierName
	typeGarbageCollection
	typeCPULoad
	typeYoungCollection
	typeOldCollection
	typeGCPause
	typeHeapSummary
	typeSafepointBegin
	typeSafepointEnd
	typeCompilerStatistics
	typeCodeCacheStatistics
	typeClassLoadingStatistics
	typeGCConfiguration
	typeHeapConfiguration
	typeCompilerConfiguration
	typeCodeCacheConfiguration
	typeFileRead
	typeFileWrite
	typeFileForce
	typeSocketRead
	typeSocketWrite
	typeIOCall
	typeIOSum
	typeFirstOwn // from here on: events without a type of the JDK's
)

// typeDef is one class of the metadata event.
type typeDef struct {
	id          typeID
	name        string
	super       string
	simple      bool // one field, which stands for the whole
	label       string
	description string
	category    []string
	fields      []fieldDef
}

type fieldDef struct {
	name  string
	typ   typeID
	label string
	as    fieldUnit
	ref   bool // a key of the type's constant pool
	array bool
}

// fieldUnit is the unit of a number, which an annotation holds.
type fieldUnit uint8

const (
	plain  fieldUnit = iota
	ticks            // a time, in ticks
	millis           // a time, in ms since 1970
	tickSpan
	nanoSpan
	milliSpan
	percentage
	unsigned
	hertz
	byteCount
)

const (
	superEvent      = "jdk.jfr.Event"
	superAnnotation = "java.lang.annotation.Annotation"
)

// typeRow is a typeDef as text. Rows are data of the program; typeDefs in their place would be 58 kB of code that runs
// at each start.
type typeRow struct {
	id                       typeID // the kind of type: a simple one, an annotation, an event
	name, label, description string
	category                 string // parts, separated by "/"
	// fields are "name kind label", or the name of an entry in fieldKinds with a label, separated by "; ". All events also
	// have startTime. A simple type has "=name": its only field is a text with the type's label.
	fields string
}

// fieldKinds are the kinds of fields, and then the fields that several types have.
var fieldKinds = []fieldDef{
	{name: "bool", typ: typeBoolean},
	{name: "int", typ: typeInt},
	{name: "long", typ: typeLong},
	{name: "text", typ: typeString},
	{name: "texts", typ: typeString, array: true},
	{name: "frames", typ: typeStackFrame, array: true},
	{name: "space", typ: typeVirtualSpace},
	{name: "count", typ: typeInt, as: unsigned},
	{name: "number", typ: typeLong, as: unsigned},
	{name: "size", typ: typeLong, as: byteCount},
	{name: "share", typ: typeFloat, as: percentage},
	{name: "hertz", typ: typeDouble, as: hertz},
	{name: "ticks", typ: typeLong, as: tickSpan},
	{name: "nanos", typ: typeLong, as: nanoSpan},
	{name: "millis", typ: typeLong, as: milliSpan},
	{name: "date", typ: typeLong, as: millis},
	{name: "Certainty", typ: typeCertainty, ref: true},
	{name: "Class", typ: typeClass, ref: true},
	{name: "ClassLoader", typ: typeClassLoader, ref: true},
	{name: "CodeBlobType", typ: typeCodeBlobType, ref: true},
	{name: "FrameType", typ: typeFrameType, ref: true},
	{name: "GCCause", typ: typeGCCause, ref: true},
	{name: "GCName", typ: typeGCName, ref: true},
	{name: "GCWhen", typ: typeGCWhen, ref: true},
	{name: "Method", typ: typeMethod, ref: true},
	{name: "Module", typ: typeModule, ref: true},
	{name: "Package", typ: typePackage, ref: true},
	{name: "StackTrace", typ: typeStackTrace, ref: true},
	{name: "Symbol", typ: typeSymbol, ref: true},
	{name: "Thread", typ: typeThread, ref: true},
	{name: "ThreadGroup", typ: typeThreadGroup, ref: true},
	{name: "ThreadState", typ: typeThreadState, ref: true},

	{name: "startTime", typ: typeLong, label: "Start Time", as: ticks},
	{name: "duration", typ: typeLong, label: "Duration", as: tickSpan},
	{name: "eventThread", typ: typeThread, label: "Event Thread", ref: true},
	{name: "stackTrace", typ: typeStackTrace, label: "Stack Trace", ref: true},
	{name: "samples", typ: typeInt, label: "Hits It Stands For", as: unsigned},
	{name: "timeSpan", typ: typeLong, label: "Time It Stands For", as: nanoSpan},
	{name: "gcId", typ: typeInt, label: "GC Identifier", as: unsigned},
	{name: "part", typ: typeString, label: "Part"},
}

func (r *typeRow) definition() typeDef {
	d := typeDef{id: r.id, name: r.name, label: r.label, description: r.description}
	fields := r.fields
	switch field, simple := strings.CutPrefix(fields, "="); {
	case simple:
		d.simple = true
		fields = field + " text " + r.label
	case r.id >= typeExecutionSample:
		d.super, d.category = superEvent, strings.Split(r.category, "/")
		fields = "startTime; " + fields
	case r.id >= typeAnnotationLabel:
		d.super = superAnnotation
	}
	for text := range strings.SplitSeq(fields, "; ") {
		if text != "" {
			d.fields = append(d.fields, fieldOf(text))
		}
	}
	return d
}

func fieldOf(text string) fieldDef {
	name, rest, isNew := strings.Cut(text, " ")
	kind, label, _ := strings.Cut(rest, " ")
	if !isNew {
		kind = name
	}
	f := fieldKinds[slices.IndexFunc(fieldKinds, func(f fieldDef) bool { return f.name == kind })]
	if isNew {
		f.name, f.label = name, label
	}
	return f
}

const (
	inProfiling = "Java Virtual Machine/Profiling"
	inAccount   = "goprof"
	inCompiler  = "Java Virtual Machine/Compiler"
	inCodeCache = "Java Virtual Machine/Code Cache"

	sampleFields = "sampledThread Thread Thread; stackTrace; state ThreadState Thread State"
	// wallFields are the fields of a sample of elapsed time.
	wallFields = sampleFields + "; samples count Samples; timeSpan ticks Time Span"
)

var typeTable = sync.OnceValue(func() (all []typeDef) {
	for i := range typeRows {
		all = append(all, typeRows[i].definition())
	}
	return all
})

// typeRows are all types in goprof's files. The names, order and kinds of the fields of jdk.* types are those of the
// JDK (src/hotspot/share/jfr/metadata/metadata.xml, JDK 17 to 25). Those of profiler.WallClockSample are async-profiler
// 4's. async-profiler's converter reads samples, StackFrame and Method by the positions of their fields
// (JfrReader.java). So do not add fields to these.
var typeRows = []typeRow{
	{typeBoolean, "boolean", "", "", "", ""},
	{typeChar, "char", "", "", "", ""},
	{typeFloat, "float", "", "", "", ""},
	{typeDouble, "double", "", "", "", ""},
	{typeByte, "byte", "", "", "", ""},
	{typeShort, "short", "", "", "", ""},
	{typeInt, "int", "", "", "", ""},
	{typeLong, "long", "", "", "", ""},
	{typeString, "java.lang.String", "", "", "", ""},

	{typeClass, "java.lang.Class", "Java Class", "", "",
		"classLoader ClassLoader Class Loader; name Symbol Name; package Package Package; " +
			"modifiers int Access Modifiers; hidden bool Hidden"},
	{typeThread, "java.lang.Thread", "Thread", "", "",
		"osName text OS Thread Name; osThreadId long OS Thread Id; javaName text Java Thread Name; " +
			"javaThreadId long Java Thread Id; group ThreadGroup Java Thread Group; virtual bool Virtual Thread"},
	{typeThreadGroup, "jdk.types.ThreadGroup", "Thread Group", "", "", "parent ThreadGroup Parent; name text Name"},
	{typeClassLoader, "jdk.types.ClassLoader", "Java Class Loader", "", "", "type Class Type; name Symbol Name"},
	{typeFrameType, "jdk.types.FrameType", "Frame type", "", "", "=description"},
	{typeThreadState, "jdk.types.ThreadState", "Java Thread State", "", "", "=name"},
	{typeStackTrace, "jdk.types.StackTrace", "Stacktrace", "", "",
		"truncated bool Truncated; frames frames Stack Frames"},
	{typeStackFrame, "jdk.types.StackFrame", "", "", "",
		"method Method Java Method; lineNumber int Line Number; bytecodeIndex int Bytecode Index; " +
			"type FrameType Frame Type"},
	{typeMethod, "jdk.types.Method", "Java Method", "", "",
		"type Class Type; name Symbol Name; descriptor Symbol Descriptor; modifiers int Access Modifiers; " +
			"hidden bool Hidden"},
	{typePackage, "jdk.types.Package", "Package", "", "",
		"name Symbol Name; module Module Module; exported bool Exported"},
	{typeModule, "jdk.types.Module", "Module", "", "",
		"name Symbol Name; version Symbol Version; location Symbol Location; classLoader ClassLoader Class Loader"},
	{typeSymbol, "jdk.types.Symbol", "Symbol", "", "", "=string"},
	{typeCertainty, "goprof.types.Certainty", "Certainty", "", "", "=name"},
	{typeGCName, "jdk.types.GCName", "GC Name", "", "", "=name"},
	{typeGCCause, "jdk.types.GCCause", "GC Cause", "", "", "=cause"},
	{typeGCWhen, "jdk.types.GCWhen", "GC When", "", "", "=when"},
	{typeCodeBlobType, "jdk.types.CodeBlobType", "Code Blob Type", "", "", "=type"},
	{typeVirtualSpace, "jdk.types.VirtualSpace", "", "", "",
		"committedSize size Committed Size; reservedSize size Reserved Size"},

	{typeAnnotationLabel, "jdk.jfr.Label", "", "", "", "value text"},
	{typeAnnotationDescription, "jdk.jfr.Description", "", "", "", "value text"},
	{typeAnnotationCategory, "jdk.jfr.Category", "", "", "", "value texts"},
	{typeAnnotationTimestamp, "jdk.jfr.Timestamp", "", "", "", "value text"},
	{typeAnnotationTimespan, "jdk.jfr.Timespan", "", "", "", "value text"},
	{typeAnnotationAmount, "jdk.jfr.DataAmount", "", "", "", "value text"},
	{typeAnnotationUnsigned, "jdk.jfr.Unsigned", "", "", "", ""},
	{typeAnnotationPercentage, "jdk.jfr.Percentage", "", "", "", ""},
	{typeAnnotationContentType, "jdk.jfr.ContentType", "", "", "", ""},
	{typeAnnotationFrequency, "jdk.jfr.Frequency", "", "", "", ""},

	{typeExecutionSample, "jdk.ExecutionSample", "Method Profiling Sample",
		"A thread that executes Java code", inProfiling, sampleFields},
	{typeNativeMethodSample, "jdk.NativeMethodSample", "Method Profiling Sample Native",
		"A thread that executes native code", inProfiling, sampleFields},
	{typeWallClockSample, wallEventName, "Wall Clock Sample",
		"What a thread does or waits for, whether it has a CPU or not", inProfiling, wallFields},
	{typeSampleDetail, "goprof.SampleDetail", "Sample Detail",
		"What a sample's own event has no field for. It stands right behind that event, with its time and thread", inAccount,
		"thread Thread Thread; cpuTime nanos CPU Time; leaf Certainty Certainty of the Leaf; " +
			"tlab int Allocated: 1 in a New TLAB, 2 Outside; traceId text Trace Id; spanId text Span Id; " +
			"wakerTraceId text Trace Id of the Thread That Ended the Wait; " +
			"wakerSpanId text Span Id of the Thread That Ended the Wait"},
	{typeThreadStart, "jdk.ThreadStart", "Java Thread Start", "", "Java Application",
		"eventThread; stackTrace; thread Thread New Java Thread; parentThread Thread Parent Java Thread"},
	{typeThreadEnd, "jdk.ThreadEnd", "Java Thread End", "", "Java Application",
		"eventThread; thread Thread Java Thread"},
	{typeActiveSetting, "jdk.ActiveSetting", "Recording Setting", "", "Flight Recorder",
		"id long Event Id; name text Setting Name; value text Setting Value"},
	{typeJVMInformation, "jdk.JVMInformation", "JVM Information",
		"Description of JVM and the Java application", "Java Virtual Machine",
		"jvmName text JVM Name; jvmVersion text JVM Version; jvmArguments text JVM Command Line Arguments; " +
			"jvmFlags text JVM Settings File Arguments; javaArguments text Java Application Arguments; " +
			"jvmStartTime date JVM Start Time; pid long Process Identifier"},
	{typeOSInformation, "jdk.OSInformation", "OS Information", "", "Operating System", "osVersion text OS Version"},
	{typeCPUInformation, "jdk.CPUInformation", "CPU Information", "", "Operating System/Processor",
		"cpu text Type; description text Description; sockets count Sockets; cores count Cores; " +
			"hwThreads count Hardware Threads"},
	{typeThreadStatistics, "jdk.JavaThreadStatistics", "Java Thread Statistics", "", "Java Application/Statistics",
		"activeCount long Active Threads; daemonCount long Daemon Threads; " +
			"accumulatedCount long Accumulated Threads; peakCount long Peak Threads"},
	{typeThreadAllocation, "jdk.ThreadAllocationStatistics", "Thread Allocation Statistics",
		"", "Java Application/Statistics",
		"allocated size Allocated; thread Thread Thread"},

	// The fields weight and samples are how much one event stands for: some events may be left out.
	{typeObjectAllocation, allocationEvent, "Object Allocation Sample", "", "Java Application",
		"eventThread; stackTrace; objectClass Class Object Class; weight size Sample Weight"},
	{typeException, exceptionEvent, "Java Exception", "", "Java Application",
		"duration; eventThread; stackTrace; message text Message; thrownClass Class Class; samples"},
	{typeClassDefine, classDefineEvent, "Class Define", "", "Java Virtual Machine/Class Loading",
		"eventThread; stackTrace; definedClass Class Defined Class; " +
			"definingClassLoader ClassLoader Defining Class Loader; samples"},
	// The last fields of calls that read and write are the number of calls, and the time, that a sample stands for.
	{typeFileRead, "jdk.FileRead", "File Read", "", "Java Application",
		"duration; eventThread; stackTrace; path text Path; bytesRead size Bytes Read; endOfFile bool End of File; " +
			"samples; timeSpan"},
	{typeFileWrite, "jdk.FileWrite", "File Write", "", "Java Application",
		"duration; eventThread; stackTrace; path text Path; bytesWritten size Bytes Written; samples; timeSpan"},
	{typeFileForce, "jdk.FileForce", "File Force", "", "Java Application",
		"duration; eventThread; stackTrace; path text Path; metaData bool Update Metadata; samples; timeSpan"},
	{typeSocketRead, "jdk.SocketRead", "Socket Read", "", "Java Application",
		"duration; eventThread; stackTrace; host text Host; address text Address; port int Port; " +
			"timeout nanos Timeout Value; bytesRead size Bytes Read; endOfStream bool End of Stream; samples; timeSpan"},
	{typeSocketWrite, "jdk.SocketWrite", "Socket Write", "", "Java Application",
		"duration; eventThread; stackTrace; host text Host; address text Address; port int Port; " +
			"bytesWritten size Bytes Written; samples; timeSpan"},
	{typeIOCall, ioCallName, "Call", "", "Java Application",
		"duration; eventThread; stackTrace; operation text Operation; target text File or Peer; bytes long Bytes; " +
			"failed bool Failed; samples; timeSpan"},
	{typeIOSum, "goprof.IOSum", "Calls of a File or Peer", "How often and how long a file or peer was used", inAccount,
		"kind text Kind; target text File or Peer; operation text Operation; calls number Calls; " +
			"transferred size Bytes; took nanos Time; failures number Failed Calls; " +
			"pending number Calls That Had Not Ended; pended nanos Their Time so Far"},
	{typeEventKind, "goprof.EventKind", "Kind of Event",
		"Which events of this file are samples, and of what", inAccount,
		"event text Name; type text Event Type; unit text Counted In"},
	{typeEventCount, "goprof.EventCount", "Event Count",
		"How often an event happened, and what became samples", inAccount,
		"event text Name; unit text Counted In; hits number Hits; amount number Amount; " +
			"taken number Hits That Became Samples; stood number Amount That Samples Stand For; " +
			"missed number Missed by the Kernel; interval number Mean Amount Between Samples"},

	// These have the fields that can be known from outside. See jvm_events.go.
	{typeGarbageCollection, "jdk.GarbageCollection", "Garbage Collection", "", "Java Virtual Machine/GC/Collector",
		"duration; gcId; name GCName Name; cause GCCause Cause; sumOfPauses ticks Sum of Pauses; " +
			"longestPause ticks Longest Pause"},
	{typeCPULoad, "jdk.CPULoad", "CPU Load", "", "Operating System/Processor",
		"jvmUser share JVM User; jvmSystem share JVM System; machineTotal share Machine Total"},
	{typeYoungCollection, "jdk.YoungGarbageCollection", "Young Garbage Collection",
		"", "Java Virtual Machine/GC/Collector",
		"duration; gcId"},
	{typeOldCollection, "jdk.OldGarbageCollection", "Old Garbage Collection", "", "Java Virtual Machine/GC/Collector",
		"duration; gcId"},
	{typeGCPause, "jdk.GCPhasePause", "GC Phase Pause", "", "Java Virtual Machine/GC/Phases",
		"duration; eventThread; gcId; name text Name"},
	{typeHeapSummary, "jdk.GCHeapSummary", "Heap Summary", "", "Java Virtual Machine/GC/Heap",
		"gcId; when GCWhen When; heapSpace space Heap Space; heapUsed size Heap Used"},
	{typeSafepointBegin, "jdk.SafepointBegin", "Safepoint Begin", "", "Java Virtual Machine/Runtime/Safepoint",
		"duration; safepointId number Safepoint Identifier"},
	{typeSafepointEnd, "jdk.SafepointEnd", "Safepoint End", "", "Java Virtual Machine/Runtime/Safepoint",
		"duration; safepointId number Safepoint Identifier"},
	{typeCompilerStatistics, "jdk.CompilerStatistics", "Compiler Statistics", "", inCompiler,
		"compileCount count Compiled Methods; bailoutCount count Bailouts; " +
			"invalidatedCount count Invalidated Compilations; osrCompileCount count OSR Compilations; " +
			"standardCompileCount count Standard Compilations; osrBytesCompiled size OSR Bytes Compiled; " +
			"standardBytesCompiled size Standard Bytes Compiled; nmethodsSize size Compilation Resulting Size; " +
			"nmethodCodeSize size Compilation Resulting Code Size; totalTimeSpent millis Total Time"},
	{typeCodeCacheStatistics, "jdk.CodeCacheStatistics", "Code Cache Statistics", "", inCodeCache,
		"codeBlobType CodeBlobType Code Heap; unallocatedCapacity size Unallocated; fullCount count Full Count"},
	{typeClassLoadingStatistics, "jdk.ClassLoadingStatistics", "Class Loading Statistics",
		"", "Java Application/Statistics",
		"loadedClassCount number Loaded Class Count; unloadedClassCount number Unloaded Class Count"},
	{typeGCConfiguration, "jdk.GCConfiguration", "GC Configuration", "", "Java Virtual Machine/GC/Configuration",
		"youngCollector GCName Young Garbage Collector; oldCollector GCName Old Garbage Collector; " +
			"parallelGCThreads count Parallel GC Threads; concurrentGCThreads count Concurrent GC Threads; " +
			"usesDynamicGCThreads bool Uses Dynamic GC Threads; isExplicitGCConcurrent bool Concurrent Explicit GC; " +
			"isExplicitGCDisabled bool Disabled Explicit GC"},
	{typeHeapConfiguration, "jdk.GCHeapConfiguration", "GC Heap Configuration",
		"", "Java Virtual Machine/GC/Configuration",
		"maxSize size Maximum Heap Size; initialSize size Initial Heap Size"},
	{typeCompilerConfiguration, "jdk.CompilerConfiguration", "Compiler Configuration", "", inCompiler,
		"threadCount count Thread Count; tieredCompilation bool Tiered Compilation"},
	{typeCodeCacheConfiguration, "jdk.CodeCacheConfiguration", "Code Cache Configuration", "", inCodeCache,
		"reservedSize size Reserved Size"},

	{typeRecording, "goprof.Recording", "Recording", "How goprof made this recording", inAccount,
		"version text goprof Version; host text Host; pid long Process Identifier; mainClass text Main Class; " +
			"jvm text JVM; " +
			"collector text Garbage Collector; mode text Mode; engine text Engine; interval nanos Interval; " +
			"weight text Weight; part"},
	{typeAccount, "goprof.Account", "Account",
		"What became of every look at a thread: attempted = whole + truncated + lost", inAccount,
		"attempted number Attempted; whole number Whole; truncated number Truncated; lost number Lost; " +
			"leafLikely number Leaf Likely; leafGuessed number Leaf Guessed; skipped number Moments Skipped; " +
			"threads number Threads; rate hertz Rate Asked; rateReached hertz Rate Reached; " +
			"processTime nanos CPU Time of the Process; sampledTime nanos CPU Time Sampled; " +
			"notSampledTime nanos CPU Time Not Sampled; exitedTime nanos CPU Time of Threads That Ended; " +
			"ownTime nanos CPU Time of goprof; quality text Quality; part"},
	{typeUnseen, "goprof.Unseen", "Truncated or Lost",
		"How many stacks do not reach their root, or were lost, for one reason", inAccount,
		"lost bool Lost; reason text Reason; samples number Samples; part"},
	{typePauses, "goprof.Pauses", "Pauses", "How long threads were held to be looked at", inAccount,
		"count number Pauses; median nanos Median; p99 nanos 99th Percentile; longest nanos Longest; " +
			"total nanos Total; bound nanos Bound; part"},
	{typeNote, "goprof.Note", "Note", "What a reader of this recording should know", inAccount,
		"name text Name; text text Text; remedy text Remedy; part"},
	{typeEarlierName, "goprof.EarlierName", "Earlier Name", "A name that a thread had before", inAccount,
		"tid long OS Thread Id; javaThreadId long Java Thread Id; name text Name"},
	{typeMark, "goprof.Mark", "Mark", "What another recorder knew of this time: a collection, a safepoint", inAccount,
		"duration; kind text Kind; text text Text"},
	// A class has no field for its source: JMC warns of unknown fields.
	{typeSource, "goprof.Source", "Source", "Where a class comes from. These events come first in a chunk", inAccount,
		"class Class Class; file Symbol Source File or Image; build Symbol Build Id of the Image"},
}

func (t typeID) String() string { return strconv.FormatUint(uint64(t), 10) }
