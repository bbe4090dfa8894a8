//go:build linux

package heapdump_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/heap/heapdump"
	"goprof/session"
	"goprof/testdata/hprofread"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// held makes a heap dump of a JVM that stands still. It also returns the counts of a GC.class_histogram -all that is
// made afterwards.
func held(t *testing.T, jdk jvmtest.JDK, blank bool, flags ...string) (dump []byte, counts map[string]int) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.HeapHeld", append([]string{"-Xmx128m"}, flags...)...)
	s, err := session.Attach(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	var res *heapdump.Result
	var failed error
	for range 20 { // a collection may be moving objects; it ends soon
		out.Reset()
		err = s.Hold(nil, jvmtest.Slow(time.Minute), func(threads func(func(*heapdump.Thread)), cut <-chan struct{}) {
			opt := heapdump.Options{At: time.Now(), Threads: threads, Blank: blank, Cancel: cut}
			res, failed = heapdump.Write(&out, s.VM, opt)
		})
		if !errors.Is(failed, vmstructs.ErrMoving) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if missing := res.Missing(); res.Lost > 0 || res.Unread.Memory > 0 || res.UnreadClasses > 0 ||
		res.CutStacks > 0 || res.NoLocals > 0 || res.NoGlobals {
		t.Errorf("missing: %q", missing)
	}
	if blank {
		return out.Bytes(), nil
	}
	counts = map[string]int{}
	text, err := exec.Command(jdk.Tool("jcmd"), strconv.Itoa(jvm.PID), "GC.class_histogram", "-all").CombinedOutput()
	if err != nil {
		t.Fatalf("jcmd: %v: %s", err, text)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 4 && strings.HasSuffix(f[0], ":") {
			n, _ := strconv.Atoi(f[1])
			counts[f[3]] += n
		}
	}
	return out.Bytes(), counts
}

// forms are the JVM options of this test.
var forms = [][]string{{"-XX:+UseSerialGC"}, {"-XX:+UseParallelGC", "-XX:-UseCompressedOops"}, {"-XX:+UseG1GC"},
	{"-XX:+UseShenandoahGC", "-XX:+IgnoreUnrecognizedVMOptions"}, {"-XX:+UseZGC", "-XX:+IgnoreUnrecognizedVMOptions"},
	{"-XX:+ZGenerational", "-XX:+UseZGC", "-XX:+IgnoreUnrecognizedVMOptions"},
	{"-XX:+UseConcMarkSweepGC", "-XX:+IgnoreUnrecognizedVMOptions"}}

// TestLive: classes, counts, values, paths, threads and roots are those of the program. If GOPROF_JDKS names no JDKs,
// one collector is enough.
func TestLive(t *testing.T) {
	some := forms
	if os.Getenv("GOPROF_JDKS") == "" {
		some = forms[2:3]
	}
	for _, flags := range some {
		t.Run(flags[0][5:], func(t *testing.T) {
			jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
				if z := slices.Contains(flags, "-XX:+UseZGC"); z && (jdk.Version < 17 || jdk.Version > 26) ||
					flags[0] == "-XX:+UseConcMarkSweepGC" && jdk.Version > 13 {
					t.Skip("it has no such collector, or ZGC of 11 or 27, which exports too little")
				}
				data, counts := held(t, jdk, false, flags...)
				d := hprofread.Parse(data)
				checkCounts(t, d, counts)
				checkValues(t, d)
				checkRoots(t, d)
			})
		})
	}
}

// checkCounts compares the counts of the program's classes, and only the sum of all others, because jcmd makes some
// objects itself.
func checkCounts(t *testing.T, d *hprofread.Dump, counts map[string]int) {
	t.Helper()
	for name, want := range map[string]int{"Node": 2501, "Sub": 2500, "Holder": 1} {
		java := "truth.HeapHeld$" + name
		c := d.ByName("truth/HeapHeld$" + name)
		if c == nil || c.Count != want || counts[java] != want {
			t.Errorf("%s: %+v, %d in the JVM's own count, want %d", name, c, counts[java], want)
		}
	}
	same := 0
	for name, n := range counts {
		if c := d.ByName(strings.ReplaceAll(name, ".", "/")); c != nil && name[0] != '[' && c.Count == n {
			same++
		}
	}
	if same < len(counts)/2 {
		t.Errorf("of %d classes %d have the JVM's own count", len(counts), same)
	}
}

func checkValues(t *testing.T, d *hprofread.Dump) {
	t.Helper()
	c := d.ByName("truth/HeapHeld")
	for name, want := range map[string]uint64{"aLong": 0x1122334455667788, "aDouble": 0x4004000000000000, "aBoolean": 1,
		"aChar": 'x', "aShort": 0xfff9, "aByte": 0xfd, "aFloat": 0x3fa00000, "anInt": 0xfffe1dc0} {
		if c.Statics[name] != want {
			t.Errorf("%s is %#x, want %#x", name, c.Statics[name], want)
		}
	}
	if text := d.Text(c.Statics["secret"]); text != "the secret \u4e2d" {
		t.Errorf("secret is %q", text)
	}
	node := c.Statics["head"]
	for i := 4999; i >= 0; i-- {
		if d.Get(node, "number") != uint64(i) || d.Get(node, "stamp") != uint64(i)*1000003 ||
			d.Get(node, "tag") != uint64(uint8(i)) || d.Text(d.Get(node, "name")) != fmt.Sprint("node-", i) {
			t.Fatalf("node %d", i)
		}
		if i%2 == 1 && (d.Get(node, "extra") != 77 || d.Get(node, "weight") != 0x400c000000000000) {
			t.Fatalf("sub %d", i)
		}
		node = d.Get(node, "next")
	}
	if big := d.Objects[c.Statics["big"]]; big.Len != 1_000_000 || big.Data[4*big.Len-1] != 42 {
		t.Error("the large array")
	}
	if table := d.Objects[d.Get(c.Statics["CACHE"], "table")]; d.Classes[table.Class].Name != "[Ljava/util/HashMap$Node;" {
		t.Error("the table of the map")
	}
}

// checkRoots checks that the dump has the object that only a thread's stack refers to.
func checkRoots(t *testing.T, d *hprofread.Dump) {
	t.Helper()
	var thread uint32
	for serial, object := range d.Threads {
		if d.Classes[d.Objects[object].Class].Name == "truth/HeapHeld$Holder" {
			thread = serial
		}
	}
	if !slices.Contains(d.Traces[thread], "truth/HeapHeld$Holder.run") {
		t.Errorf("the holder's stack is %q", d.Traces[thread])
	}
	rooted := false
	for _, r := range d.Roots {
		o := d.Objects[r.Object]
		if o == nil && d.Classes[r.Object] == nil {
			t.Errorf("root %#x %#x is no object", r.Tag, r.Object)
		}
		if o != nil && r.Thread == thread && d.Classes[o.Class] != nil &&
			d.Classes[o.Class].Name == "truth/HeapHeld$Node" && d.Get(r.Object, "number") == 777777 {
			rooted = true
		}
	}
	if !rooted {
		t.Error("what the holder's stack holds is no root")
	}
}

// TestMoving: while a collector moves objects concurrently, Write refuses to make a dump. In each successful dump,
// every reference of the objects that the program keeps leads to an object.
func TestMoving(t *testing.T) {
	some := []string{"-XX:+UseZGC -XX:ZCollectionInterval=0.2 -XX:+ZGenerational -XX:ZCollectionIntervalMinor=0.1",
		"-XX:+UseShenandoahGC -XX:ShenandoahGCHeuristics=aggressive", "-XX:+UseZGC -XX:ZCollectionInterval=0.2"}
	if os.Getenv("GOPROF_JDKS") == "" {
		some = some[:1]
	}
	for _, flags := range some {
		t.Run(flags, func(t *testing.T) {
			jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) { moving(t, jdk, flags) })
		})
	}
}

func moving(t *testing.T, jdk jvmtest.JDK, flags string) {
	if jdk.Version < 17 || jdk.Version > 26 && strings.Contains(flags, "UseZGC") {
		t.Skip("its collectors that move objects beside the program export too little")
	}
	jvm := jvmtest.Start(t, jdk, "truth.HeapLeaks", append(strings.Fields("-Xmx128m -XX:+UnlockDiagnosticVMOptions "+
		"-XX:+IgnoreUnrecognizedVMOptions "+flags), "--")...)
	jvm.Command("garbage 20")
	for _, way := range []string{"1", "2", "4", "8"} {
		jvm.Command("healthy " + way)
	}
	s, err := session.Attach(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	moving, dumps, shenandoah := 0, 0, strings.Contains(flags, "Shenandoah") // Shenandoah moves objects most of the time
	for tries := 0; tries < 1000 && (dumps < 8 || shenandoah && moving == 0 && dumps < 50); tries++ {
		var out bytes.Buffer
		var failed error
		err := s.Hold(nil, jvmtest.Slow(time.Minute), func(threads func(func(*heapdump.Thread)), cut <-chan struct{}) {
			_, failed = heapdump.Write(&out, s.VM, heapdump.Options{Threads: threads, Cancel: cut})
		})
		if errors.Is(failed, vmstructs.ErrMoving) {
			moving++
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		dumps++
		checkKept(t, hprofread.Parse(out.Bytes()))
	}
	t.Logf("%d dumps; %d times objects were being moved", dumps, moving)
	if dumps == 0 || shenandoah && moving == 0 {
		t.Errorf("%d dumps, %d times objects were being moved", dumps, moving)
	}
}

// checkKept follows the program's maps and lists.
func checkKept(t *testing.T, d *hprofread.Dump) {
	t.Helper()
	statics := d.ByName("truth/HeapLeaks").Statics
	seen, orders, lost := map[uint64]bool{0: true}, 0, 0
	for _, name := range []string{"CACHE", "LRU", "QUEUE", "BATCH", "snapshot"} {
		for todo := []uint64{statics[name]}; len(todo) > 0; {
			id := todo[len(todo)-1]
			if todo = todo[:len(todo)-1]; seen[id] || d.Classes[id] != nil {
				continue
			}
			seen[id] = true
			o := d.Objects[id]
			if o == nil {
				lost++
				continue
			}
			if c := d.Classes[o.Class]; c != nil && c.Name == "truth/HeapLeaks$Order" {
				orders++
			}
			todo = append(todo, d.Refs(o)...)
		}
	}
	if lost > 0 || orders < 3000+4000+2000 {
		t.Errorf("%d references lead to no object; %d orders were met", lost, orders)
	}
}

// TestBlank: the dump has the shape of the heap, but no numbers and no texts.
func TestBlank(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		data, _ := held(t, jdk, true)
		d := hprofread.Parse(data)
		for _, o := range d.Objects {
			if o.Type > 2 && len(bytes.Trim(o.Data, "\x00")) > 0 {
				t.Fatal("an array has values")
			}
		}
		c := d.ByName("truth/HeapHeld")
		n := 0
		for node := c.Statics["head"]; node != 0; node = d.Get(node, "next") {
			if n++; d.Get(node, "number") != 0 || d.Get(node, "stamp") != 0 {
				t.Fatal("a field has a value")
			}
		}
		if c.Statics["aLong"] != 0 || n != 5000 {
			t.Errorf("%#x, %d nodes", c.Statics["aLong"], n)
		}
	})
}

// TestReader: the library that VisualVM uses finds the same classes, values, stacks and roots, and so does the parser
// of Eclipse MAT.
func TestReader(t *testing.T) {
	jars, jdk := jvmtest.Readers(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, target jvmtest.JDK) {
		for _, flag := range []string{"-XX:+UseG1GC", "-XX:+UseZGC"} {
			t.Run(flag, func(t *testing.T) {
				if flag == "-XX:+UseZGC" && target.Version > 26 {
					t.Skip("ZGC of 27 exports too little")
				}
				read(t, jars, jdk, target, flag)
			})
		}
	})
}

func read(t *testing.T, jars string, jdk, target jvmtest.JDK, flag string) {
	data, _ := held(t, target, false, flag)
	file := filepath.Join(t.TempDir(), "heap.hprof")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out := jdk.Java(t, "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", filepath.Join(jars, "*"),
		"../../testdata/readers/ReadHeapDump.java", file, "truth.HeapHeld")
	for _, want := range []string{"\nclass truth.HeapHeld$Node 2501\n", "\nclass truth.HeapHeld$Sub 2500\n",
		"\nstatic anInt -123456\n", "\nstatic secret \"the secret \u4e2d\"\n",
		"\nnested truth.HeapHeld$Node 2501 rooted 1\n", `key="longs" value=long[][1, 2, 3, -4]*4`, `name="node-4999"`} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q", want)
		}
	}
	d := hprofread.Parse(data)
	for line := range strings.Lines(out) {
		var name string
		var n int
		if _, err := fmt.Sscanf(line, "class %s %d", &name, &n); err != nil || n == 0 || name == "java.lang.Class" {
			continue
		}
		count := 0
		for _, c := range d.Classes {
			if vmstructs.JavaName(c.Name) == name {
				count += c.Count
			}
		}
		if !strings.HasSuffix(name, "[]") && count != n {
			t.Errorf("%s: %d, want %d", name, n, count)
		}
	}
	out = jdk.Java(t, "-cp", filepath.Join(jars, "*"), "../../testdata/readers/ReadWithMAT.java", file,
		"truth.HeapHeld")
	nodes := "600000\n"
	if strings.Contains(flag, "ZGC") { // references have eight bytes
		nodes = ""
	}
	for _, want := range []string{"\nclass truth.HeapHeld$Node 2501\n", "\nclass truth.HeapHeld$Sub 2500\n",
		"\nclass truth.HeapHeld$Holder 1\n", "\nframe at truth.HeapHeld$Holder.run (HeapHeld.java:44)\n",
		"\nstatic aDouble 2.5\n", "\nstatic big retains 40000", "\nstatic anInt -123456\n",
		"\nstatic head retains " + nodes} {
		if !strings.Contains(out, want) {
			t.Errorf("MAT does not print %q", want)
		}
	}
	if strings.Contains(out, "WARNING") || strings.Contains(out, "ERROR") {
		t.Errorf("MAT says: %s", out)
	}
}
