package naming

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Plumbing is the kind of a frame that only passes a call on. The list is closed: all that goprof hides as plumbing is
// in this file.
type Plumbing uint8

const (
	NoPlumbing Plumbing = iota
	// ThreadEntry is how a thread comes to run Java, or the VM's own work: the C library, the launcher, the VM. It is
	// plumbing only at a stack's root.
	ThreadEntry
	// FutexWait is how a thread waits in the C library, and in the VM for that. It is plumbing only as a leaf.
	FutexWait
	// A run of several kinds is named after the last of these: a later kind shows more of the program's intention.
	MethodHandles
	Lambda
	Reflection
	Stream
	RubyCalls
	GroovyCalls
	// IntoVM is reflection that leaves Java to call Java from within the VM.
	IntoVM
	// VMCall is native code. It is plumbing only between reflection and the Java code that it calls.
	VMCall
	// VMEntry is where the VM calls Java.
	VMEntry
	// EntryCall is native code that may be a thread's entry. FutexCall and WaitCall are native code that may be a thread's
	// wait.
	EntryCall
	FutexCall
	WaitCall
	// Label is not code, but the thread's name at the root of a stack.
	Label
)

var plumbingNames = [...]string{
	ThreadEntry: "[thread entry]", FutexWait: "[futex wait]",
	MethodHandles: "[method handles]", Lambda: "[lambda]", Reflection: "[reflection]", Stream: "[stream]",
	RubyCalls: "[ruby calls]", GroovyCalls: "[groovy calls]",
}

// String returns the frame that replaces a run of plumbing.
func (p Plumbing) String() string {
	if int(p) < len(plumbingNames) {
		return plumbingNames[p]
	}
	return ""
}

// passes reports whether a Java frame of this kind only passes a call on.
func (p Plumbing) passes() bool { return p >= MethodHandles && p < VMCall }

// inVM reports whether a frame is native code.
func (p Plumbing) inVM() bool {
	return p == VMCall || p == EntryCall || p == FutexCall || p == WaitCall
}

// enters reports whether a thread's stack may begin with a frame of this kind.
func (p Plumbing) enters() bool { return p == EntryCall || p == VMEntry }

// IsFold reports whether a frame's name stands for a run of plumbing.
func IsFold(name string) bool {
	return slices.Contains(plumbingNames[ThreadEntry:], name)
}

// plumbing is a rule for the methods of some classes.
type plumbing struct {
	what    Plumbing
	classes *regexp.Regexp // whole names, with dots
	methods *regexp.Regexp // whole names; nil matches all
}

func rule(what Plumbing, classes, methods string) plumbing {
	p := plumbing{what: what, classes: regexp.MustCompile(`^(?:` + classes + `)$`)}
	if methods != "" {
		p.methods = regexp.MustCompile(`^(?:` + methods + `)$`)
	}
	return p
}

// plumbingRules lists all frames that are folded. It only has frames that pass calls on. Frames that do work stay:
// those that make a lambda, link a call site or generate a class. The list is made at its first use: most commands
// never need it, and its regular expressions take longer to compile than everything else at goprof's start.
var plumbingRules = sync.OnceValue(func() []plumbing {
	return []plumbing{
		rule(Lambda, `.*\$\$Lambda(?:\$[0-9]+)?(?:[+./]0x[0-9a-f]+|[./][0-9]+)?`, ""),
		rule(Lambda, `scala\.runtime\.java8\.JFunction[0-9].*`, ""),

		rule(MethodHandles, `java\.lang\.invoke\.LambdaForm\$(?:MH|DMH|BMH|NFI)(?:[+./].*)?`, ""),
		rule(MethodHandles, `java\.lang\.invoke\.(?:DirectMethodHandle|DelegatingMethodHandle|Invokers|`+
			`VarHandle)\$Holder(?:[+./].*)?`, ""),
		rule(MethodHandles, `java\.lang\.invoke\.LambdaForm(?:\$NamedFunction)?`, `interpret.*|invoke.*`),
		rule(MethodHandles, `java\.lang\.invoke\.MethodHandle`,
			`invoke|invokeExact|invokeBasic|invokeWithArguments|linkTo[A-Z][a-zA-Z]*`),
		rule(MethodHandles, `java\.lang\.invoke\.Invokers`, `check[A-Z][a-zA-Z]*|getCallSiteTarget`),
		rule(MethodHandles, `java\.lang\.invoke\.VarHandleGuards`, ""),
		rule(MethodHandles, `java\.lang\.invoke\.MethodHandleImpl`,
			`checkSpreadArgument|selectAlternative|profileBoolean|fillArray|array|loop|tryFinally|countedLoop|`+
				`whileLoop|doWhileLoop|iteratedLoop`),
		rule(MethodHandles, `jdk\.internal\.foreign\.abi\.(?:Downcall|Upcall)Stub(?:[+./].*)?`, ""),

		rule(Reflection, `java\.lang\.reflect\.Method`, `invoke`),
		rule(Reflection, `java\.lang\.reflect\.Constructor`, `newInstance(?:WithCaller)?`),
		rule(Reflection, `java\.lang\.Class`, `newInstance`),
		rule(IntoVM, `(?:sun|jdk\.internal)\.reflect\.(?:Native(?:Method|Constructor)AccessorImpl|`+
			`Direct(?:Method|Constructor)HandleAccessor\$NativeAccessor)`,
			`invoke0|newInstance0`),
		rule(Reflection, `(?:sun|jdk\.internal)\.reflect\.[A-Za-z]*(?:Method|`+
			`Constructor)(?:Handle)?Accessor[A-Za-z0-9$]*(?:[+./].*)?`,
			`invoke.*|newInstance.*`),

		// Collectors and their functions are the program's. Spliterators are the collections' part of streams.
		rule(Stream, `java\.util\.stream\.(?:Abstract|Reference|Int|Long|Double)Pipeline.*`, ""),
		rule(Stream, `java\.util\.stream\.(?:ForEach|Reduce|Match|Find|Slice|Sorted|Distinct|While)Ops.*`, ""),
		rule(Stream, `java\.util\.stream\.(?:Sink|Streams|StreamSpliterators|StreamSupport|AbstractTask|`+
			`AbstractShortCircuitTask|Nodes|SpinedBuffer).*`, ""),
		rule(Stream, `java\.util\.(?:.*\$)?[A-Za-z]*Spliterators?(?:\$.*)?`, `forEachRemaining|tryAdvance`),

		rule(GroovyCalls, `org\.codehaus\.groovy\.(?:runtime\.callsite|runtime\.metaclass|reflection|vmplugin)\..*`,
			`(?i).*(?:invoke|call|fromCache).*`),
		rule(GroovyCalls, `org\.codehaus\.groovy\.runtime\.(?:InvokerHelper|`+
			`ScriptBytecodeAdapter)`, `invoke.*|runScript`),
		rule(GroovyCalls, `org\.codehaus\.groovy\.runtime\.dgm\$[0-9]+`, ""),
		rule(GroovyCalls, `groovy\.lang\.(?:MetaClassImpl|DelegatingMetaClass|ExpandoMetaClass|MetaMethod|`+
			`GroovyObjectSupport|GroovyObject)`,
			`invoke.*|doMethodInvoke|doInvokeMethod`),
		rule(GroovyCalls, `groovy\.lang\.Closure`, `call`),

		rule(RubyCalls, `org\.jruby\.(?:runtime\.callsite|internal\.runtime\.methods|ir\.targets\.indy|`+
			`java\.invokers)\..*`,
			`(?i).*(?:call|invoke|fallback|send).*`),
		rule(RubyCalls, `org\.jruby\.runtime\.(?:Block|BlockBody|IRBlockBody|CompiledIRBlockBody|`+
			`MixedModeIRBlockBody|InterpretedIRBlockBody)`,
			`call.*|yield.*`),
		rule(RubyCalls, `org\.jruby\..*\$INVOKER\$.*`, "call"),
		rule(RubyCalls, `.*`, `invoke(?:Other|Self)[A-Za-z]*[0-9]+:.+`),
	}
})

// PlumbingOf returns the kind of plumbing of a Java method's frame. The name may be in the form of the JVM, of Method,
// or of other tools, with "/" for dots.
func PlumbingOf(name string) Plumbing {
	name = strings.ReplaceAll(name, "/", ".")
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 {
		return NoPlumbing
	}
	class, method := name[:dot], name[dot+1:]
	for _, r := range plumbingRules() {
		if r.classes.MatchString(class) && (r.methods == nil || r.methods.MatchString(method)) {
			return r.what
		}
	}
	return NoPlumbing
}
