package jfr

import "strconv"

// typeID is a type's number in the files that we write. Events and constants name types by it; readers learn it from
// the metadata.
type typeID uint32

// The two events that every reader knows by number (jdk.jfr.internal.consumer.ChunkParser, ChunkHeader).
const (
	typeMetadata   typeID = 0
	typeCheckpoint typeID = 1
)

const (
	typeBoolean typeID = iota + 4 // as HotSpot numbers them, BasicType
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

// Events. A reader that looks for the next chunk's "FLR" takes an event of type 'L' (76) for a possible one: they begin
// above.
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
	typeFirstOwn // and from here on, those of events that have no type of the JDK's
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

// fieldUnit is the unit of a number, as an annotation says it.
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

// Fields that several types have.
var (
	startTime   = fieldDef{name: "startTime", typ: typeLong, label: "Start Time", as: ticks}
	duration    = fieldDef{name: "duration", typ: typeLong, label: "Duration", as: tickSpan}
	eventThread = ref("eventThread", typeThread, "Event Thread")
	stackTrace  = ref("stackTrace", typeStackTrace, "Stack Trace")
	hitCount    = count("samples", "Hits It Stands For")
	gcNumber    = count("gcId", "GC Identifier")
	oneValue    = value("value", typeString, "")
)

func ref(name string, typ typeID, label string) fieldDef {
	return fieldDef{name: name, typ: typ, label: label, ref: true}
}

func value(name string, typ typeID, label string) fieldDef {
	return fieldDef{name: name, typ: typ, label: label}
}

func number(name, label string) fieldDef {
	return fieldDef{name: name, typ: typeLong, label: label, as: unsigned}
}

func count(name, label string) fieldDef {
	return fieldDef{name: name, typ: typeInt, label: label, as: unsigned}
}

func size(name, label string) fieldDef {
	return fieldDef{name: name, typ: typeLong, label: label, as: byteCount}
}

func share(name, label string) fieldDef {
	return fieldDef{name: name, typ: typeFloat, label: label, as: percentage}
}

func span(name, label string) fieldDef {
	return fieldDef{name: name, typ: typeLong, label: label, as: nanoSpan}
}

func simple(id typeID, name, label, field string) typeDef {
	return typeDef{id: id, name: name, label: label, simple: true, fields: []fieldDef{value(field, typeString, label)}}
}

func annotation(id typeID, name string, fields ...fieldDef) typeDef {
	return typeDef{id: id, name: "jdk.jfr." + name, super: superAnnotation, fields: fields}
}

func event(id typeID, name, label, description string, category []string, fields ...fieldDef) typeDef {
	return typeDef{id: id, name: name, super: superEvent, label: label, description: description, category: category,
		fields: append([]fieldDef{startTime}, fields...)}
}

var (
	inProfiling = []string{"Java Virtual Machine", "Profiling"}
	inAccount   = []string{"goprof"}
	inCompiler  = []string{"Java Virtual Machine", "Compiler"}
	inCodeCache = []string{"Java Virtual Machine", "Code Cache"}
)

func inGC(what string) []string { return []string{"Java Virtual Machine", "GC", what} }

func inRuntime(what string) []string { return []string{"Java Virtual Machine", "Runtime", what} }

func sampleEvent(id typeID, name, label, description string, more ...fieldDef) typeDef {
	fields := []fieldDef{
		ref("sampledThread", typeThread, "Thread"),
		stackTrace,
		ref("state", typeThreadState, "Thread State"),
	}
	return event(id, name, label, description, inProfiling, append(fields, more...)...)
}

// wallEvent is a sample of time that passed.
func wallEvent(id typeID, name, label, description string) typeDef {
	return sampleEvent(id, name, label, description,
		count("samples", "Samples"),
		fieldDef{name: "timeSpan", typ: typeLong, label: "Time Span", as: tickSpan})
}

// typeTable has all types of goprof's files. The names, order and kinds of the fields of jdk.* types are those of the
// JDK (src/hotspot/share/jfr/metadata/metadata.xml, JDK 17 to 25). Those of profiler.WallClockSample are async-profiler
// 4's. async-profiler's converter reads samples, StackFrame and Method by the positions of their fields
// (JfrReader.java). So do not add fields to these.
var typeTable = []typeDef{
	{id: typeBoolean, name: "boolean"},
	{id: typeChar, name: "char"},
	{id: typeFloat, name: "float"},
	{id: typeDouble, name: "double"},
	{id: typeByte, name: "byte"},
	{id: typeShort, name: "short"},
	{id: typeInt, name: "int"},
	{id: typeLong, name: "long"},
	{id: typeString, name: "java.lang.String"},

	{id: typeClass, name: "java.lang.Class", label: "Java Class", fields: []fieldDef{
		ref("classLoader", typeClassLoader, "Class Loader"), ref("name", typeSymbol, "Name"),
		ref("package", typePackage, "Package"), value("modifiers", typeInt, "Access Modifiers"),
		value("hidden", typeBoolean, "Hidden"),
	}},
	{id: typeThread, name: "java.lang.Thread", label: "Thread", fields: []fieldDef{
		value("osName", typeString, "OS Thread Name"), value("osThreadId", typeLong, "OS Thread Id"),
		value("javaName", typeString, "Java Thread Name"), value("javaThreadId", typeLong, "Java Thread Id"),
		ref("group", typeThreadGroup, "Java Thread Group"), value("virtual", typeBoolean, "Virtual Thread"),
	}},
	{id: typeThreadGroup, name: "jdk.types.ThreadGroup", label: "Thread Group", fields: []fieldDef{
		ref("parent", typeThreadGroup, "Parent"), value("name", typeString, "Name"),
	}},
	{id: typeClassLoader, name: "jdk.types.ClassLoader", label: "Java Class Loader", fields: []fieldDef{
		ref("type", typeClass, "Type"), ref("name", typeSymbol, "Name"),
	}},
	simple(typeFrameType, "jdk.types.FrameType", "Frame type", "description"),
	simple(typeThreadState, "jdk.types.ThreadState", "Java Thread State", "name"),
	{id: typeStackTrace, name: "jdk.types.StackTrace", label: "Stacktrace", fields: []fieldDef{
		value("truncated", typeBoolean, "Truncated"),
		{name: "frames", typ: typeStackFrame, label: "Stack Frames", array: true},
	}},
	{id: typeStackFrame, name: "jdk.types.StackFrame", fields: []fieldDef{
		ref("method", typeMethod, "Java Method"), value("lineNumber", typeInt, "Line Number"),
		value("bytecodeIndex", typeInt, "Bytecode Index"), ref("type", typeFrameType, "Frame Type"),
	}},
	{id: typeMethod, name: "jdk.types.Method", label: "Java Method", fields: []fieldDef{
		ref("type", typeClass, "Type"), ref("name", typeSymbol, "Name"), ref("descriptor", typeSymbol, "Descriptor"),
		value("modifiers", typeInt, "Access Modifiers"), value("hidden", typeBoolean, "Hidden"),
	}},
	{id: typePackage, name: "jdk.types.Package", label: "Package", fields: []fieldDef{
		ref("name", typeSymbol, "Name"), ref("module", typeModule, "Module"),
		value("exported", typeBoolean, "Exported"),
	}},
	{id: typeModule, name: "jdk.types.Module", label: "Module", fields: []fieldDef{
		ref("name", typeSymbol, "Name"), ref("version", typeSymbol, "Version"), ref("location", typeSymbol, "Location"),
		ref("classLoader", typeClassLoader, "Class Loader"),
	}},
	simple(typeSymbol, "jdk.types.Symbol", "Symbol", "string"),
	simple(typeCertainty, "goprof.types.Certainty", "Certainty", "name"),
	simple(typeGCName, "jdk.types.GCName", "GC Name", "name"),
	simple(typeGCCause, "jdk.types.GCCause", "GC Cause", "cause"),
	simple(typeGCWhen, "jdk.types.GCWhen", "GC When", "when"),
	simple(typeCodeBlobType, "jdk.types.CodeBlobType", "Code Blob Type", "type"),
	{id: typeVirtualSpace, name: "jdk.types.VirtualSpace", fields: []fieldDef{
		size("committedSize", "Committed Size"), size("reservedSize", "Reserved Size"),
	}},

	annotation(typeAnnotationLabel, "Label", oneValue),
	annotation(typeAnnotationDescription, "Description", oneValue),
	annotation(typeAnnotationCategory, "Category", fieldDef{name: "value", typ: typeString, array: true}),
	annotation(typeAnnotationTimestamp, "Timestamp", oneValue),
	annotation(typeAnnotationTimespan, "Timespan", oneValue),
	annotation(typeAnnotationAmount, "DataAmount", oneValue),
	annotation(typeAnnotationUnsigned, "Unsigned"),
	annotation(typeAnnotationPercentage, "Percentage"),
	annotation(typeAnnotationContentType, "ContentType"),
	annotation(typeAnnotationFrequency, "Frequency"),

	sampleEvent(typeExecutionSample, "jdk.ExecutionSample", "Method Profiling Sample",
		"A thread that executes Java code"),
	sampleEvent(typeNativeMethodSample, "jdk.NativeMethodSample", "Method Profiling Sample Native",
		"A thread that executes native code"),
	wallEvent(typeWallClockSample, wallEventName, "Wall Clock Sample",
		"What a thread does or waits for, whether it has a CPU or not"),
	event(typeSampleDetail, "goprof.SampleDetail", "Sample Detail",
		"What a sample's own event has no field for. It stands right behind that event, with its time and thread", inAccount,
		ref("thread", typeThread, "Thread"), span("cpuTime", "CPU Time"),
		ref("leaf", typeCertainty, "Certainty of the Leaf"),
		value("tlab", typeInt, "Allocated: 1 in a New TLAB, 2 Outside"), value("traceId", typeString, "Trace Id"),
		value("spanId", typeString, "Span Id"),
		value("wakerTraceId", typeString, "Trace Id of the Thread That Ended the Wait"),
		value("wakerSpanId", typeString, "Span Id of the Thread That Ended the Wait")),
	event(typeThreadStart, "jdk.ThreadStart", "Java Thread Start", "", []string{"Java Application"},
		eventThread, stackTrace, ref("thread", typeThread, "New Java Thread"),
		ref("parentThread", typeThread, "Parent Java Thread")),
	event(typeThreadEnd, "jdk.ThreadEnd", "Java Thread End", "", []string{"Java Application"},
		eventThread, ref("thread", typeThread, "Java Thread")),
	event(typeActiveSetting, "jdk.ActiveSetting", "Recording Setting", "", []string{"Flight Recorder"},
		value("id", typeLong, "Event Id"), value("name", typeString, "Setting Name"),
		value("value", typeString, "Setting Value")),
	event(typeJVMInformation, "jdk.JVMInformation", "JVM Information", "Description of JVM and the Java application",
		[]string{"Java Virtual Machine"},
		value("jvmName", typeString, "JVM Name"), value("jvmVersion", typeString, "JVM Version"),
		value("jvmArguments", typeString, "JVM Command Line Arguments"),
		value("jvmFlags", typeString, "JVM Settings File Arguments"),
		value("javaArguments", typeString, "Java Application Arguments"),
		fieldDef{name: "jvmStartTime", typ: typeLong, label: "JVM Start Time", as: millis},
		value("pid", typeLong, "Process Identifier")),
	event(typeOSInformation, "jdk.OSInformation", "OS Information", "", []string{"Operating System"},
		value("osVersion", typeString, "OS Version")),
	event(typeCPUInformation, "jdk.CPUInformation", "CPU Information", "", []string{"Operating System", "Processor"},
		value("cpu", typeString, "Type"), value("description", typeString, "Description"), count("sockets", "Sockets"),
		count("cores", "Cores"), count("hwThreads", "Hardware Threads")),
	event(typeThreadStatistics, "jdk.JavaThreadStatistics", "Java Thread Statistics", "",
		[]string{"Java Application", "Statistics"},
		value("activeCount", typeLong, "Active Threads"), value("daemonCount", typeLong, "Daemon Threads"),
		value("accumulatedCount", typeLong, "Accumulated Threads"), value("peakCount", typeLong, "Peak Threads")),

	event(typeThreadAllocation, "jdk.ThreadAllocationStatistics", "Thread Allocation Statistics", "",
		[]string{"Java Application", "Statistics"},
		size("allocated", "Allocated"), ref("thread", typeThread, "Thread")),

	// Of these three, weight and samples say what one stands for: an event may be thinned out.
	event(typeObjectAllocation, allocationEvent, "Object Allocation Sample", "",
		[]string{"Java Application"},
		eventThread, stackTrace, ref("objectClass", typeClass, "Object Class"), size("weight", "Sample Weight")),
	event(typeException, exceptionEvent, "Java Exception", "", []string{"Java Application"},
		duration, eventThread, stackTrace, value("message", typeString, "Message"),
		ref("thrownClass", typeClass, "Class"), hitCount),
	event(typeClassDefine, classDefineEvent, "Class Define", "",
		[]string{"Java Virtual Machine", "Class Loading"},
		eventThread, stackTrace, ref("definedClass", typeClass, "Defined Class"),
		ref("definingClassLoader", typeClassLoader, "Defining Class Loader"), hitCount),
	ioEvent(typeFileRead, "jdk.FileRead", "File Read", filePath, bytesRead,
		value("endOfFile", typeBoolean, "End of File")),
	ioEvent(typeFileWrite, "jdk.FileWrite", "File Write", filePath, bytesWritten),
	ioEvent(typeFileForce, "jdk.FileForce", "File Force", filePath, value("metaData", typeBoolean, "Update Metadata")),
	ioEvent(typeSocketRead, "jdk.SocketRead", "Socket Read", host, address, port, span("timeout", "Timeout Value"),
		bytesRead, value("endOfStream", typeBoolean, "End of Stream")),
	ioEvent(typeSocketWrite, "jdk.SocketWrite", "Socket Write", host, address, port, bytesWritten),
	ioEvent(typeIOCall, ioCallName, "Call", value("operation", typeString, "Operation"),
		value("target", typeString, "File or Peer"), value("bytes", typeLong, "Bytes"),
		value("failed", typeBoolean, "Failed")),
	event(typeIOSum, "goprof.IOSum", "Calls of a File or Peer", "How often and how long a file or peer was used",
		inAccount, value("kind", typeString, "Kind"), value("target", typeString, "File or Peer"),
		value("operation", typeString, "Operation"), number("calls", "Calls"), size("transferred", "Bytes"),
		span("took", "Time"), number("failures", "Failed Calls"), number("pending", "Calls That Had Not Ended"),
		span("pended", "Their Time so Far")),
	event(typeEventKind, "goprof.EventKind", "Kind of Event", "Which events of this file are samples, and of what",
		inAccount, value("event", typeString, "Name"), value("type", typeString, "Event Type"),
		value("unit", typeString, "Counted In")),
	event(typeEventCount, "goprof.EventCount", "Event Count", "How often an event happened, and what became samples",
		inAccount, value("event", typeString, "Name"), value("unit", typeString, "Counted In"), number("hits", "Hits"),
		number("amount", "Amount"), number("taken", "Hits That Became Samples"),
		number("stood", "Amount That Samples Stand For"), number("missed", "Missed by the Kernel"),
		number("interval", "Mean Amount Between Samples")),

	// These have the fields that can be known from outside. See jvm_events.go.
	event(typeGarbageCollection, "jdk.GarbageCollection", "Garbage Collection", "", inGC("Collector"),
		duration, gcNumber, ref("name", typeGCName, "Name"), ref("cause", typeGCCause, "Cause"),
		fieldDef{name: "sumOfPauses", typ: typeLong, label: "Sum of Pauses", as: tickSpan},
		fieldDef{name: "longestPause", typ: typeLong, label: "Longest Pause", as: tickSpan}),
	event(typeCPULoad, "jdk.CPULoad", "CPU Load", "", []string{"Operating System", "Processor"},
		share("jvmUser", "JVM User"), share("jvmSystem", "JVM System"), share("machineTotal", "Machine Total")),
	event(typeYoungCollection, "jdk.YoungGarbageCollection", "Young Garbage Collection", "", inGC("Collector"),
		duration, gcNumber),
	event(typeOldCollection, "jdk.OldGarbageCollection", "Old Garbage Collection", "", inGC("Collector"),
		duration, gcNumber),
	event(typeGCPause, "jdk.GCPhasePause", "GC Phase Pause", "", inGC("Phases"),
		duration, eventThread, gcNumber, value("name", typeString, "Name")),
	event(typeHeapSummary, "jdk.GCHeapSummary", "Heap Summary", "", inGC("Heap"),
		gcNumber, ref("when", typeGCWhen, "When"), value("heapSpace", typeVirtualSpace, "Heap Space"),
		size("heapUsed", "Heap Used")),
	event(typeSafepointBegin, "jdk.SafepointBegin", "Safepoint Begin", "", inRuntime("Safepoint"),
		duration, number("safepointId", "Safepoint Identifier")),
	event(typeSafepointEnd, "jdk.SafepointEnd", "Safepoint End", "", inRuntime("Safepoint"),
		duration, number("safepointId", "Safepoint Identifier")),
	event(typeCompilerStatistics, "jdk.CompilerStatistics", "Compiler Statistics", "", inCompiler,
		count("compileCount", "Compiled Methods"), count("bailoutCount", "Bailouts"),
		count("invalidatedCount", "Invalidated Compilations"), count("osrCompileCount", "OSR Compilations"),
		count("standardCompileCount", "Standard Compilations"), size("osrBytesCompiled", "OSR Bytes Compiled"),
		size("standardBytesCompiled", "Standard Bytes Compiled"), size("nmethodsSize", "Compilation Resulting Size"),
		size("nmethodCodeSize", "Compilation Resulting Code Size"),
		fieldDef{name: "totalTimeSpent", typ: typeLong, label: "Total Time", as: milliSpan}),
	event(typeCodeCacheStatistics, "jdk.CodeCacheStatistics", "Code Cache Statistics", "", inCodeCache,
		ref("codeBlobType", typeCodeBlobType, "Code Heap"), size("unallocatedCapacity", "Unallocated"),
		count("fullCount", "Full Count")),
	event(typeClassLoadingStatistics, "jdk.ClassLoadingStatistics", "Class Loading Statistics", "",
		[]string{"Java Application", "Statistics"},
		number("loadedClassCount", "Loaded Class Count"), number("unloadedClassCount", "Unloaded Class Count")),
	event(typeGCConfiguration, "jdk.GCConfiguration", "GC Configuration", "", inGC("Configuration"),
		ref("youngCollector", typeGCName, "Young Garbage Collector"),
		ref("oldCollector", typeGCName, "Old Garbage Collector"), count("parallelGCThreads", "Parallel GC Threads"),
		count("concurrentGCThreads", "Concurrent GC Threads"),
		value("usesDynamicGCThreads", typeBoolean, "Uses Dynamic GC Threads"),
		value("isExplicitGCConcurrent", typeBoolean, "Concurrent Explicit GC"),
		value("isExplicitGCDisabled", typeBoolean, "Disabled Explicit GC")),
	event(typeHeapConfiguration, "jdk.GCHeapConfiguration", "GC Heap Configuration", "", inGC("Configuration"),
		size("maxSize", "Maximum Heap Size"), size("initialSize", "Initial Heap Size")),
	event(typeCompilerConfiguration, "jdk.CompilerConfiguration", "Compiler Configuration", "", inCompiler,
		count("threadCount", "Thread Count"), value("tieredCompilation", typeBoolean, "Tiered Compilation")),
	event(typeCodeCacheConfiguration, "jdk.CodeCacheConfiguration", "Code Cache Configuration", "", inCodeCache,
		size("reservedSize", "Reserved Size")),

	event(typeRecording, "goprof.Recording", "Recording", "How goprof made this recording", inAccount,
		value("version", typeString, "goprof Version"), value("host", typeString, "Host"),
		value("pid", typeLong, "Process Identifier"), value("mainClass", typeString, "Main Class"),
		value("jvm", typeString, "JVM"), value("collector", typeString, "Garbage Collector"),
		value("mode", typeString, "Mode"), value("engine", typeString, "Engine"), span("interval", "Interval"),
		value("weight", typeString, "Weight"), value("part", typeString, "Part")),
	event(typeAccount, "goprof.Account", "Account",
		"What became of every look at a thread: attempted = whole + truncated + lost", inAccount,
		number("attempted", "Attempted"), number("whole", "Whole"), number("truncated", "Truncated"),
		number("lost", "Lost"), number("leafLikely", "Leaf Likely"), number("leafGuessed", "Leaf Guessed"),
		number("skipped", "Moments Skipped"), number("threads", "Threads"),
		fieldDef{name: "rate", typ: typeDouble, label: "Rate Asked", as: hertz},
		fieldDef{name: "rateReached", typ: typeDouble, label: "Rate Reached", as: hertz},
		span("processTime", "CPU Time of the Process"), span("sampledTime", "CPU Time Sampled"),
		span("notSampledTime", "CPU Time Not Sampled"), span("exitedTime", "CPU Time of Threads That Ended"),
		span("ownTime", "CPU Time of goprof"), value("quality", typeString, "Quality"),
		value("part", typeString, "Part")),
	event(typeUnseen, "goprof.Unseen", "Truncated or Lost",
		"How many stacks do not reach their root, or were lost, for one reason", inAccount,
		value("lost", typeBoolean, "Lost"), value("reason", typeString, "Reason"), number("samples", "Samples"),
		value("part", typeString, "Part")),
	event(typePauses, "goprof.Pauses", "Pauses", "How long threads were held to be looked at", inAccount,
		number("count", "Pauses"), span("median", "Median"), span("p99", "99th Percentile"), span("longest", "Longest"),
		span("total", "Total"), span("bound", "Bound"), value("part", typeString, "Part")),
	event(typeNote, "goprof.Note", "Note", "What a reader of this recording should know", inAccount,
		value("name", typeString, "Name"), value("text", typeString, "Text"), value("remedy", typeString, "Remedy"),
		value("part", typeString, "Part")),
	event(typeEarlierName, "goprof.EarlierName", "Earlier Name", "A name that a thread had before", inAccount,
		value("tid", typeLong, "OS Thread Id"), value("javaThreadId", typeLong, "Java Thread Id"),
		value("name", typeString, "Name")),
	event(typeMark, "goprof.Mark", "Mark", "What another recorder knew of this time: a collection, a safepoint", inAccount,
		duration, value("kind", typeString, "Kind"), value("text", typeString, "Text")),
	// A class has no field for its source: JMC warns of fields that it does not know.
	event(typeSource, "goprof.Source", "Source", "Where a class comes from. These events come first in a chunk", inAccount,
		ref("class", typeClass, "Class"), ref("file", typeSymbol, "Source File or Image"),
		ref("build", typeSymbol, "Build Id of the Image")),
}

func (t typeID) String() string { return strconv.FormatUint(uint64(t), 10) }
