package dumps

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"goprof/output"
	"goprof/profile"
)

// FuzzDump writes dumps with arbitrary names.
func FuzzDump(f *testing.F) {
	f.Add("main", "java.lang.Thread.run", "Thread.java", uint64(0x7f0012345678), int32(12))
	f.Add("a\nb\x00\xff\u202e", "x;\x1b[31m", "\t", uint64(0), int32(-1))
	f.Fuzz(func(t *testing.T, thread, name, file string, pc uint64, line int32) {
		fn := &profile.Func{Name: name, File: file, Module: file}
		lock := profile.Lock{Kind: profile.Monitor, Class: name, ID: pc}
		dump := profile.ThreadDump{TID: 1, Name: thread, State: file, Java: true,
			Holds:    []profile.HeldLock{{Lock: lock, Frame: int(line)}, {Lock: lock, Frame: 1}},
			WaitsFor: &profile.WantedLock{Lock: lock, How: profile.ToEnter, Owner: profile.ThreadRef{TID: 1, Name: thread}}}
		for k := profile.Interpreted; k <= profile.StateFrame; k++ {
			dump.Stack.Frames = append(dump.Stack.Frames,
				profile.Frame{Func: fn, Kind: k, Line: line, BCI: line, PC: pc, SP: pc})
		}
		d := &profile.Dump{PID: 1, MainClass: name, VM: thread, Version: file, Threads: []profile.ThreadDump{dump, dump},
			Deadlocks: [][]profile.ThreadRef{{{TID: 1, Name: thread}}}}
		var b bytes.Buffer
		if err := JSON(&b, d, Shape{Group: true, Native: true}); err != nil {
			t.Fatal(err)
		}
		var back jsonDump
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || len(back.Threads) != 2 ||
			len(back.Threads[0].Frames) != len(dump.Stack.Frames) || len(back.Groups) != 1 {
			t.Fatalf("%v: %s", err, b.Bytes())
		}
		for _, write := range []func(io.Writer) error{
			func(w io.Writer) error { return Text(w, d, Shape{}) },
			func(w io.Writer) error { return Text(w, d, Shape{Group: true, Native: true}) },
			func(w io.Writer) error { return Jstack(w, d) },
			func(w io.Writer) error { return MovesText(w, []*profile.Dump{d, d}) },
			func(w io.Writer) error { return SeriesJSON(w, []*profile.Dump{d, d}, Shape{}) },
		} {
			b.Reset()
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			if bytes.ContainsFunc(b.Bytes(), func(r rune) bool { return r != '\n' && r != '\t' && output.Unsafe(r) }) {
				t.Fatalf("%q", b.Bytes())
			}
		}
	})
}
