package dumps

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goprof/output"
	"goprof/profile"
)

func someDump() []profile.ThreadDump {
	return []profile.ThreadDump{
		{TID: 1, Name: "main \"x\"\n", State: "in native",
			Stack: profile.Stack{Truncated: profile.StackCut, Frames: []profile.Frame{
				{Func: &profile.Func{Name: "read", Module: "/lib/libc.so.6"}, Kind: profile.Native, BCI: -1, PC: 0xffffffffffff1234,
					SP: 0x10},
				{Func: &profile.Func{Name: "java.io.FileInputStream.read0", File: "FileInputStream.java"},
					Kind: profile.NativeMethod, Line: 0, BCI: -1, PC: 1, SP: 0x20},
				{Func: &profile.Func{Name: "a.B.inlined", File: "B.java"}, Kind: profile.Inlined, Line: 12, BCI: 0,
					Sure: profile.Likely},
				{Func: &profile.Func{Name: "a.B.owner", File: "B.java"}, Kind: profile.C2, Level: 4, Line: 34, BCI: 7, PC: 2,
					SP: 0x30, FP: 0x38},
				{Func: &profile.Func{Name: "[no unwind info: lib.so]"}, Kind: profile.Gap, BCI: -1},
			}}},
		{TID: 2, Name: "gone", Err: "thread gone"},
	}
}

func TestDumpJSON(t *testing.T) {
	var b strings.Builder
	if err := JSON(&b, &profile.Dump{Threads: someDump()}, Shape{}); err != nil {
		t.Fatal(err)
	}
	const text = `{"threads":[
	 {"tid":1,"name":"main \"x\"\n","state":"in native","truncated":"stack longer than its copy","frames":[
	  {"name":"read","kind":"native","module":"/lib/libc.so.6","pc":"0xffffffffffff1234","sp":"0x10"},
	  {"name":"java.io.FileInputStream.read0","kind":"native-method","file":"FileInputStream.java","pc":"0x1","sp":"0x20"},
	  {"name":"a.B.inlined","kind":"inlined","certainty":"likely","file":"B.java","line":12,"bci":0},
	  {"name":"a.B.owner","kind":"c2","file":"B.java","line":34,"bci":7,"level":4,"pc":"0x2","sp":"0x30","fp":"0x38"},
	  {"name":"[no unwind info: lib.so]","kind":"gap"}]},
	 {"tid":2,"name":"gone","frames":[],"error":"thread gone"}]}`
	sameJSON(t, b.String(), text)
	b.Reset()
	if err := JSON(&b, &profile.Dump{}, Shape{}); err != nil || strings.Contains(b.String(), "null") {
		t.Errorf("no threads: %s, %v", b.String(), err)
	}
}

func TestDumpText(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, &profile.Dump{Threads: someDump()}, Shape{}); err != nil {
		t.Fatal(err)
	}
	got := wordsOfLines(b.String())
	want := []string{
		`"main "x"?" tid=1 in native`,
		"read libc.so.6 native",
		"java.io.FileInputStream.read0 - native-method",
		"a.B.inlined B.java:12 inlined",
		"a.B.owner B.java:34 c2",
		"[no unwind info: lib.so] - gap",
		"(truncated: stack longer than its copy)",
		"",
		`"gone" tid=2`,
		"(no stack: thread gone)",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// sameJSON compares the meaning of two texts.
func sameJSON(t *testing.T, text, wanted string) {
	t.Helper()
	var got, want any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(wanted), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// wordsOfLines returns the lines of a text with single spaces between words.
func wordsOfLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

// longestWrite is the size of the largest write so far.
type longestWrite int

func (l *longestWrite) Write(b []byte) (int, error) {
	*l = max(*l, longestWrite(len(b)))
	return len(b), nil
}

// TestDumpJSONInPieces: JSON of many threads is written thread by thread, and is never in memory as a whole. The text
// is the same as if it were written at once.
func TestDumpJSONInPieces(t *testing.T) {
	d := &profile.Dump{PID: 7, Threads: make([]profile.ThreadDump, 200)}
	for i := range d.Threads {
		d.Threads[i] = profile.ThreadDump{TID: i + 1, Name: "\"threads\": [", Java: true,
			Stack: profile.Stack{Frames: make([]profile.Frame, 100)}}
	}
	var longest longestWrite
	if err := JSON(&longest, d, Shape{}); err != nil || longest > 64<<10 {
		t.Errorf("%d bytes at once: %v", longest, err)
	}
	for _, n := range []int{0, 1, 200} {
		some := *d
		some.Threads = d.Threads[:n]
		var pieces, all strings.Builder
		err := errors.Join(JSON(&pieces, &some, Shape{}), output.WriteJSON(&all, jsonOf(&some, Shape{})))
		if err != nil {
			t.Fatal(err)
		}
		if pieces.String() != all.String() {
			t.Errorf("%d threads: pieces %.300s\nall %.300s", n, pieces.String(), all.String())
		}
	}
}
