package hserr

import (
	"fmt"
	"regexp"
	"strings"

	"goprof/profile"
)

// Judge explains a crash file: the likeliest cause first, then the state of memory.
func Judge(r *Report) *profile.Triage {
	t := &profile.Triage{Findings: []profile.Finding{}, Notes: []string{}, Unknown: []profile.Unknown{}}
	if f := cause(r); f != nil {
		f.Severity = profile.Critical
		f.Evidence = append(f.Evidence, r.evidence()...)
		t.Findings = append(t.Findings, *f)
	}
	if f := container(r); f != nil {
		t.Findings = append(t.Findings, *f)
	}
	t.Notes = r.notes()
	if !r.Whole {
		t.Notes = append(t.Notes, "the file is cut off: what would stand behind its end is not known")
	}
	return t
}

// cause applies the first rule that holds. The surest rules come first.
func cause(r *Report) *profile.Finding {
	for _, rule := range []func(*Report) *profile.Finding{memory, onOOM, sent, stackOverflow, bus, compiler, unsafe,
		collector,
		compiled, native, vm} {
		if f := rule(r); f != nil {
			return f
		}
	}
	return nil
}

func bytesText(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// memory finds that the system gave the JVM no memory. The Java heap need not be full for that.
func memory(r *Report) *profile.Finding {
	if !r.NoMemory && !strings.HasPrefix(r.Internal, "Out of Memory Error") {
		return nil
	}
	f := &profile.Finding{ID: profile.NativeMemory,
		Claim: "The system gave the JVM no more memory outside the Java heap, and the JVM cannot go on without.",
		Next:  "a smaller -Xmx, or more memory for the machine or container; goprof triage PID  (in the next run)"}
	if r.Wanted > 0 {
		f.Evidence = append(f.Evidence, "it wanted "+bytesText(r.Wanted)+" and did not get them")
	}
	free, known := r.Memory["MemAvailable"]
	commit, used := r.Memory["CommitLimit"], r.Memory["Committed_AS"]
	switch {
	case strings.Contains(r.Limits, "AS ") && !strings.Contains(r.Limits, "AS infinity"):
		f.Claim = "The process had used up the address space that its limit (ulimit -v) leaves it."
		f.Evidence = append(f.Evidence, r.Limits)
		f.Next = "ulimit -v unlimited, before the JVM is started"
	case known && r.Wanted > 0 && free < r.Wanted:
		f.Claim = "The machine had no memory left: the JVM got none outside its heap, and cannot go on."
		f.Evidence = append(f.Evidence, "the machine had "+bytesText(free)+" available")
	case commit > 0 && used+r.Wanted > commit && r.Wanted > 0:
		f.Evidence = append(f.Evidence, fmt.Sprintf("all processes had been promised %s of the %s that the kernel "+
			"may promise "+
			"(which counts where vm.overcommit_memory is 2)", bytesText(used), bytesText(commit)))
		f.Next = "cat /proc/sys/vm/overcommit_memory"
	case known && free > 4*r.Wanted:
		f.Evidence = append(f.Evidence, "the machine had "+bytesText(free)+" available: a limit of the container, "+
			"of processes "+
			"and threads (ulimit -u), or of mappings (vm.max_map_count) is likelier")
		f.Next = "cat /proc/PID/limits, memory.max and pids.max of the container, sysctl vm.max_map_count"
	}
	if r.Message != "" {
		f.Evidence = append(f.Evidence, r.Message)
	}
	return f
}

// onOOM finds that the heap was full and that a flag of the JVM turned the error into a crash.
func onOOM(r *Report) *profile.Finding {
	if !strings.Contains(r.Message, "OutOfMemory encountered") {
		return nil
	}
	return &profile.Finding{ID: profile.CrashOnOOM,
		Claim: "The program ran out of memory (OutOfMemoryError), and -XX:+CrashOnOutOfMemoryError ends the JVM " +
			"then. Nothing crashed.",
		Evidence: []string{r.Message},
		Next:     "-XX:+HeapDumpOnOutOfMemoryError, and look into the heap dump; or a larger -Xmx"}
}

// sent finds that a process sent the signal.
func sent(r *Report) *profile.Finding {
	switch r.SigCode {
	case "SI_USER", "SI_TKILL", "SI_QUEUE":
	default:
		return nil
	}
	f := &profile.Finding{ID: profile.SignalSent,
		Claim: fmt.Sprintf("A process sent %s to the JVM: no instruction of the JVM failed. A watchdog does that to a "+
			"JVM that does not answer.", r.Signal),
		Evidence: []string{"si_code is " + r.SigCode + ": sent by kill, not raised by an instruction"},
		Next:     "look for who sends it: a watchdog, a health check, kill -3 mistyped"}
	if r.SentBy > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("the sender was process %d", r.SentBy))
		f.Next = fmt.Sprintf("ps -p %d, or the audit log, if that process is there still", r.SentBy)
	}
	return f
}

// guardZone is the largest distance from the end of a stack at which an access counts as a stack overflow. The JVM's
// own guard zones have 80 KiB, with pages of 64 KiB 192, and frames of libraries may reach further.
const guardZone = 256 << 10

func stackOverflow(r *Report) *profile.Finding {
	low := r.Stack[0]
	near := func(a uint64) bool { return low > 0 && a+guardZone > low && a < low+guardZone }
	if !r.Overflow && !(r.HasAddr && r.Signal == "SIGSEGV" && near(r.Addr) && near(r.SP)) {
		return nil
	}
	f := &profile.Finding{ID: profile.StackOverflow,
		Claim: "A thread ran out of its stack where the JVM cannot make a StackOverflowError of that: in native " +
			"code, or within itself.",
		Next: "-Xss2m, or Thread's stackSize for that thread; and look for a recursion in the frames"}
	if low > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("the stack ends at 0x%x, the access was at 0x%x, and sp was 0x%x",
			low, r.Addr, r.SP))
	}
	return f
}

func bus(r *Report) *profile.Finding {
	if r.Signal != "SIGBUS" {
		return nil
	}
	f := &profile.Finding{ID: profile.BusError, Claim: "The JVM read or wrote a mapped file where the file has no " +
		"page any more, or could not be given one.",
		Next: "df /tmp /dev/shm; and look for what truncates or replaces files that are in use"}
	switch r.SigCode {
	case "BUS_ADRERR":
		f.Evidence = append(f.Evidence, "si_code is BUS_ADRERR: beyond the end of a mapped file (it was made "+
			"shorter), or the disk of a "+
			"file in /tmp, /dev/shm (hsperfdata, a shared heap) was full")
	case "BUS_ADRALN":
		f.Claim = "An instruction accessed memory at an address that is not aligned as the CPU wants it."
		f.Next = "look at the native library of the problematic frame"
	case "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO":
		f.Claim = "The memory itself, or the disk behind it, failed."
		f.Next = "dmesg; test the machine's memory"
	}
	if strings.Contains(r.Frame.Text, "PerfLongVariant::sample") || strings.Contains(r.Frame.Text, "StatSampler") {
		f.Evidence = append(f.Evidence, "the JVM wrote its counters (hsperfdata in /tmp): -XX:-UsePerfData keeps "+
			"it from that")
	}
	return f
}

// methodOf finds a method in a line of a compile task or a frame: com.example.Shop::pay, com.example.Shop.pay(I)V.
var methodOf = regexp.MustCompile(`([\w$]+(?:[./][\w$]+)*)(?:::|\.)([\w$<>]+)(?:\(|\s|$)`)

// exclude returns the flag that excludes the method in a text from compilation.
func exclude(text string) string {
	m := methodOf.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return "-XX:CompileCommand=exclude," + strings.ReplaceAll(m[1], "/", ".") + "::" + m[2]
}

func compiler(r *Report) *profile.Finding {
	if r.Task == "" && !strings.Contains(r.Thread, "CompilerThread") {
		return nil
	}
	f := &profile.Finding{ID: profile.CompilerCrash, Claim: "The JVM's compiler crashed while it compiled a " +
		"method. The program's own code did nothing wrong.",
		Next: "a newer update of the JDK"}
	if r.Task != "" {
		f.Evidence = append(f.Evidence, "it compiled "+r.Task)
		if flag := exclude(taskMethod(r.Task)); flag != "" {
			f.Next = flag + " until a newer update of the JDK is there"
		}
	}
	return f
}

// taskMethod returns the method of a compile task: "C2: 123 45 % 4 com.example.Shop::pay @ 12 (34 bytes)".
func taskMethod(task string) string {
	for word := range strings.FieldsSeq(task) {
		if strings.Contains(word, "::") {
			return word
		}
	}
	return ""
}

// unsafeNear is the number of top frames that are searched for a call of Unsafe.
const unsafeNear = 6

func unsafe(r *Report) *profile.Finding {
	stack := r.Frames
	if len(stack) == 0 {
		stack = r.Java
	}
	at := -1
	for i := range stack[:min(len(stack), unsafeNear)] {
		if isUnsafe(stack[i].Text) {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	f := &profile.Finding{ID: profile.UnsafeAccess,
		Claim: "Java code accessed memory through Unsafe (or a direct buffer, or foreign memory) at an address " +
			"where there is none, or that was freed.",
		Next: "look at who frees what that code uses; libraries with off-heap memory have switches to check their " +
			"accesses"}
	for _, frame := range stack[at+1:] {
		if (frame.Kind == 'j' || frame.Kind == 'J') && !isUnsafe(frame.Text) &&
			!strings.HasPrefix(frame.Text, "java.lang.invoke.") { // a frame of a method handle
			f.Evidence = append(f.Evidence, "Unsafe was called by "+frame.Text)
			break
		}
	}
	return f
}

func isUnsafe(text string) bool {
	return strings.Contains(text, "misc.Unsafe.") || strings.Contains(text, "  Unsafe_") || strings.Contains(text,
		"] Unsafe_") ||
		strings.Contains(text, "ScopedMemoryAccess.")
}

// collectors matches the line of a thread that belongs to a garbage collector.
var collectors = regexp.MustCompile(`GCTaskThread|ConcurrentGCThread|GC Thread|G1 (?:Conc|Refine|Main|Service|Young)|ZWorker|ZDriver|` +
	`Shenandoah|CMS |WorkerThread|GangWorker|ConcurrentMark|G1ConcurrentRefine`)

func collector(r *Report) *profile.Finding {
	if !collectors.MatchString(r.Thread) {
		return nil
	}
	return &profile.Finding{ID: profile.CollectorCrash,
		Claim: "A thread of the garbage collector crashed. The collector found an object that is none: mostly " +
			"something else has written " +
			"over the heap before (native code, Unsafe, failing memory), seldom the collector is wrong.",
		Next: "-Xcheck:jni, and -XX:+UnlockDiagnosticVMOptions -XX:+VerifyBeforeGC for a run; test the machine's " +
			"memory"}
}

func compiled(r *Report) *profile.Finding {
	if r.Frame.Kind != 'J' {
		return nil
	}
	f := &profile.Finding{ID: profile.CompiledCrash,
		Claim: "Code that the JVM compiled of a Java method crashed: the compiler was wrong, or the heap was " +
			"damaged before.",
		Evidence: []string{"the method is " + r.Frame.Text}, Next: "a newer update of the JDK"}
	if flag := exclude(r.Frame.Text); flag != "" {
		f.Next = flag + ": if that helps, it was the compiler"
	}
	return f
}

// systemLibraries matches libraries that mostly crash because of wrong arguments.
var systemLibraries = regexp.MustCompile(`^\[(?:libc[.-]|libpthread|libstdc\+\+|libm[.-]|ld-|libgcc_s|linux-vdso|libdl|librt|libjvm)`)

func native(r *Report) *profile.Finding {
	if r.Frame.Kind != 'C' {
		return nil
	}
	frame := r.Frame
	for _, f := range r.Frames {
		if f.Kind != 'C' {
			break
		}
		if !systemLibraries.MatchString(f.Text) {
			frame = f
			break
		}
	}
	f := &profile.Finding{ID: profile.NativeCrash, Evidence: []string{"the frame is " + frame.Text},
		Claim: "Native code crashed, outside the JVM.",
		Next:  "-Xcheck:jni for a run; ask whoever makes that library, with its version"}
	if systemLibraries.MatchString(frame.Text) {
		f.Claim = "The C library crashed with what it was given: native code has passed on a wrong pointer, or " +
			"damaged its memory before."
	}
	for _, j := range r.Frames {
		if j.Kind == 'j' || j.Kind == 'J' {
			f.Evidence = append(f.Evidence, "it was called by "+j.Text)
			break
		}
	}
	return f
}

func vm(r *Report) *profile.Finding {
	f := &profile.Finding{ID: profile.JVMCrash, Claim: "The JVM itself crashed: it is wrong, or its memory was " +
		"damaged before.",
		Next: "a newer update of the JDK; search its bugs for the problematic frame; -Xcheck:jni if there is " +
			"native code"}
	switch {
	case r.Internal != "":
		f.Claim = "The JVM found itself in a state that must not be, and ended."
		f.Evidence = append(f.Evidence, strings.TrimSpace(r.Internal+" "+r.Message))
	case r.Signal == "SIGILL":
		f.Claim = "The CPU does not know an instruction that the JVM, or a library, used."
		f.Next = "was the machine moved to another CPU while it ran? -XX:UseAVX=0 for a run"
	case r.HasAddr && r.Addr < 4<<10:
		f.Evidence = append(f.Evidence, "it followed a null pointer")
	case r.Signal == "" && r.Frame.Text == "":
		return nil
	}
	return f
}

// nearlyFull is the used part of its memory limit from which on a container is reported.
const nearlyFull = 0.95

func container(r *Report) *profile.Finding {
	limit, used := number(r.Cgroup["memory_limit"], r.Cgroup["memory_limit_in_bytes"]),
		number(r.Cgroup["memory_usage"], r.Cgroup["memory_usage_in_bytes"])
	if limit == 0 || used == 0 || float64(used) < nearlyFull*float64(limit) {
		return nil
	}
	return &profile.Finding{ID: profile.ContainerLimit, Severity: profile.Warning,
		Claim:    fmt.Sprintf("The container had used %s of the %s that it may.", bytesText(used), bytesText(limit)),
		Evidence: []string{"memory, by the file's container information"},
		Next:     "a higher limit, or a smaller -Xmx (-XX:MaxRAMPercentage)"}
}
