//go:build linux

package jfr

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
)

// readers is the folder of the jars that scripts/readers.sh fetched.
func readers(t *testing.T) (jars string, jdk jvmtest.JDK) {
	t.Helper()
	jars = os.Getenv("GOPROF_READERS")
	if jars == "" {
		t.Skip("needs JMC's reader and async-profiler's converter: make test-readers")
	}
	for _, jdk = range jvmtest.JDKs(t) {
		if jdk.Version >= 17 {
			return jars, jdk
		}
	}
	t.Skip("they need a JDK from 17 on")
	return "", jdk
}

func java(t *testing.T, jdk jvmtest.JDK, args ...string) string {
	t.Helper()
	var errors bytes.Buffer
	cmd := exec.Command(jdk.Tool("java"), args...)
	cmd.Stderr = &errors
	out, err := cmd.Output()
	// JMC 9.1 warns of the field virtual in every recording, also in those of JDK 21 and later.
	const known = "WARNING: Could not find field with name 'virtual' in reader for 'thread'"
	said := strings.ReplaceAll(errors.String(), known, "")
	if err != nil || strings.Contains(said, "WARNING") || strings.Contains(said, "Exception") {
		t.Fatalf("java %s: %v\n%s%s", strings.Join(args, " "), err, out, errors.String())
	}
	return string(out)
}

// converted is what async-profiler's converter makes of a file: how many samples each stack has, root first. What it
// puts behind a name for the sort of its code is taken off.
func converted(t *testing.T, jars string, jdk jvmtest.JDK, name string, options ...string) map[string]int64 {
	t.Helper()
	jar, err := filepath.Glob(filepath.Join(jars, "jfr-converter-*.jar"))
	if err != nil || len(jar) != 1 {
		t.Fatalf("%v %v", jar, err)
	}
	out := filepath.Join(t.TempDir(), "out.collapsed")
	java(t, jdk, append(append([]string{"-jar", jar[0], "--dot", "-o", "collapsed"}, options...), name, out)...)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	stacks := map[string]int64{}
	suffix := regexp.MustCompile(`_\[[01ijk]\](;|$)`)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		blank := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseInt(line[blank+1:], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		stack := line[:blank]
		for suffix.MatchString(stack) {
			stack = suffix.ReplaceAllString(stack, "$1")
		}
		stacks[stack] += n
	}
	return stacks
}

// collapsed is the same by our own reader.
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
	delete(theirs, "") // of a sample without frames
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

// TestConverter: async-profiler's converter makes of our files the stacks and counts that are in them.
func TestConverter(t *testing.T) {
	jars, jdk := readers(t)
	cpu, wall := recording(t), wallRecording(t)
	sameStacks(t, converted(t, jars, jdk, writeFile(t, "cpu.jfr", cpu)),
		collapsed(t, bytes.NewReader(cpu), "jdk.ExecutionSample", "jdk.NativeMethodSample"))
	theirs := converted(t, jars, jdk, writeFile(t, "wall.jfr", wall), "--wall")
	sameStacks(t, theirs, collapsed(t, bytes.NewReader(wall), "profiler.WallClockSample"))
	parked := converted(t, jars, jdk, writeFile(t, "wall.jfr", wall), "--state", "parked")
	if len(parked) != 1 {
		t.Errorf("%d stacks that are parked: %v", len(parked), parked)
	}
}

// TestReadsAsyncProfiler: of async-profiler's own recording we read what its converter reads.
func TestReadsAsyncProfiler(t *testing.T) {
	jars, jdk := readers(t)
	agent := asyncProfiler(t, jars)
	dir := t.TempDir()
	source, name := filepath.Join(dir, "Busy.java"), filepath.Join(dir, "async.jfr")
	if err := os.WriteFile(source, []byte(busyProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	options := "=start,event=ctimer,interval=1ms,wall=20ms,alloc=100k,lock=0,file=" + name
	cmd := exec.Command(jdk.Tool("java"), "-agentpath:"+agent+options, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sameStacks(t, converted(t, jars, jdk, name, "--cpu"), collapsed(t, file, "jdk.ExecutionSample"))
	sameStacks(t, converted(t, jars, jdk, name, "--wall"), collapsed(t, file, "profiler.WallClockSample"))
}

// asyncProfiler takes the library out of its jar.
func asyncProfiler(t *testing.T, jars string) string {
	t.Helper()
	jar, err := filepath.Glob(filepath.Join(jars, "async-profiler-*.jar"))
	if err != nil || len(jar) != 1 {
		t.Fatalf("%v %v", jar, err)
	}
	z, err := zip.OpenReader(jar[0])
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	folder := map[string]string{"amd64": "linux-x64", "arm64": "linux-arm64"}[runtime.GOARCH]
	from, err := z.Open(folder + "/libasyncProfiler.so")
	if err != nil {
		t.Fatal(err)
	}
	library, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "libasyncProfiler.so", library)
}

// TestJMC: JMC's reader loads our files, finds each event and its label, and its rules have nothing to say against
// them.
func TestJMC(t *testing.T) {
	jars, jdk := readers(t)
	for name, file := range map[string][]byte{"cpu": recording(t), "wall": wallRecording(t)} {
		program, written := "../../testdata/readers/ReadWithJMC.java", writeFile(t, name+".jfr", file)
		out := java(t, jdk, "-cp", filepath.Join(jars, "*"), program, written)
		want := []string{"1 events goprof.Account", "label goprof.Account Account", "1 events goprof.Pauses"}
		if name == "cpu" {
			want = append(want, "2495 events jdk.ExecutionSample", "2505 events jdk.NativeMethodSample",
				"835 top jdk.ExecutionSample shop.Price#round:12", "835 top jdk.NativeMethodSample libjvm#epoll_wait")
		} else {
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
