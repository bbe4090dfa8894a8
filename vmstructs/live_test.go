//go:build linux

package vmstructs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/process"
	"goprof/testdata/jvmtest"
)

func TestLiveVersionAndFlags(t *testing.T) {
	eachLive(t, []string{"-Xmx128m", "-XX:+UseParallelGC", "-Dx=\u00e9"}, func(t *testing.T, v *live) {
		vm := v.vm
		// In JDK 8, Release is HotSpot's version. The JDK's own number is only in Info.
		if got := vm.Version(); got.Major != v.jdk.Version || !strings.Contains(got.Release+" "+got.Info, v.jdk.Release) ||
			!strings.Contains(got.Info, "linux") {
			t.Errorf("%+v, want %s", got, v.jdk.Release)
		}
		if missing := vm.Missing(); len(missing) != 0 {
			t.Errorf("missing: %q", missing)
		}
		if vm.Collector() != "Parallel" || vm.JavaCommand() != "Sample 1500" {
			t.Errorf("%s %s", vm.Collector(), vm.JavaCommand())
		}
		if args := vm.JVMArgs(); len(args) != 3 || args[0] != "-Xmx128m" || !strings.HasPrefix(args[2], "-Dx=") {
			t.Errorf("%q", args)
		}
		// The JVM prints its flags, one in each line.
		row := regexp.MustCompile(`^\s*(\w+)\s+(\w+)\s+=\s*(.*?)\s*\{`)
		n := 0
		for _, line := range strings.Split(v.jcmd(t, "VM.flags", "-all"), "\n") {
			m := row.FindStringSubmatch(line)
			if m == nil || m[1] == "double" {
				continue
			}
			n++
			got, ok := vm.Flag(m[2])
			if !ok || got.String() != m[3] {
				t.Errorf("flag %s %s is %q %v, want %q", m[1], m[2], got.String(), ok, m[3])
			}
		}
		if n < 300 {
			t.Errorf("only %d flags compared", n)
		}
		name, value := "CompileThresholdScaling", 1.0
		if v.jdk.Version == 8 {
			name, value = "CMSSmallCoalSurplusPercent", 1.05
		}
		if f, ok := vm.Flag(name); !ok || f.Kind != DoubleFlag || f.Double != value {
			t.Errorf("%s: %+v", name, f)
		}
		if _, ok := vm.Flag("NoSuchFlag"); ok {
			t.Error("a flag that does not exist")
		}
	})
}

func TestLiveCollectors(t *testing.T) {
	for _, c := range []struct{ name, heap, flag string }{
		{"G1", "-Xmx128m", "-XX:+UseG1GC"},
		{"Serial", "-Xmx128m", "-XX:+UseSerialGC"},
		{"Shenandoah", "-Xmx128m", "-XX:+UseShenandoahGC"},
		{"ZGC", "-Xmx3g", "-XX:+UseZGC"}, // with such a large heap it need not collect
		{"G1", "-Xmx128m", "-XX:-UseCompressedOops -XX:+UseG1GC"},
		{"Parallel", "-Xmx128m", "-XX:+UseCompactObjectHeaders -XX:+UseParallelGC"},
		{"Serial", "-Xmx128m", "-XX:-UseCompressedClassPointers -XX:+UseSerialGC"},
	} {
		t.Run(c.flag, func(t *testing.T) {
			flags := append([]string{c.heap, "-XX:+UnlockExperimentalVMOptions", "-XX:+UnlockDiagnosticVMOptions",
				"-XX:-ZProactive", "-XX:+IgnoreUnrecognizedVMOptions"}, strings.Fields(c.flag)...)
			someLive(t, jvmtest.ForDrawnJDK, flags, func(t *testing.T, v *live) {
				if _, has := v.vm.Flag("Use" + strings.TrimSuffix(c.name, "GC") + "GC"); !has {
					t.Skipf("%v has no %s", v.jdk, c.name)
				}
				if got := v.vm.Collector(); got != c.name {
					t.Errorf("%s, want %s", got, c.name)
				}
				checkThreads(t, v)
			})
		})
	}
}

// TestLiveNamesWhileObjectsMove: while ZGC works, a name may be unreadable, but is never wrong.
func TestLiveNamesWhileObjectsMove(t *testing.T) {
	flags := []string{"-Xmx64m", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"}
	eachLive(t, flags, func(t *testing.T, v *live) {
		if v.vm.Collector() != "ZGC" {
			t.Skipf("%v has no ZGC", v.jdk)
		}
		read, moved := 0, 0
		names := map[uint64]string{}
		for range 20 {
			threads, err := v.vm.Threads()
			if err != nil {
				t.Fatal(err)
			}
			for _, th := range threads {
				name, err := v.vm.ThreadName(th)
				switch {
				case errors.Is(err, ErrMoved):
					moved++
				case err != nil:
					t.Errorf("%+v: %v", th, err)
				case names[th.Addr] != "" && names[th.Addr] != name:
					t.Errorf("%q is also %q", name, names[th.Addr])
				default:
					names[th.Addr] = name
					read++
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("%d names read, %d not readable then: %q", read, moved, slices.Sorted(maps.Values(names)))
	})
}

// checkThreads compares the threads of Sample with the program's real threads.
func checkThreads(t *testing.T, v *live) {
	t.Helper()
	threads, err := v.vm.Threads()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"main": "SLEEPING", "worker": "RUNNABLE", "\u00e9t\u00e9-\u65e5\u672c": "SLEEPING", "caf\u00e9": "PARKED",
		"emoji-\U0001F600": "SLEEPING", strings.Repeat("long-", 300): "SLEEPING", "blocked": "BLOCKED", "waiting": "WAITING",
	}
	compilers := 0
	for _, th := range threads {
		_, gone := os.Stat(fmt.Sprintf("/proc/%d/task/%d", v.pid, th.NSTID))
		name, err := v.name(th)
		if err = errors.Join(err, gone); err != nil {
			if _, there := v.again(t, th); there { // a compiler's thread ends when it has no work
				t.Errorf("%+v: %v", th, err)
			}
			continue
		}
		if th.Compiler != strings.Contains(name, "CompilerThread") {
			t.Errorf("%q is a compiler thread: %v", name, th.Compiler)
		}
		if th.Compiler {
			compilers++
		}
		if th.StackSize == 0 || th.StackBase < th.StackSize {
			t.Errorf("%q has a stack of %#x below %#x", name, th.StackSize, th.StackBase)
		}
		status, ok := want[name]
		if !ok {
			continue
		}
		delete(want, name)
		got, err := v.vm.ThreadStatus(th)
		for end := time.Now().Add(hangs); time.Now().Before(end); {
			if got == status && (name == "worker" || th.State == StateBlocked) {
				break
			}
			time.Sleep(10 * time.Millisecond) // main has just printed that it is ready
			if th, ok = v.again(t, th); !ok {
				t.Fatalf("%q has ended", name)
			}
			got, err = v.vm.ThreadStatus(th)
		}
		if err != nil || got != status {
			t.Errorf("%q is %s %v, want %s", name, got, err, status)
		}
		if name == "worker" {
			continue
		}
		a, ok := v.vm.AnchorIn(sideOf(v.vm, th.Addr))
		if !ok || th.State != StateBlocked || a.SP <= th.StackBase-th.StackSize || a.SP >= th.StackBase ||
			!v.vm.InCode(a.PC) {
			t.Errorf("%q is %s at %+v %v", name, th.State, a, ok)
		}
	}
	if len(want) > 0 || compilers == 0 {
		t.Errorf("not seen: %q; %d compiler threads", slices.Sorted(maps.Keys(want)), compilers)
	}
}

// hangs bounds the wait for an event that must happen, however little CPU time the JVM gets.
const hangs = time.Minute

// again reads one thread again, and reports whether the thread still exists.
func (v *live) again(t *testing.T, th Thread) (Thread, bool) {
	t.Helper()
	threads, err := v.vm.Threads()
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range threads {
		if other.Addr == th.Addr && other.NSTID == th.NSTID {
			return other, true
		}
	}
	return th, false
}

// name tries again until the collector permits reading the name.
func (v *live) name(th Thread) (string, error) {
	for end := time.Now().Add(hangs); ; time.Sleep(10 * time.Millisecond) {
		name, err := v.vm.ThreadName(th)
		if !errors.Is(err, ErrMoved) || time.Now().After(end) {
			return name, err
		}
	}
}

// awaitCode waits until C2 has compiled the program's innermost loop, and the JVM has compiled an endless loop.
func (v *live) awaitCode(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(hangs); ; time.Sleep(50 * time.Millisecond) {
		hot, osr := false, false
		err := v.vm.eachBlock(func(h *codeHeap, blk block) error {
			if b, err := v.vm.blobAt(h, blk.addr); err == nil && b.Kind == Nmethod {
				hot = hot || b.Level == 4 && b.Method.Full() == "Sample.hot"
				osr = osr || b.OSR
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if hot && osr {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not compiled: Sample.hot by C2 %v, a loop %v", hot, osr)
		}
	}
}

// TestLiveCodeCache parses every blob and decodes all its scopes. It compares the nmethods with the JVM's own list.
func TestLiveCodeCache(t *testing.T) {
	eachLive(t, []string{"-Xmx128m"}, func(t *testing.T, v *live) {
		v.awaitCode(t)
		type code struct {
			id     int32
			method string
			level  uint8
		}
		want := map[uint64]code{}
		// Compiler.codelist: id level state method [header, code begin - code end].
		row := regexp.MustCompile(`^(\d+) (-?\d+) (-?\d+) (\S+)\((.*)\)\S+ \[0x(\w+), 0x(\w+) - 0x(\w+)\]`)
		list := ""
		if v.jdk.Version > 8 { // JDK 8 has no such command
			list = v.jcmd(t, "Compiler.codelist")
		}
		for _, line := range strings.Split(list, "\n") {
			if m := row.FindStringSubmatch(line); m != nil {
				id, _ := strconv.Atoi(m[1])
				level, _ := strconv.Atoi(m[2])
				begin, _ := strconv.ParseUint(m[7], 16, 64)
				want[begin] = code{int32(id), m[4], uint8(level)}
			}
		}
		kinds := map[BlobKind]int{}
		seen, scopes, inlined, maxDepth, osr := 0, 0, 0, 0, 0
		err := v.vm.eachBlock(func(h *codeHeap, blk block) error {
			b, err := v.vm.blobAt(h, blk.addr)
			if errors.Is(err, ErrChanged) || errors.Is(err, ErrNoBlob) {
				return nil // this block was just compiled or freed
			}
			if err != nil {
				return fmt.Errorf("block at %#x: %w", blk.addr, err)
			}
			kinds[b.Kind]++
			if b.Kind == OtherBlob && !b.Kind.IsNmethod() && b.FrameSize != 0 {
				t.Errorf("%q of frame size %d is of no kind", b.Name, b.FrameSize)
			}
			if !b.Kind.IsNmethod() {
				return nil
			}
			if c, ok := want[b.Begin]; ok {
				got := code{b.CompileID, b.Method.Full(), b.Level}
				if got == c {
					seen++
				} else if got.id == c.id {
					t.Errorf("%#x: %+v, the JVM says %+v", b.Begin, got, c)
				}
			}
			if b.OSR {
				osr++
			}
			if b.OSR != (b.OSREntry != 0) {
				t.Errorf("%s: OSR %v, entered at %#x", b.Method.Full(), b.OSR, b.OSREntry)
			}
			if b.VerifiedEntry == 0 || b.StubBegin == 0 || b.Kind == Nmethod && b.DeoptHandlers[0] < b.StubBegin {
				t.Errorf("%s: entry %#x, stubs %#x, handlers %#x", b.Method.Full(), b.VerifiedEntry, b.StubBegin, b.DeoptHandlers)
			}
			for i := 1; i < b.debug.count()-1; i++ {
				s, err := v.vm.decodeScopes(b, i)
				if err != nil {
					if again, e := v.vm.blobAt(h, blk.addr); e != nil || again.CompileID != b.CompileID {
						return nil // this block was just freed
					}
					return fmt.Errorf("%s, record %d: %w", b.Method.Full(), i, err)
				}
				scopes++
				inlined += len(s) - 1
				maxDepth = max(maxDepth, len(s))
				for _, sc := range s {
					if sc.BCI >= int32(sc.Method.CodeSize) {
						t.Errorf("%s: bci %d of %d", sc.Method.Full(), sc.BCI, sc.Method.CodeSize)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v; %d of %d in the list agree; %d records, %d inlined, %d deep", kinds, seen, len(want), scopes, inlined,
			maxDepth)
		if list != "" && (seen < len(want)*8/10 || seen < 50) {
			t.Errorf("only %d of the %d nmethods that the JVM lists", seen, len(want))
		}
		for _, k := range []BlobKind{Nmethod, NativeWrapper, MethodHandleIntrinsic, InterpreterBlob, Adapter, VtableStub,
			StubRoutines, RuntimeStub, Safepoint, Deopt, UncommonTrap, Exception} {
			if kinds[k] == 0 {
				t.Errorf("no blob of kind %s", k)
			}
		}
		if inlined == 0 || maxDepth < 3 || osr == 0 {
			t.Errorf("%d inlined, %d deep, %d entered in a loop", inlined, maxDepth, osr)
		}
		checkStubs(t, v)
	})
}

func checkStubs(t *testing.T, v *live) {
	t.Helper()
	entries := map[string]bool{}
	for pc := v.vm.interp.begin; pc < v.vm.interp.end; pc += 16 {
		if c, ok := v.vm.Codelet(pc); ok && c.Role == MethodEntry {
			entries[v.vm.Describe(c)] = true
			if c.Begin%32 != 0 { // CodeEntryAlignment is at least this in all releases, on both CPUs
				t.Errorf("%q begins at %#x", v.vm.Describe(c), c.Begin)
			}
		}
	}
	for _, want := range []string{"method entry point (kind = zerolocals)", "method entry point (kind = native)"} {
		if !entries[want] && !entries["native "+want] {
			t.Errorf("no codelet %q among %d entries", want, len(entries))
		}
	}
	if b, err := v.vm.Blob(v.vm.CallStubReturn()); err != nil || b.Kind != StubRoutines {
		t.Errorf("the call stub is in %+v, %v", b, err)
	}
	first, ok := v.vm.firstStub()
	b, err := v.vm.Blob(first.begin)
	if !ok || err != nil || !v.vm.UnwindsException(b, first.begin) || !v.vm.UnwindsException(b, first.end) {
		// If the JVM names its stubs, this name is the JVM's own.
		t.Errorf("the first stub is %+v, in the JVM's own words %q to %q", first, v.vm.StubName(first.begin),
			v.vm.StubName(first.end))
	}
	names := map[string]bool{}
	v.vm.StubName(v.vm.code.begin)
	for _, s := range v.vm.stubs.stubs {
		if name := v.vm.StubName(s.begin); name == "" {
			t.Errorf("stub %q is not found by its pc", s.name)
		}
		names[strings.TrimSuffix(s.name, "_avx3")] = true // JDK 17 adds the variant for the CPU to the name
	}
	stubs := []string{"jbyte_disjoint_arraycopy", "updateBytesCRC32"}
	if v.jdk.Version == 8 { // JDK 8 exports fewer
		stubs = stubs[1:]
	}
	for _, want := range stubs {
		if !names[want] {
			t.Errorf("no stub %q among %d", want, len(names))
		}
	}
}

// TestLiveLines compares line tables with the output of javap.
func TestLiveLines(t *testing.T) {
	eachLive(t, []string{"-Xmx128m"}, func(t *testing.T, v *live) {
		v.awaitCode(t)
		dir, err := compileSample()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(v.jdk.Tool("javap"), "-c", "-l", "-p", "-cp", dir, "Sample").Output()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]lineEntry{}
		var method string
		head, row := regexp.MustCompile(`^  \S.*?(\w+)\(.*\).*;$`), regexp.MustCompile(`line (\d+): (\d+)`)
		for _, text := range strings.Split(string(out), "\n") {
			if m := row.FindStringSubmatch(text); m != nil {
				line, _ := strconv.Atoi(m[1])
				bci, _ := strconv.Atoi(m[2])
				want[method] = append(want[method], lineEntry{uint16(bci), uint16(line)})
			} else if m := head.FindStringSubmatch(text); m != nil {
				method = m[1]
			}
		}
		checked := 0
		err = v.vm.eachBlock(func(h *codeHeap, blk block) error {
			b, err := v.vm.blobAt(h, blk.addr)
			if err != nil || b.Method == nil || b.Method.Class != "Sample" || want[b.Method.Name] == nil {
				return nil
			}
			m := b.Method
			if !slices.Equal(m.lines, want[m.Name]) || m.File != "Sample.java" {
				t.Errorf("%s in %s: %v, javap says %v", m.Full(), m.File, m.lines, want[m.Name])
			}
			checked++
			return nil
		})
		if err != nil || checked < 3 {
			t.Errorf("%d methods checked, %v", checked, err)
		}
	})
}

// TestLiveNamedMethods looks up methods by the names in invokes. If the interpreter has resolved an invoke, the JVM's
// own result must be the same.
func TestLiveNamedMethods(t *testing.T) {
	eachLive(t, []string{"-Xmx128m"}, func(t *testing.T, v *live) {
		v.awaitCode(t)
		resolved, found := 0, 0
		err := v.vm.eachBlock(func(h *codeHeap, blk block) error {
			b, err := v.vm.blobAt(h, blk.addr)
			if err != nil || b.Method == nil {
				return nil
			}
			code, _ := v.vm.Bytecodes(b.Method)
			for i := range code {
				e, ok := v.vm.invokeEntry(b.Method, &code[i])
				if !ok || e.method == 0 || code[i].Handle {
					continue // it is not resolved, has an index in a vtable, or is linked to a method that it does not name
				}
				resolved++
				switch named := v.vm.namedMethod(b.Method, e.constant); named {
				case e.method:
					found++
				case 0:
				default:
					t.Errorf("%s@%d calls %#x, by its name %#x", b.Method.Full(), code[i].BCI, e.method, named)
				}
			}
			return nil
		})
		if err != nil || resolved < 100 || found < resolved*9/10 {
			t.Errorf("%d of %d found by name, %v", found, resolved, err)
		}
		t.Logf("%d of %d found by name", found, resolved)
	})
}

// TestLiveFieldOffsets finds the offsets that getfields and putfields access. They agree with the class that declares
// the field.
func TestLiveFieldOffsets(t *testing.T) {
	eachLive(t, []string{"-Xmx128m"}, func(t *testing.T, v *live) {
		v.awaitCode(t)
		resolved, found := 0, 0
		err := v.vm.eachBlock(func(h *codeHeap, blk block) error {
			b, err := v.vm.blobAt(h, blk.addr)
			if err != nil || b.Method == nil {
				return nil
			}
			klass, _ := v.vm.mem.Ptr(b.Method.pool.addr + uint64(v.vm.l.method.poolHolder))
			own, err := v.vm.fieldsOf(klass)
			if err != nil {
				return err
			}
			code, _ := v.vm.Bytecodes(b.Method)
			for i := range code {
				at, ok := v.vm.FieldOffset(b.Method, &code[i])
				if !ok {
					continue
				}
				resolved++
				if slices.ContainsFunc(own, func(f javaField) bool { return f.offset == uint64(at) }) {
					found++
				}
			}
			return nil
		})
		t.Logf("of %d accesses, %d are of a field that the method's own class declares", resolved, found)
		if err != nil || resolved < 40 || found < resolved*4/5 {
			t.Errorf("of %d accesses, only %d are of a field that the method's own class declares, %v", resolved, found, err)
		}
	})
}

func TestLiveNotHotSpot(t *testing.T) {
	p, err := process.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := Open(p); !errors.Is(err, ErrNotHotSpot) {
		t.Errorf("%v, want ErrNotHotSpot", err)
	}
}

// TestLiveOnlyBelow: if a record shows which method is inlined at an invoke of a virtual method, and the hierarchy has
// only one method, both are the same.
func TestLiveOnlyBelow(t *testing.T) {
	eachLive(t, []string{"-Xmx128m", "-Xcomp", "-XX:TieredStopAtLevel=1"}, func(t *testing.T, v *live) {
		inlined, same, abstract := 0, 0, 0
		err := v.vm.eachBlock(func(h *codeHeap, blk block) error {
			b, err := v.vm.blobAt(h, blk.addr)
			if err != nil || b.Method == nil {
				return nil
			}
			for pc := range b.Records() {
				scopes, err := v.vm.Scopes(b, pc, true)
				for i := 1; i < len(scopes) && err == nil; i++ {
					caller := scopes[i]
					code, _ := v.vm.Bytecodes(caller.Method)
					at := BytecodeAt(code, caller.BCI)
					if at < 0 || code[at].Op != OpInvoke {
						continue
					}
					e, ok := v.vm.invokeEntry(caller.Method, &code[at])
					if !ok || e.method != 0 {
						continue
					}
					inlined++
					klass := v.vm.poolKlass(caller.Method.pool, e.constant)
					only := v.vm.onlyBelow(klass, e.table)
					switch {
					case only == nil:
					case only == scopes[i-1].Method:
						same++
						if v.vm.inVtable(klass, e.table) != only.Addr {
							abstract++
						}
					default:
						t.Errorf("%s@%d: %s is inlined, the hierarchy has %s", caller.Method.Full(), caller.BCI,
							scopes[i-1].Method.Full(), only.Full())
					}
				}
			}
			return nil
		})
		t.Logf("%d inlined methods, of %d the hierarchy tells the same; %d are of a class below", inlined, same, abstract)
		if err != nil || same == 0 {
			t.Error(same, err)
		}
	})
}
