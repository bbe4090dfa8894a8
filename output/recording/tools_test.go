//go:build linux

package recording

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// TestHotMethods: for a recording by the JDK's own recorder, goprof's table of methods is exactly that of the JDK's
// commands. "jfr print" has every sample. "jfr view hot-methods" has a row for each of at most 25 signatures, so it
// proves nothing for a name with several signatures.
func TestHotMethods(t *testing.T) {
	if testing.Short() {
		t.Skip("starts JVMs: not with -short")
	}
	newest := jvmtest.JDK{}
	for _, jdk := range jvmtest.JDKs(t) {
		if _, err := os.Stat(jdk.Tool("jfr")); err == nil && jdk.Version > newest.Version {
			newest = jdk
		}
	}
	if newest.Version < 21 {
		t.Skip("jfr view is of JDK 21 and later")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if _, err := os.Stat(jdk.Tool("jfr")); err != nil {
			t.Skip("it has no recorder")
		}
		name := jvmtest.RecordJFR(t, jdk, []string{executionSample, nativeSample, "jdk.GarbageCollection", vmOperation})
		printed, viewed, ours := printedMethods(t, newest, name), hotMethods(t, newest, name), selfOf(t, name)
		theirs, signatures := map[string]int64{}, map[string]int{}
		for m, n := range printed {
			theirs[m.name] += n
			signatures[m.name]++
		}
		for method, n := range viewed {
			if signatures[method] == 1 && ours[method] != n {
				t.Errorf("%s: the view has %d, ours %d", method, n, ours[method])
			}
		}
		maps.DeleteFunc(ours, func(_ string, n int64) bool { return n == 0 })
		if !maps.Equal(theirs, ours) {
			t.Errorf("theirs are %v, ours %v", theirs, ours)
		}
		if viewed["Busy.hold"] == 0 { // there are usually some hundreds
			t.Errorf("the view has %v", viewed)
		}
		t.Logf("%d methods, %d of them in the view, %d samples of hold", len(theirs), len(viewed), theirs["Busy.hold"])
	})
}

// signature is a method as in "jfr print".
type signature struct{ name, descriptor string }

// printedMethods returns the number of samples with each method on top.
func printedMethods(t *testing.T, jdk jvmtest.JDK, name string) map[signature]int64 {
	t.Helper()
	var all struct {
		Recording struct {
			Events []struct {
				Values struct {
					StackTrace struct {
						Frames []struct {
							Method struct {
								Type       struct{ Name string }
								Name       string
								Descriptor string
							}
						}
					}
				}
			}
		}
	}
	out := jfrTool(t, jdk, "print", "--json", "--events", executionSample, "--stack-depth", "1", name)
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	methods := map[signature]int64{}
	for _, e := range all.Recording.Events {
		for _, f := range e.Values.StackTrace.Frames {
			of := strings.ReplaceAll(f.Method.Type.Name, "/", ".")
			methods[signature{of + "." + f.Method.Name, f.Method.Descriptor}]++
		}
	}
	return methods
}

// hotMethods returns the rows of "jfr view hot-methods", without parameters.
func hotMethods(t *testing.T, jdk jvmtest.JDK, name string) map[string]int64 {
	t.Helper()
	out := jfrTool(t, jdk, "view", "--width", "1000", "hot-methods", name)
	row := regexp.MustCompile(`(?m)^(\S+)\(.*\) +(\d+) +[\d.,]+%`)
	methods := map[string]int64{}
	for _, m := range row.FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		methods[strings.ReplaceAll(m[1], "/", ".")] += n
	}
	return methods
}

// jfrTool returns the output of the JDK's command for a recording.
func jfrTool(t *testing.T, jdk jvmtest.JDK, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(jdk.Tool("jfr"), args...).Output()
	if err != nil {
		t.Fatalf("jfr %v: %v", args, err)
	}
	return out
}

// selfOf returns goprof's table of methods.
func selfOf(t *testing.T, name string) map[string]int64 {
	t.Helper()
	f, err := Open(name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tree, err := TreeOf(f, SumOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := output.NewReport(tree, "method")
	if err != nil {
		t.Fatal(err)
	}
	self := map[string]int64{}
	for _, row := range r.Rows {
		self[row.Name] = row.Self
	}
	return self
}

// TestAgreesWithConverter: from async-profiler's recordings, goprof reads the same stacks and counts as
// async-profiler's converter, for every kind of event and every weight.
func TestAgreesWithConverter(t *testing.T) {
	jars, jdk := jvmtest.Readers(t)
	name := jvmtest.RecordAsync(t, jars, jdk, "event=ctimer,interval=1ms,wall=20ms,alloc=100k,lock=0")
	for _, c := range []struct {
		event  string
		weight profile.Weight
		flags  []string
	}{
		{"cpu", profile.Samples, []string{"--cpu"}},
		{"wall", profile.Samples, []string{"--wall"}},
		{"alloc", profile.Samples, []string{"--alloc"}},
		{"alloc", profile.Bytes, []string{"--alloc", "--total"}},
		{"lock", profile.Samples, []string{"--lock"}},
	} {
		t.Run(c.event+" "+c.weight.String(), func(t *testing.T) {
			theirs := jvmtest.Converted(t, jars, jdk, name, c.flags...)
			f, err := Open(name, Options{Event: eventOf(c.event), Weight: &c.weight})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			ours := jvmtest.Stacks(t, collapsedOf(t, f, SumOptions{}))
			delete(theirs, "") // the entry of a sample without frames
			delete(ours, "[no stack]")
			if len(theirs) == 0 || !maps.Equal(plainLeaves(theirs), plainLeaves(ours)) {
				t.Errorf("the converter has %d stacks, we have %d", len(theirs), len(ours))
				showDifferences(t, plainLeaves(theirs), plainLeaves(ours))
			}
			t.Logf("%d stacks", len(theirs))
		})
	}
}

// eventOf returns the events that the converter reads for a kind: its locks are monitors and parked threads.
func eventOf(kind string) string {
	if kind == "lock" {
		return "lock,park"
	}
	return kind
}

// plainLeaves removes goprof's note of the class that was waited for: [parked: java.lang.Object].
func plainLeaves(stacks map[string]int64) map[string]int64 {
	leaf := regexp.MustCompile(`;\[(?:parked|blocked): (.*)\]$`)
	plain := map[string]int64{}
	for stack, n := range stacks {
		plain[leaf.ReplaceAllString(stack, ";$1")] += n
	}
	return plain
}

func showDifferences(t *testing.T, theirs, ours map[string]int64) {
	t.Helper()
	shown := 0
	for _, stacks := range []map[string]int64{theirs, ours} {
		for stack := range stacks {
			if ours[stack] != theirs[stack] && shown < 10 {
				shown++
				t.Logf("theirs %d, ours %d: %.800s", theirs[stack], ours[stack], stack)
			}
		}
	}
}

// TestCPUTimeSample: if a recording has both of the JDK's kinds of samples of CPU time, goprof reads the samples that
// the JDK takes by the threads' CPU time. A note says so, and the other kind can be chosen.
func TestCPUTimeSample(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a JVM: not with -short")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 25 {
			t.Skip("jdk.CPUTimeSample is of JDK 25 and later (JEP 509)")
		}
		name := jvmtest.RecordJFR(t, jdk, []string{executionSample, cpuTimeSample})
		for event, want := range map[string]string{
			"": cpuTimeSample, "cpu": cpuTimeSample, executionSample: executionSample,
		} {
			file, err := Open(name, Options{Event: event})
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			i := file.Info()
			looks, cpu := int64(0), time.Duration(0)
			err = file.Each(func(s *profile.Sample) error {
				looks, cpu = looks+s.Looks(), cpu+s.CPU
				return nil
			})
			if err != nil || i.Event != want || looks != file.source.(*jfrFile).counts[want] {
				t.Errorf("--event %q reads %d samples of %s, not %s: %v", event, looks, i.Event, want, err)
			}
			period := time.Duration(looks) * 10 * time.Millisecond // some samples stand for two periods
			if want == cpuTimeSample && (cpu < period || cpu > 2*period) {
				t.Errorf("%d samples of 10 ms are %v", looks, cpu)
			}
			notes := strings.Join(i.Notes, "\n")
			if !strings.Contains(notes, cpuTimeSample) || !strings.Contains(notes, executionSample) {
				t.Errorf("--event %q says %q", event, notes)
			}
		}
	})
}
