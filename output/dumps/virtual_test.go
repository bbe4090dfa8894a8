package dumps

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goprof/profile"
)

// virtualDump has a carrier that runs a virtual thread, a carrier that runs a virtual thread with an unknown root, and
// a virtual thread without a carrier.
func virtualDump() []profile.ThreadDump {
	frame := func(name string) profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: name, File: "V.java"}, Kind: profile.C2, Level: 4, Line: 3, BCI: 1}
	}
	return []profile.ThreadDump{
		{TID: 7, Name: "worker-1", State: "RUNNABLE",
			Stack: profile.Stack{Mounted: true, Carrier: 1, Truncated: profile.NoUnwindInfo,
				Virtual: profile.VirtualThread{ID: 31, Name: "a\nb"}, Frames: []profile.Frame{frame("v.V.run"), frame("c.C.run")}}},
		{TID: 8, Name: "worker-2", Stack: profile.Stack{Mounted: true, Truncated: profile.Continuation,
			Frames: []profile.Frame{frame("v.V.top")}}},
		{Virtual: &profile.VirtualThread{ID: 32}, State: "parked",
			Stack: profile.Stack{Frames: []profile.Frame{frame("v.V.park")}}},
	}
}

func TestDumpVirtualJSON(t *testing.T) {
	var b strings.Builder
	census := &profile.VirtualCensus{Seen: 3, Shown: 1, Unread: map[string]int{"x": 1}}
	if err := JSON(&b, &profile.Dump{Threads: virtualDump(), Virtual: census}, Shape{}); err != nil {
		t.Fatal(err)
	}
	const rest = `"kind":"c2","file":"V.java","line":3,"bci":1,"level":4`
	const text = `{"threads":[
	 {"tid":7,"name":"worker-1","state":"RUNNABLE","virtual":{"id":31,"name":"a\nb"},"frames":[{"name":"v.V.run",` + rest + `}],
	  "carrier":[{"name":"c.C.run",` + rest + `}],"carrier_truncated":"no unwind info"},
	 {"tid":8,"name":"worker-2","virtual":{"id":0,"name":""},"frames":[{"name":"v.V.top",` + rest + `}],
	  "truncated":"continuation in the heap","carrier_truncated":"continuation in the heap"},
	 {"name":"","state":"parked","virtual":{"id":32,"name":""},"frames":[{"name":"v.V.park",` + rest + `}]}],
	 "virtual_threads":{"seen":3,"shown":1,"unread":{"x":1}}}`
	sameJSON(t, b.String(), text)
}

func TestDumpVirtualText(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, &profile.Dump{Threads: virtualDump()}, Shape{}); err != nil {
		t.Fatal(err)
	}
	got := wordsOfLines(b.String())
	want := []string{
		`"worker-1" tid=7 RUNNABLE`,
		`virtual thread #31 "a?b"`,
		"v.V.run V.java:3 c2",
		"its carrier",
		"c.C.run V.java:3 c2",
		"(truncated: no unwind info)",
		"",
		`"worker-2" tid=8`,
		"virtual thread #?",
		"v.V.top V.java:3 c2",
		"(truncated: continuation in the heap)",
		"",
		"--- virtual threads that no carrier ran",
		"",
		"virtual thread #32 parked",
		"v.V.park V.java:3 c2",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
