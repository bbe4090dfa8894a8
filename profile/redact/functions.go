package redact

import (
	"regexp"
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
)

// Func redacts a function with its files. The name shows which kind of code it is.
func (r *Redactor) Func(f profile.Func) profile.Func {
	out := f
	switch {
	case strings.HasPrefix(f.Name, "["):
		out.Name = r.bracket(f.Name)
		if f.Module != "" {
			out.Module = r.Path(f.Module)
		}
	case f.Module != "":
		out.Name, out.Module = r.nativeIn(f.Name, f.Module), r.Path(f.Module)
	case isJava(f.Name):
		out.Name = r.Method(f.Name)
	default:
		out.Name = r.native(f.Name)
	}
	out.File = r.Source(f.File, f.File != "" && r.isOpen(f.Name))
	if f.Build != "" && !isHex(f.Build) {
		out.Build = r.hash.of(kindNumber, f.Build)
	}
	return out
}

// isJava distinguishes a Java method from a function of C++: a method has a class before a dot.
func isJava(name string) bool {
	if strings.Contains(name, "::") || offsetOf.MatchString(name) {
		return false
	}
	stem, _, _ := strings.Cut(name, "(")
	return strings.Contains(stem, ".")
}

func isHex(text string) bool {
	return len(text) <= 128 && strings.Trim(text, "0123456789abcdefABCDEF") == ""
}

// offsetOf matches native code without a name: libc.so.6+0x12ab.
var offsetOf = regexp.MustCompile(`^([^/\s]+)(\+0x[0-9a-f]{1,16})$`)

// partOf matches what compilers and linkers add to a symbol: foo.part.0.constprop.1, foo.cold, memcpy@@GLIBC_2.14. In a
// name with a capital letter, the match may be a Java method: Foo.clone.
var partOf = regexp.MustCompile(`(?:\.(?:part|isra|constprop|cold|lto_priv|llvm|clone)\.[0-9]+)+(?:\.cold)?$|@.*$`)

var coldPart = regexp.MustCompile(`^[a-z_][a-z0-9_]*(?:\.[a-z_]+\.[0-9]+)*\.(?:cold|localalias)$`)

// maxSymbol bounds the name of an allowed library's function.
const maxSymbol = 4 << 10

func (r *Redactor) nativeIn(name, module string) string {
	if m := offsetOf.FindStringSubmatch(name); m != nil {
		return r.file(m[1]) + m[2]
	}
	if r.library(module) && len(name) <= maxSymbol && isSymbol(name) {
		// Other tools also write this for code that the JVM has generated.
		if isJava(partOf.ReplaceAllString(name, "")) && !coldPart.MatchString(name) {
			return r.Method(name)
		}
		return name
	}
	return r.part(name, kindNative, codeWords)
}

// isSymbol reports whether a name only has the characters of C++ names.
func isSymbol(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		return c >= 0x80 || !isWord(c) && !strings.ContainsRune(" .,:;<>()[]{}*&+-=!~|^%/$@#?'", c)
	})
}

// native returns a function without a library. Names in the JVM and in every C program stay.
func (r *Redactor) native(name string) string {
	if m := offsetOf.FindStringSubmatch(name); m != nil {
		return r.file(m[1]) + m[2]
	}
	return each(name, func(word string, _ int) string {
		if text, ok := r.number(word); ok {
			return text
		}
		if r.isCode(word) || jvmNames[word] {
			return word
		}
		return r.hash.of(kindNative, word)
	})
}

// isCode reports whether all parts of a word belong to stubs, the C library or the JVM: pthread_cond_wait.
func (r *Redactor) isCode(word string) bool {
	for part := range strings.SplitSeq(strings.Trim(word, "_"), "_") {
		lower := strings.ToLower(part)
		if part != "" && !r.allowed(lower, codeWords) && !r.allowed(lower, threadWords) && !r.allowed(lower,
			textWords) {
			return false
		}
	}
	return true
}

// jvmNames are names in the JVM's C++ code and its launcher. They stay if a function has no library. Other names are
// looked up part by part.
var jvmNames = setOf(`JLI_Launch JavaMain ThreadJavaMain ContinueInNewThread ContinueInNewThread0 CallJavaMainInNewThread
	JVMInit thread_native_entry java_start Thread call_run JavaThread thread_main_inner JavaCalls call_helper call_virtual
	call_static call_special os os_exception_wrapper jni_invoke_static Monitor Mutex MutexLocker ObjectMonitor
	ObjectSynchronizer Parker PlatformEvent PlatformMonitor PlatformMutex Unsafe_Park Unsafe_Unpark JVM_MonitorWait JVM_Sleep
	OptoRuntime SharedRuntime Runtime1 InterpreterRuntime SystemDictionary ClassLoader ClassFileParser SymbolTable StringTable
	InstanceKlass LinkResolver Rewriter Verifier ClassVerifier CompileBroker C2Compiler Compiler Compile Matcher LinearScan
	GraphBuilder PhaseIdealLoop PhaseIterGVN PhaseChaitin PhaseCFG PhaseCCP Parse WorkerThread WorkGang GangWorker
	G1CollectedHeap G1ParScanThreadState G1ConcurrentMark G1ConcurrentMarkThread G1ParTask G1EvacuateRegionsTask ZWorkers
	ZDriver ZRelocate ZMark ShenandoahHeap PSPromotionManager PSScavenge PSParallelCompact ParallelScavengeHeap
	MemAllocator CollectedHeap SafepointSynchronize SafepointMechanism VMThread VMOperation VM_Operation CodeCache
	Deoptimization Universe Reflection compiler_thread_loop invoke_compiler_on_method compile_method evaluate_operation`)

// bracket redacts a frame that is not code: a thread's label, a state, a reason.
func (r *Redactor) bracket(label string) string {
	if t, ok := naming.ThreadOf(label); ok {
		if t.JavaName == "" {
			return label
		}
		return "[" + r.ThreadName(t.JavaName) + label[1+len(t.JavaName):] // the name comes first
	}
	if naming.IsThreadLabel(label) { // the label of a pool: [http-* tid=*]
		inner := label[1 : len(label)-1]
		if at := max(strings.LastIndex(inner, " tid="), strings.LastIndex(inner, " virtual #")); at >= 0 {
			return "[" + r.ThreadName(inner[:at]) + inner[at:] + "]"
		}
	}
	inner, ended := strings.CutSuffix(strings.TrimPrefix(label, "["), "]")
	if !ended {
		return r.Text(label)
	}
	what, of, has := strings.Cut(inner, ": ")
	if !has {
		return "[" + r.loose(r.withoutAddresses(inner), textWords) + "]"
	}
	switch {
	case isIO(what):
		of = r.Target(of)
	case profile.IsState(label):
		of = r.Class(of)
	case what == profile.NoUnwindInfo.String():
		of = r.file(of)
	default:
		of = r.Text(of)
	}
	return "[" + r.loose(what, textWords) + ": " + of + "]"
}

func isIO(what string) bool {
	_, ok := profile.ParseIOOp(what)
	return ok
}

// ownTarget matches names in brackets that are goprof's own: [pipe]. IPv6 addresses with a port also have brackets.
var ownTarget = regexp.MustCompile(`^\[[a-z_ ]+\]$`)

// Target returns a file, a host or a peer.
func (r *Redactor) Target(name string) string {
	switch {
	case strings.HasPrefix(name, "/"):
		return r.Path(name)
	case ownTarget.MatchString(name):
		return "[" + r.loose(strings.Trim(name, "[]"), textWords) + "]"
	}
	return r.hash.of(kindWord, name)
}

// The suffixes of Java frames in collapsed files (output.Collapsed).
var javaSuffix = regexp.MustCompile(`_\[([j10ik])\]$`)

// Label redacts a frame of a collapsed file.
func (r *Redactor) Label(label string) string {
	m := javaSuffix.FindString(label)
	name := label[:len(label)-len(m)]
	switch {
	case m == "_[k]":
		return r.Native(name, "") + m
	case m != "":
		return r.Method(name) + m
	}
	return r.Func(profile.Func{Name: name}).Name + m
}
