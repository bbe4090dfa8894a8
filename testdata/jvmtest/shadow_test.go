//go:build linux

package jvmtest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The shadow of a stopped thread must be consistent: it has its root, and no depth of something else. (The program
// itself compares it with the JVM's stack traces.)
func TestShadowOfStoppedThread(t *testing.T) {
	ForEachJDK(t, func(t *testing.T, jdk JDK) {
		path := filepath.Join(t.TempDir(), "shadow")
		jvm := Start(t, jdk, "truth.Shadow", "-XX:PerMethodRecompilationCutoff=100000000", "--", path, "2", "7", "storm")
		shadow, err := OpenShadow(path)
		if err != nil {
			t.Fatal(err)
		}
		defer shadow.Close()
		seen := map[string]bool{}
		deepest := 0
		// If the machine is busy with other things, the program may not get far between two stops.
		for round := 0; round < 300 || round < 10_000 && (len(seen) < 15 || deepest < 30); round++ {
			stopAll(t, jvm.PID)
			threads, err := shadow.Threads()
			if err := syscall.Kill(jvm.PID, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, thread := range threads {
				if !thread.Running || len(thread.Frames) == 0 {
					t.Fatalf("thread %d does not run, or has no frames", thread.TID)
				}
				if root := thread.Frames[len(thread.Frames)-1]; root.Method != "truth.Shadow.run" || root.Line == 0 {
					t.Fatalf("root %v", root)
				}
				for _, caller := range thread.Frames[1:] {
					if caller.Line == 0 {
						t.Fatalf("%s has called something from line 0", caller.Method)
					}
				}
				for _, frame := range thread.Frames {
					seen[frame.Method] = true
				}
				deepest = max(deepest, len(thread.Frames))
			}
			time.Sleep(2 * time.Millisecond)
		}
		if len(seen) < 15 || deepest < 30 {
			t.Errorf("only %d methods were seen, %d deep", len(seen), deepest)
		}
		if _, err := shadow.Thread(1); err == nil {
			t.Error("init has a shadow")
		}
	})
}

// stopAll stops a process and waits until each of its threads stands.
func stopAll(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		for {
			stat, err := os.ReadFile(task)
			if err != nil {
				break // the thread has ended
			}
			_, rest, _ := strings.Cut(string(stat), ") ")
			if strings.HasPrefix(rest, "T") {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
}

func shadowFile(entries ...uint32) []byte {
	data := make([]byte, shadowHeader+regionEntries+8*entrySize)
	copy(data, shadowMagic)
	binary.LittleEndian.PutUint32(data[8:], 1)
	binary.LittleEndian.PutUint32(data[12:], regionEntries+8*entrySize)
	binary.LittleEndian.PutUint32(data[16:], 8)
	region := data[shadowHeader:]
	binary.LittleEndian.PutUint32(region, 42)
	binary.LittleEndian.PutUint32(region[4:], stateRunning)
	binary.LittleEndian.PutUint32(region[8:], uint32(len(entries)/2))
	for i, word := range entries {
		binary.LittleEndian.PutUint32(region[regionEntries+4*i:], word)
	}
	return data
}

const someNames = "1\tp.C.root\n2\tp.C.leaf\n3\tp.C.lambda$a$*\n"

func TestParseShadow(t *testing.T) {
	s, err := ParseShadow(shadowFile(1, 10, 2, 20), strings.NewReader(someNames))
	if err != nil {
		t.Fatal(err)
	}
	thread, err := s.Thread(42)
	if err != nil || len(thread.Frames) != 2 || thread.Frames[0] != (ShadowFrame{"p.C.leaf", 20}) ||
		thread.Frames[1] != (ShadowFrame{"p.C.root", 10}) {
		t.Errorf("%v, %v", thread, err)
	}
	if name, ok := s.Name("p.C.lambda$a$17"); !ok || name != "p.C.lambda$a$*" {
		t.Errorf("lambda: %q, %v", name, ok)
	}
	if _, ok := s.Name("java.lang.Thread.run"); ok {
		t.Error("a library method is known")
	}

	for what, damage := range map[string]func([]byte){
		"magic":       func(d []byte) { d[0] = 0 },
		"threads":     func(d []byte) { d[8] = 2 },
		"many":        func(d []byte) { d[11] = 0xff },
		"region size": func(d []byte) { d[12] = 8 },
	} {
		data := shadowFile(1, 10)
		damage(data)
		if _, err := ParseShadow(data, strings.NewReader(someNames)); err == nil {
			t.Errorf("damaged %s is taken", what)
		}
	}
	for what, entries := range map[string][]uint32{"unknown id": {9, 1}, "too deep": make([]uint32, 16+2)} {
		s, err := ParseShadow(shadowFile(entries[:min(len(entries), 16)]...), strings.NewReader(someNames))
		if err != nil {
			t.Fatal(err)
		}
		if what == "too deep" {
			s.data[shadowHeader+8] = 9
		}
		if _, err := s.Thread(42); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

func TestJudge(t *testing.T) {
	names := &Shadow{known: map[string]bool{"a": true, "b": true, "c": true, "d": true}}
	shadow := []ShadowFrame{{"c", 30}, {"b", 20}, {"a", 10}}
	frame := func(method string, line int) WalkedFrame { return WalkedFrame{Method: method, Line: line} }
	top := func(method string, line int) WalkedFrame { return WalkedFrame{Method: method, Line: line, Top: true} }
	inlined := func(method string, line int) WalkedFrame {
		return WalkedFrame{Method: method, Line: line, Top: true, Inlined: true}
	}
	a, b, c, d := frame("a", 10), frame("b", 20), frame("c", 33), frame("d", 1)
	push, lib := frame("truth.ShadowStack.push", 1), frame("lib", 1)
	for what, test := range map[string]struct {
		walk []WalkedFrame
		want Verdict
	}{
		"the same":             {[]WalkedFrame{c, b, a}, Exact},
		"others between":       {[]WalkedFrame{lib, c, lib, b, a}, Exact},
		"noting its call":      {[]WalkedFrame{push, c, b, a}, Exact},
		"noting that it comes": {[]WalkedFrame{push, d, c, b, a}, AtPushOrPop},
		"reaching for its note": {[]WalkedFrame{frame("truth.Shadow$Inner.shadow", 1),
			{Method: "d", Line: 1, Inlined: true}, c, b, a}, AtPushOrPop},
		"noting, with one too many":           {[]WalkedFrame{push, d, d, c, b, a}, Mismatch},
		"entering":                            {[]WalkedFrame{d, c, b, a}, OneMore},
		"entering, compiled":                  {[]WalkedFrame{top("d", 1), c, b, a}, OneMore},
		"entering, inlined":                   {[]WalkedFrame{inlined("d", 1), top("c", 33), b, a}, InlinedDiffer},
		"a note far below":                    {[]WalkedFrame{d, push, c, b, a}, OneMore},
		"leaving by exception":                {[]WalkedFrame{b, a}, OneLess},
		"one missing, inlined":                {[]WalkedFrame{top("b", 20), a}, InlinedDiffer},
		"one missing, inlined into a library": {[]WalkedFrame{top("lib", 1), b, a}, InlinedDiffer},
		"two missing, inlined":                {[]WalkedFrame{top("a", 10)}, Mismatch}, // b is not in that code
		"two more":                            {[]WalkedFrame{d, d, c, b, a}, Mismatch},
		"two more, inlined": {[]WalkedFrame{inlined("d", 1), inlined("d", 1), top("c", 30), b, a},
			InlinedDiffer},
		"wrong line of a caller":      {[]WalkedFrame{c, frame("b", 21), a}, Mismatch},
		"wrong line in the top frame": {[]WalkedFrame{inlined("c", 33), top("b", 21), a}, InlinedDiffer},
		"wrong line of the root":      {[]WalkedFrame{inlined("c", 33), top("b", 20), frame("a", 11)}, Mismatch},
		"caller skipped":              {[]WalkedFrame{c, a}, Mismatch},
		"root missing":                {[]WalkedFrame{c, b}, Mismatch},
		"nothing":                     {nil, Mismatch},
		"wrong method":                {[]WalkedFrame{d, b, a}, Mismatch},
	} {
		walk := Walk{test.walk, map[string]bool{"c": true, "d": true}}
		if what != "two missing, inlined" {
			walk.Code["b"] = true
		}
		got, err := names.Judge(shadow, walk)
		if got != test.want || (err != nil) != (got == Mismatch) {
			t.Errorf("%s: %v (%v), not %v", what, got, err, test.want)
		}
	}
}

func TestCompareParked(t *testing.T) {
	stacks, err := ParseStacks([]string{
		"THREAD one parked",
		"jdk.internal.misc.Unsafe.park:native",
		"truth.Parked$$Lambda/0x0000000010041450.run:0",
		"truth.Parked.run:55",
		"THREAD two spinning",
		"truth.Spinning.run:*",
	})
	if err != nil {
		t.Fatal(err)
	}
	right := []ShadowFrame{{"jdk.internal.misc.Unsafe.park", 0}, {"truth.Parked$$Lambda+0x1.run", 0},
		{"truth.Parked.run", 55}}
	if err := stacks[0].Compare(right); err != nil {
		t.Error(err)
	}
	if err := stacks[1].Compare([]ShadowFrame{{"x", 1}, {"truth.Spinning.run", 7}}); err != nil {
		t.Error(err)
	}
	wrongLine := append([]ShadowFrame(nil), right...)
	wrongLine[2].Line = 54
	for what, walked := range map[string][]ShadowFrame{"short": right[1:], "long": append(right[:1:1], right...),
		"wrong line": wrongLine, "none": nil} {
		if err := stacks[0].Compare(walked); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if err := stacks[1].Compare(right); err == nil {
		t.Error("a wrong root is taken")
	}
	for _, bad := range []string{"THREAD x", "a.b:1", "THREAD x asleep"} {
		if _, err := ParseStacks([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := ParseStacks([]string{"THREAD x parked", "a.b"}); err == nil {
		t.Error("a frame without a line is taken")
	}
}
