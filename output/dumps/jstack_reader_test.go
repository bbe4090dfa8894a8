//go:build linux

package dumps

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goprof/output"
	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// TestThreadDumpReader: jstall's parser finds in a dump by goprof what was put into it.
func TestThreadDumpReader(t *testing.T) {
	jars, jdk := jvmtest.Readers(t)
	carriers := &profile.Dump{At: appDump().At, Threads: virtualDump()}
	for name, d := range map[string]*profile.Dump{"application": appDump(), "carriers": carriers} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := Jstack(&text, d); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "threads.txt")
			if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			out := jdk.Java(t, "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", filepath.Join(jars, "*"),
				"../../testdata/readers/ReadThreadDump.java", file)
			if diff := cmp.Diff(expectedOfReader(d), strings.Split(strings.TrimSpace(out), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// expectedOfReader is what ReadThreadDump.java must print for a dump.
func expectedOfReader(d *profile.Dump) (lines []string) {
	say := func(parts ...any) {
		texts := make([]string, len(parts))
		for i, p := range parts {
			if texts[i] = fmt.Sprint(p); texts[i] == "" || texts[i] == "0" || p == 0.0 {
				texts[i] = "-"
			}
		}
		lines = append(lines, strings.Join(texts, "\t"))
	}
	vm := d.VM
	if vm == "" {
		vm = "OpenJDK 64-Bit Server VM"
	}
	version := d.Version
	if version == "" {
		version = "?"
	}
	say("VM", "Full thread dump "+vm+" ("+version+"):")
	for i := range d.Threads {
		t := &d.Threads[i]
		if t.TID == 0 {
			continue
		}
		state, _, _ := strings.Cut(jstackStates[t.State], " ")
		if strings.HasPrefix(t.State, compiling) {
			state = "RUNNABLE"
		}
		prio, virtual := t.Priority, uint64(0)
		if t.JavaID == 0 {
			prio = 0
		}
		frames := t.Stack.Frames
		if v, carrier, ok := t.Stack.Split(); ok {
			virtual = v.Virtual.ID
			frames = append(append([]profile.Frame(nil), carrier.Frames...), v.Frames...)
		}
		lines = append(lines, strings.Join([]string{"THREAD", jstackName(t.Name), orDash(t.JavaID),
			fmt.Sprint(t.TID), orDash(prio),
			fmt.Sprint(t.Daemon), textOr(state), javaSeconds(t.CPU.Seconds()), javaAge(t), orDash(int64(virtual))}, "\t"))
		for k := range frames {
			f := &frames[k]
			if !f.Kind.Java() {
				continue
			}
			file, line := f.Func.File, any(f.Line)
			if f.Kind == profile.NativeMethod {
				file = ""
			}
			say("FRAME", output.Printable(f.Func.Name), file, line, f.Kind == profile.NativeMethod)
		}
		lines = append(lines, locksOfReader(t)...)
	}
	for _, cycle := range d.Deadlocks {
		for i, ref := range cycle {
			t, next := d.Thread(ref), cycle[(i+1)%len(cycle)]
			say("DEADLOCK", jstackName(ref.Name), jstackName(next.Name), javaFrames(t), len(locksOfReader(t)))
		}
	}
	return lines
}

func locksOfReader(t *profile.ThreadDump) (lines []string) {
	verbs := map[profile.LockWait]string{profile.ToEnter: "WAITING_TO_LOCK", profile.ToNotify: "WAITING_ON",
		profile.ToUnpark: "PARKING"}
	add := func(op string, l profile.Lock) {
		if l.ID != 0 {
			lines = append(lines, fmt.Sprintf("LOCK\t%s\t0x%016x\t%s", op, l.ID, l.Class))
		}
	}
	if t.WaitsFor != nil {
		add(verbs[t.WaitsFor.How], t.WaitsFor.Lock)
	}
	for _, h := range t.Holds {
		if h.Kind == profile.Monitor && h.Frame >= 0 {
			add("LOCKED", h.Lock)
		}
	}
	return lines
}

func javaFrames(t *profile.ThreadDump) (n int) {
	for i := range t.Stack.Frames {
		if t.Stack.Frames[i].Kind.Java() {
			n++
		}
	}
	return n
}

func orDash[N int | int64](n N) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func textOr(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// javaSeconds returns a time as Java prints a double that was read as milliseconds with two digits.
func javaSeconds(s float64) string {
	ms := fmt.Sprintf("%.2f", s*1000)
	var value float64
	fmt.Sscan(ms, &value)
	text := fmt.Sprint(value / 1000)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func javaAge(t *profile.ThreadDump) string {
	if t.Age == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", t.Age.Seconds())
}
