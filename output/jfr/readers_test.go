//go:build linux

package jfr

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
)

// collapsed returns what jvmtest.Converted returns, by our own reader.
func collapsed(t *testing.T, file io.ReaderAt, names ...string) map[string]int64 {
	t.Helper()
	stacks := map[string]int64{}
	eachEvent(t, file, func(e *Event) {
		wanted := false
		for _, name := range names {
			wanted = wanted || name == e.Name
		}
		if !wanted || e.Stack == nil || len(e.Stack.Frames) == 0 {
			return
		}
		var line []string
		if why := e.Stack.Truncated; why != 0 && e.Name != "" {
			line = append(line, truncations[why].Name)
		}
		for i := len(e.Stack.Frames) - 1; i >= 0; i-- {
			line = append(line, e.Stack.Frames[i].Func.Name)
		}
		stacks[strings.Join(line, ";")] += e.Samples
	})
	return stacks
}

func sameStacks(t *testing.T, theirs, ours map[string]int64) {
	t.Helper()
	delete(theirs, "") // the entry of a sample without frames
	if len(theirs) == 0 || !maps.Equal(theirs, ours) {
		t.Errorf("the converter has %d stacks, we have %d", len(theirs), len(ours))
		shown := 0
		for stack, n := range theirs {
			if ours[stack] != n && shown < 10 {
				shown++
				t.Logf("theirs %d, ours %d: %.600s", n, ours[stack], stack)
			}
		}
	}
}

// TestConverter: async-profiler's converter finds the stacks and counts of our files.
func TestConverter(t *testing.T) {
	jars, jdk := jvmtest.Readers(t)
	cpu, wall := recording(t), wallRecording(t)
	sameStacks(t, jvmtest.Converted(t, jars, jdk, writeFile(t, "cpu.jfr", cpu)),
		collapsed(t, bytes.NewReader(cpu), "jdk.ExecutionSample", "jdk.NativeMethodSample"))
	theirs := jvmtest.Converted(t, jars, jdk, writeFile(t, "wall.jfr", wall), "--wall")
	sameStacks(t, theirs, collapsed(t, bytes.NewReader(wall), "profiler.WallClockSample"))
	parked := jvmtest.Converted(t, jars, jdk, writeFile(t, "wall.jfr", wall), "--state", "parked")
	if len(parked) != 1 {
		t.Errorf("%d stacks that are parked: %v", len(parked), parked)
	}
}

// TestConverterHits: like goprof, the converter counts allocations by class. So it reads our amounts as bytes.
func TestConverterHits(t *testing.T) {
	jars, jdk := jvmtest.Readers(t)
	theirs := map[string]int64{}
	for stack, n := range jvmtest.Converted(t, jars, jdk, writeFile(t, "hits.jfr", hitsFile(t)), "--alloc", "--total") {
		leaf := stack[strings.LastIndexByte(stack, ';')+1:]
		theirs[strings.TrimSuffix(leaf, "_[k]")] += n
	}
	for _, h := range hits {
		if h.kind == allocKind && h.about[0] != '[' && theirs[h.about] != h.bytes {
			t.Errorf("%s: %d bytes of %d: %v", h.about, theirs[h.about], h.bytes, theirs)
		}
	}
}

// TestReadsAsyncProfiler: from async-profiler's own recording, goprof reads the same as its converter.
func TestReadsAsyncProfiler(t *testing.T) {
	jars, jdk := jvmtest.Readers(t)
	name := jvmtest.RecordAsync(t, jars, jdk, "event=ctimer,interval=1ms,wall=20ms,alloc=100k,lock=0")
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sameStacks(t, jvmtest.Converted(t, jars, jdk, name, "--cpu"), collapsed(t, file, "jdk.ExecutionSample"))
	sameStacks(t, jvmtest.Converted(t, jars, jdk, name, "--wall"), collapsed(t, file, "profiler.WallClockSample"))
}

// TestJMC: JMC's reader loads our files, and finds each event and its label. Its rules find no fault with them.
func TestJMC(t *testing.T) {
	jars, jdk := jvmtest.Readers(t)
	for name, file := range map[string][]byte{"cpu": recording(t), "wall": wallRecording(t), "hits": hitsFile(t)} {
		program, written := "../../testdata/readers/ReadWithJMC.java", writeFile(t, name+".jfr", file)
		out := jdk.Java(t, "-cp", filepath.Join(jars, "*"), program, written)
		want := []string{"1 events goprof.Account", "label goprof.Account Account", "1 events goprof.Pauses"}
		switch name {
		case "hits":
			allocated := int64(0)
			for _, h := range hits {
				if h.kind == allocKind {
					allocated += h.bytes
				}
			}
			want = append(want, "3 events jdk.ObjectAllocationSample",
				fmt.Sprintf("%d bytes jdk.ObjectAllocationSample", allocated), "2 events jdk.JavaExceptionThrow",
				"1 events jdk.ClassDefine", "1 events goprof.event.malloc", "label goprof.event.malloc malloc")
		case "cpu":
			want = append(want, "2495 events jdk.ExecutionSample", "2505 events jdk.NativeMethodSample",
				"835 top jdk.ExecutionSample shop.Price#round:12", "835 top jdk.NativeMethodSample libjvm#epoll_wait")
		default:
			want = append(want, fmt.Sprintf("%d events profiler.WallClockSample", len(stateNames)))
		}
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no %q in\n%s", name, line, out)
			}
		}
		if strings.Contains(out, "rule") && regexp.MustCompile(`rule \S+ FAILED`).MatchString(out) {
			t.Errorf("a rule failed:\n%s", out)
		}
	}
}
