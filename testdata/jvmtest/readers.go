//go:build linux

package jvmtest

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// What others wrote that reads and writes recordings: the JDK's recorder, async-profiler and its converter, JMC.

// Readers is the folder of the jars that scripts/readers.sh fetched, and a JDK that runs them.
func Readers(t testing.TB) (jars string, jdk JDK) {
	t.Helper()
	jars = os.Getenv("GOPROF_READERS")
	if jars == "" {
		t.Skip("needs JMC's reader and async-profiler's converter: make test-readers")
	}
	for _, jdk = range JDKs(t) {
		if jdk.Version >= 17 {
			return jars, jdk
		}
	}
	t.Skip("they need a JDK from 17 on")
	return "", jdk
}

// Java runs a JVM to its end. A warning is a failure.
func (j JDK) Java(t testing.TB, args ...string) string {
	t.Helper()
	var errors bytes.Buffer
	cmd := exec.Command(j.Tool("java"), args...)
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

// Converted is what async-profiler's converter makes of a JFR file: how much each stack has, root first. What it puts
// behind a name for the sort of its code is taken off.
func Converted(t testing.TB, jars string, jdk JDK, name string, options ...string) map[string]int64 {
	t.Helper()
	jar, err := filepath.Glob(filepath.Join(jars, "jfr-converter-*.jar"))
	if err != nil || len(jar) != 1 {
		t.Fatalf("%v %v", jar, err)
	}
	out := filepath.Join(t.TempDir(), "out.collapsed")
	jdk.Java(t, append(append([]string{"-jar", jar[0], "--dot", "-o", "collapsed"}, options...), name, out)...)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return Stacks(t, string(text))
}

// Stacks are the lines of a collapsed file without their suffixes.
func Stacks(t testing.TB, text string) map[string]int64 {
	t.Helper()
	stacks := map[string]int64{}
	suffix := regexp.MustCompile(`_\[[01ijk]\](;|$)`)
	for line := range strings.Lines(text) {
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

// AsyncProfiler takes async-profiler's library out of its jar.
func AsyncProfiler(t testing.TB, jars string) string {
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
	name := filepath.Join(t.TempDir(), "libasyncProfiler.so")
	if err := os.WriteFile(name, library, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// RecordAsync runs BusyProgram under async-profiler with these options, and returns its recording.
func RecordAsync(t testing.TB, jars string, jdk JDK, options string) string {
	t.Helper()
	dir := t.TempDir()
	source, name := filepath.Join(dir, "Busy.java"), filepath.Join(dir, "async.jfr")
	if err := os.WriteFile(source, []byte(BusyProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := "-agentpath:" + AsyncProfiler(t, jars) + "=start," + options + ",file=" + name
	if out, err := exec.Command(jdk.Tool("java"), agent, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// RecordJFR runs BusyProgram under the JDK's recorder with these events, and returns its recording.
func RecordJFR(t testing.TB, jdk JDK, events []string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0">`)
	for _, event := range events {
		b.WriteString(`<event name="` + event + `"><setting name="enabled">true</setting>` +
			`<setting name="stackTrace">true</setting>`)
		switch {
		case strings.HasSuffix(event, "MethodSample"), event == "jdk.ExecutionSample":
			b.WriteString(`<setting name="period">10 ms</setting>`)
		case event == "jdk.CPUTimeSample":
			b.WriteString(`<setting name="throttle">10 ms</setting>`)
		case strings.Contains(event, "Allocation"):
			b.WriteString(`<setting name="throttle">200/s</setting>`)
		default:
			b.WriteString(`<setting name="threshold">0 ms</setting>`)
		}
		b.WriteString(`</event>`)
	}
	b.WriteString(`</configuration>`)
	dir := t.TempDir()
	settings, name := filepath.Join(dir, "all.jfc"), filepath.Join(dir, "jdk.jfr")
	source := filepath.Join(dir, "Busy.java")
	for file, text := range map[string]string{settings: b.String(), source: BusyProgram} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(jdk.Tool("java"), "-XX:StartFlightRecording=settings="+settings+",filename="+name, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// BusyProgram computes, allocates, waits and parks in two threads for 1.5 seconds, and until each has done 10,000
// turns, some tenths of a second of CPU time: the machine may stand still for as long.
const BusyProgram = `
import java.util.concurrent.locks.LockSupport;
public class Busy {
    static volatile Object sink;
    static synchronized long hold(int n) { long h = n; for (int i = 0; i < n; i++) { h = h * 31 + i; } return h; }
    static long recurse(int d) { return d == 0 ? hold(20_000) : recurse(d - 1) + 1; }
    public static void main(String[] a) throws Exception {
        long end = System.nanoTime() + 1_500_000_000L;
        Thread[] t = new Thread[2];
        for (int i = 0; i < t.length; i++) {
            int depth = 20 + 80 * i;
            t[i] = new Thread(() -> {
                for (long n = 0; n < 10_000 || System.nanoTime() < end; n++) {
                    long x = recurse(depth);
                    if (n % 10 == 0) { sink = new byte[(int) (x & 0xff) * 1000]; }
                    if (n % 100 == 0) { LockSupport.parkNanos(1_000_000); }
                }
            }, "busy \u00e4\u4e16 " + i);
            t[i].start();
        }
        for (Thread x : t) { x.join(); }
    }
}
`
