package jfr

import "goprof/profile"

// maxCount bounds how often one CPU sample is written.
const maxCount = 1 << 16

// leafFacts are the fields of a sample's events that come from the leaf of its stack.
type leafFacts struct {
	native bool // the leaf is native code; a stub counts as Java
	sure   profile.Certainty
}

func leafOf(s *profile.Stack) (l leafFacts) {
	if s == nil || len(s.Frames) == 0 {
		return l
	}
	l.sure = min(s.Frames[0].Sure, profile.NumCertainty-1)
	switch s.Frames[0].Kind {
	case profile.Native, profile.Gap, profile.NativeMethod, profile.Kernel:
		l.native = true
	case profile.StateFrame:
		l.native = len(s.Frames) > 1 && !s.Frames[1].Kind.Java()
	}
	return l
}

// trace is a stack in the form in which a chunk's events refer to it.
type trace struct {
	key  uint64
	leaf leafFacts
}

// frameType is a key of the pool of frame types.
type frameType byte

// The numbers are async-profiler's, by which its converter chooses colours. Its Kernel would be 5, but that number is
// left out: if a file has it, the converter reads "Native" as C and hides the class of Java's native methods.
const (
	frameInterpreted frameType = 0
	frameCompiled    frameType = 1
	frameInlined     frameType = 2
	frameNative      frameType = 3 // a Java method in native code
	frameCPP         frameType = 4
	frameC1          frameType = 6
)

var frameTypeNames = []struct {
	key  frameType
	name string
}{
	{frameInterpreted, "Interpreted"}, {frameCompiled, "JIT compiled"}, {frameInlined, "Inlined"},
	{frameNative, "Native"}, {frameCPP, "C++"}, {frameC1, "C1 compiled"},
}

func frameTypeOf(k profile.Kind) frameType {
	switch k {
	case profile.Interpreted:
		return frameInterpreted
	case profile.C1:
		return frameC1
	case profile.C2:
		return frameCompiled
	case profile.Inlined:
		return frameInlined
	case profile.NativeMethod:
		return frameNative
	}
	return frameCPP
}

// stateNames are the names for profile.State's values. The first five are the JDK's own (jfrThreadState.cpp).
var stateNames = []string{
	profile.Running:  "STATE_RUNNABLE",
	profile.Blocked:  "STATE_BLOCKED_ON_MONITOR_ENTER",
	profile.Parked:   "STATE_PARKED",
	profile.Sleeping: "STATE_SLEEPING",
	profile.Waiting:  "STATE_IN_OBJECT_WAIT",
	profile.Runnable: "STATE_WAITING_FOR_CPU",
	profile.Socket:   "STATE_SOCKET",
	profile.File:     "STATE_FILE",
	profile.InVM:     "STATE_IN_VM",
	profile.InNative: "STATE_IN_NATIVE",
	profile.Stopped:  "STATE_STOPPED",
}
