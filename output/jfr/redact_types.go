package jfr

import "strings"

// keptTypePrefixes are the packages of types that are not events and stay: the JDK's, async-profiler's and goprof's.
var keptTypePrefixes = []string{"java.lang.", "jdk.types.", "jdk.jfr.", "jdk.settings.", "profiler.types.", "goprof."}

// keptEvents are the events that stay: those of the JDK, of async-profiler and of goprof that are listed here. All
// others are dropped: those with system properties, the environment, other processes, thread dumps, flags with texts,
// files of libraries, and all events of applications.
var keptEvents = listOf(`
	goprof.Recording goprof.Account goprof.Unseen goprof.Pauses goprof.Note goprof.Source goprof.Mark goprof.SampleDetail
	goprof.EventKind goprof.EventCount goprof.EarlierName goprof.IOCall goprof.IOSum
	goprof.event.thread_start goprof.event.gc_request goprof.event.safepoint
	goprof.event.deopt goprof.event.compile goprof.event.malloc goprof.event.malloc_leak
	goprof.event.mmap_leak goprof.event.mmap
	goprof.event.page_faults goprof.event.major_faults goprof.event.context_switches goprof.event.cpu_migrations
	goprof.event.cycles goprof.event.instructions goprof.event.cache_misses goprof.event.branch_misses
	goprof.event.wall goprof.event.off_cpu goprof.event.lock goprof.event.ttsp goprof.event.park goprof.event.native
	profiler.WallClockSample profiler.Malloc profiler.Free profiler.LiveObject profiler.Window profiler.MethodTrace
	profiler.CPUTimeSample jdk.ExecutionSample jdk.NativeMethodSample jdk.CPUTimeSample jdk.CPUTimeSamplesLost
	jdk.ObjectAllocationSample jdk.ObjectAllocationInNewTLAB jdk.ObjectAllocationOutsideTLAB jdk.ObjectCount
	jdk.ObjectCountAfterGC jdk.OldObjectSample jdk.AllocationRequiringGC
	jdk.JavaMonitorEnter jdk.JavaMonitorWait jdk.JavaMonitorNotify jdk.JavaMonitorInflate jdk.JavaMonitorDeflate
	jdk.JavaMonitorStatistics jdk.ThreadPark jdk.ThreadSleep jdk.ThreadStart jdk.ThreadEnd jdk.ThreadAllocationStatistics
	jdk.ThreadCPULoad jdk.ThreadContextSwitchRate jdk.VirtualThreadStart jdk.VirtualThreadEnd jdk.VirtualThreadPinned
	jdk.VirtualThreadSubmitFailed jdk.JavaThreadStatistics jdk.SyncOnValueBasedClass jdk.BiasedLockRevocation
	jdk.BiasedLockClassRevocation jdk.BiasedLockSelfRevocation jdk.ContinuationFreeze jdk.ContinuationThaw
	jdk.FileRead jdk.FileWrite jdk.FileForce jdk.SocketRead jdk.SocketWrite jdk.SocketConnect
	jdk.JavaExceptionThrow jdk.JavaErrorThrow jdk.ExceptionStatistics jdk.ClassLoad jdk.ClassDefine jdk.ClassUnload
	jdk.ClassLoadingStatistics jdk.ClassLoaderStatistics jdk.Deoptimization jdk.Compilation jdk.CompilerPhase
	jdk.CompilerInlining jdk.CompilerStatistics jdk.CompilerConfiguration jdk.CompilerQueueUtilization jdk.JITRestart
	jdk.CodeCacheStatistics jdk.CodeCacheConfiguration jdk.CodeCacheFull jdk.SweepCodeCache jdk.CodeSweeperStatistics
	jdk.GarbageCollection jdk.YoungGarbageCollection jdk.OldGarbageCollection jdk.G1GarbageCollection
	jdk.ParallelOldGarbageCollection jdk.ZYoungGarbageCollection jdk.ZOldGarbageCollection jdk.SystemGC
	jdk.GCPhasePause jdk.GCPhasePauseLevel1 jdk.GCPhasePauseLevel2 jdk.GCPhasePauseLevel3 jdk.GCPhasePauseLevel4
	jdk.GCPhaseConcurrent jdk.GCPhaseConcurrentLevel1 jdk.GCPhaseConcurrentLevel2 jdk.GCPhaseParallel jdk.GCCPUTime
	jdk.GCHeapSummary jdk.GCHeapMemoryUsage jdk.GCHeapMemoryPoolUsage jdk.MetaspaceSummary jdk.MetaspaceGCThreshold
	jdk.MetaspaceChunkFreeListSummary jdk.MetaspaceAllocationFailure jdk.MetaspaceOOM jdk.PSHeapSummary
	jdk.G1HeapSummary jdk.G1EvacuationYoungStatistics jdk.G1EvacuationOldStatistics jdk.G1BasicIHOP jdk.G1AdaptiveIHOP
	jdk.G1MMU jdk.G1HeapRegionTypeChange jdk.G1HeapRegionInformation jdk.EvacuationInformation jdk.EvacuationFailed
	jdk.PromotionFailed jdk.ConcurrentModeFailure jdk.PromoteObjectInNewPLAB jdk.PromoteObjectOutsidePLAB
	jdk.TenuringDistribution jdk.GCReferenceStatistics jdk.ReferenceStatistics jdk.GCConfiguration
	jdk.GCHeapConfiguration jdk.GCSurvivorConfiguration jdk.GCTLABConfiguration jdk.YoungGenerationConfiguration
	jdk.ZAllocationStall jdk.ZPageAllocation jdk.ZRelocationSet jdk.ZRelocationSetGroup jdk.ZStatisticsCounter
	jdk.ZStatisticsSampler jdk.ZThreadPhase jdk.ZUncommit jdk.ZUnmap jdk.ShenandoahHeapRegionInformation
	jdk.ShenandoahHeapRegionStateChange jdk.ShenandoahEvacuationInformation
	jdk.SafepointBegin jdk.SafepointEnd jdk.SafepointStateSynchronization jdk.SafepointWaitBlocked jdk.SafepointCleanup
	jdk.SafepointCleanupTask jdk.SafepointLatency jdk.ExecuteVMOperation jdk.FinalizerStatistics
	jdk.CPULoad jdk.CPUInformation jdk.CPUTimeStampCounter jdk.PhysicalMemory jdk.SwapSpace jdk.ResidentSetSize
	jdk.NativeMemoryUsage jdk.NativeMemoryUsageTotal jdk.DirectBufferStatistics jdk.NetworkUtilization
	jdk.ContainerConfiguration jdk.ContainerCPUUsage jdk.ContainerCPUThrottling jdk.ContainerMemoryUsage
	jdk.ContainerIOUsage jdk.StringTableStatistics jdk.SymbolTableStatistics jdk.PlaceholderTableStatistics
	jdk.LoaderConstraintsTableStatistics jdk.ProtectionDomainCacheTableStatistics
	jdk.JVMInformation jdk.OSInformation jdk.ActiveRecording jdk.ActiveSetting jdk.DataLoss jdk.Flush jdk.HeapDump
	jdk.BooleanFlag jdk.IntFlag jdk.UnsignedIntFlag jdk.LongFlag jdk.UnsignedLongFlag jdk.DoubleFlag
	jdk.BooleanFlagChanged jdk.IntFlagChanged jdk.UnsignedIntFlagChanged jdk.LongFlagChanged
	jdk.UnsignedLongFlagChanged jdk.DoubleFlagChanged jdk.MethodTrace jdk.MethodTiming`)

// meaning is the meaning of a text in a recording. It decides how the text is redacted.
type meaning uint8

const (
	secretText meaning = iota // unknown, so it is emptied
	vmText                    // a word of the JVM or of goprof
	threadText
	pathText
	targetText // a path, or a peer
	versionText
	programText
	sentence
	hostText
	settingText
	classText
	methodNameText
	descriptorText
	packageText
	moduleText
	locationText
	loaderText
	sourceText
	buildText
	eventTypeText // the type of an event: a kept name, or nothing
)

// textFields are the meanings of the texts of events and constants, by "type.field". Texts that are not listed here are
// emptied.
var textFields = map[string]meaning{
	"goprof.Recording.version": versionText, "goprof.Recording.host": hostText,
	"goprof.Recording.mainClass": programText,
	"goprof.Recording.jvm":       versionText, "goprof.Recording.collector": sentence, "goprof.Recording.mode": sentence,
	"goprof.Recording.engine": sentence, "goprof.Recording.weight": sentence, "goprof.Account.quality": sentence,
	"goprof.Recording.part": sentence, "goprof.Account.part": sentence,
	"goprof.Unseen.part": sentence, "goprof.Pauses.part": sentence, "goprof.Note.part": sentence,
	"goprof.Unseen.reason": sentence, "goprof.Note.name": sentence, "goprof.Note.text": sentence,
	"goprof.Note.remedy":     sentence,
	"goprof.EventKind.event": sentence, "goprof.EventKind.type": eventTypeText, "goprof.EventKind.unit": sentence,
	"goprof.EventCount.event": sentence, "goprof.EventCount.unit": sentence,
	"goprof.IOCall.operation": vmText, "goprof.IOSum.operation": vmText, "goprof.IOSum.kind": vmText,
	"goprof.IOCall.target": targetText, "goprof.IOSum.target": targetText,
	"goprof.Mark.kind": sentence, "goprof.Mark.text": sentence, "goprof.EarlierName.name": threadText,
	"goprof.Source.file":  sourceText,
	"goprof.Source.build": buildText,

	"jdk.JVMInformation.jvmName": versionText, "jdk.JVMInformation.jvmVersion": versionText,
	"jdk.JVMInformation.javaArguments": programText, "jdk.CPUInformation.cpu": versionText,
	"jdk.ActiveSetting.name": settingText, "jdk.ActiveSetting.value": settingText,
	"jdk.FileRead.path": pathText, "jdk.FileWrite.path": pathText, "jdk.FileForce.path": pathText,
	"jdk.GCPhasePause.name": vmText, "jdk.GCPhasePauseLevel1.name": vmText, "jdk.GCPhasePauseLevel2.name": vmText,
	"jdk.GCPhasePauseLevel3.name": vmText, "jdk.GCPhasePauseLevel4.name": vmText, "jdk.GCPhaseConcurrent.name": vmText,
	"jdk.GCPhaseConcurrentLevel1.name": vmText, "jdk.GCPhaseConcurrentLevel2.name": vmText,
	"jdk.GCPhaseParallel.name": vmText, "jdk.SafepointCleanupTask.name": vmText, "jdk.GarbageCollection.cause": vmText,
	"jdk.ActiveRecording.maxAge": vmText, "jdk.NativeMemoryUsage.type": vmText, "jdk.Deoptimization.reason": vmText,
	"jdk.BooleanFlag.name": vmText, "jdk.IntFlag.name": vmText, "jdk.UnsignedIntFlag.name": vmText,
	"jdk.LongFlag.name": vmText, "jdk.UnsignedLongFlag.name": vmText, "jdk.DoubleFlag.name": vmText,
	"jdk.BooleanFlagChanged.name": vmText, "jdk.IntFlagChanged.name": vmText, "jdk.UnsignedIntFlagChanged.name": vmText,
	"jdk.LongFlagChanged.name": vmText, "jdk.UnsignedLongFlagChanged.name": vmText,
	"jdk.DoubleFlagChanged.name":               vmText,
	"jdk.ContainerConfiguration.containerType": vmText, "jdk.SafepointLatency.threadState": vmText,

	"java.lang.Thread.osName": threadText, "java.lang.Thread.javaName": threadText,
	"jdk.types.ThreadGroup.name": threadText,
	"java.lang.Class.name":       classText, "jdk.types.Method.name": methodNameText,
	"jdk.types.Method.descriptor": descriptorText,
	"jdk.types.Package.name":      packageText,
	"jdk.types.Module.name":       moduleText, "jdk.types.Module.version": versionText,
	"jdk.types.Module.location": locationText, "jdk.types.ClassLoader.name": loaderText,

	// This event has method names as texts, not references.
	"jdk.types.CalleeMethod.type": classText, "jdk.types.CalleeMethod.descriptor": descriptorText,
}

// vmPools are types with one text each, which only the JVM, async-profiler or goprof makes.
var vmPools = listOf(`jdk.types.FrameType jdk.types.ThreadState jdk.types.GCName jdk.types.GCCause jdk.types.GCWhen
	jdk.types.VMOperationType jdk.types.CompilerPhaseType jdk.types.CodeBlobType jdk.types.InflateCause
	jdk.types.MetadataType jdk.types.MetaspaceObjectType jdk.types.ReferenceType jdk.types.G1HeapRegionType
	jdk.types.G1YCType jdk.types.NarrowOopMode jdk.types.FlagValueOrigin jdk.types.CompilerType
	jdk.types.OldObjectRootSystem jdk.types.OldObjectRootType jdk.types.ZStatisticsCounterType
	jdk.types.ZStatisticsSamplerType jdk.types.ZPageTypeType jdk.types.ShenandoahHeapRegionState
	jdk.types.DeoptimizationReason jdk.types.DeoptimizationAction jdk.types.Bytecode jdk.types.NMTType
	goprof.types.Certainty goprof.Certainty profiler.types.LogLevel`)

func listOf(words string) map[string]bool {
	list := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		list[word] = true
	}
	return list
}
