package jfr

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/profile"
	"goprof/profile/redact"
)

// eachEvent visits all events of a file with a stack. It returns the reader at the file's end.
func eachEvent(t testing.TB, file io.ReaderAt, visit func(*Event)) *Reader {
	t.Helper()
	r := NewReader(file, sizeOf(t, file), nil)
	for {
		e, err := r.Next()
		if err == io.EOF {
			return r
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(e)
	}
}

func sizeOf(t testing.TB, file io.ReaderAt) int64 {
	switch f := file.(type) {
	case *bytes.Reader:
		return f.Size()
	case *os.File:
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	t.Fatalf("a %T", file)
	return 0
}

// TestRoundTrip: reading returns what was written, over several chunks.
func TestRoundTrip(t *testing.T) {
	all, n := stacks(), 0
	r := eachEvent(t, bytes.NewReader(recording(t)), func(e *Event) {
		if e.Name == "jdk.ThreadStart" {
			return
		}
		i := n % 1000 // see aSecond
		want, who := *all[i%len(all)], worker
		if i%3 == 0 {
			who = virtual
		}
		at := moment(time.Duration(n) * time.Millisecond)
		n++
		if e.At != at || e.Thread != who || e.CPU != time.Millisecond || e.State != "STATE_RUNNABLE" || e.Samples != 1 {
			t.Fatalf("sample %d: %+v", n, e)
		}
		if len(want.Frames) == 0 && want.Truncated == profile.Whole {
			if e.Stack != nil { // JDK 21's views fail at a stack without a frame
				t.Fatalf("sample %d has a stack: %+v", n, e.Stack)
			}
			return
		}
		got := profile.Stack{Frames: slices.Clone(e.Stack.Frames), Truncated: e.Stack.Truncated}
		if len(got.Frames) > 0 {
			got.Frames[0].Sure = e.Leaf
		} else {
			got.Frames = want.Frames
		}
		for i := range want.Frames {
			if f := &want.Frames[i]; f.Kind == profile.Stub { // a stub has no file, but the test's frames have one
				f.Func = &profile.Func{Name: f.Func.Name}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("sample %d: %s", n, d)
		}
	})
	if n != 5000 || r.Chunks() != 3 {
		t.Errorf("%d samples in %d chunks", n, r.Chunks())
	}
	if from, to := r.Range(); !from.Equal(epoch) || to.Sub(from) != 5*time.Second {
		t.Errorf("from %v to %v", from, to)
	}
}

func TestRoundTripWall(t *testing.T) {
	state := profile.State(0)
	eachEvent(t, bytes.NewReader(wallRecording(t)), func(e *Event) {
		if e.Name != "profiler.WallClockSample" {
			return
		}
		s, ok := e.ProfileState()
		leaf := e.Stack.Frames[0]
		if !ok || s != state || e.Samples != int64(s)+1 || e.Span != time.Duration(s+1)*10*time.Millisecond ||
			leaf.Kind != profile.StateFrame || leaf.Func.Name != s.Label("") {
			t.Errorf("%v: %+v, leaf %+v", state, e, leaf)
		}
		state++
	})
	if int(state) != len(stateNames) || len(stateNames) != len(profile.StateNames()) {
		t.Errorf("%d of %d states", state, len(profile.StateNames()))
	}
}

// TestSamplesAlone: each sample without a detail after it is returned once, even if the next chunk begins with the
// sources of classes.
func TestSamplesAlone(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	setFacts(w, "wall")
	var want, got []string
	for i := range 7 {
		name := fmt.Sprintf("shop.C%d.run", i)
		want = append(want, name)
		stack := stackOn(javaFrame(profile.C2, name, 7, 7))
		if err := w.Sample(&profile.Sample{At: moment(time.Duration(i) * 40 * time.Second), Thread: worker, Stack: stack,
			Wall:  true,
			Count: 1, Span: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, w, moment(5*time.Minute))
	eachEvent(t, bytes.NewReader(file.Bytes()), func(e *Event) { got = append(got, e.Stack.Frames[0].Func.Name) })
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestFields: the account can also be read back.
func TestFields(t *testing.T) {
	file := bytes.NewReader(recording(t))
	r := NewReader(file, file.Size(), func(name string, _ bool) bool { return strings.HasPrefix(name, "goprof.") })
	var got []string
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		line := e.Name
		for _, f := range e.Fields {
			switch {
			case f.Name == "startTime":
			case f.Text != "":
				line += fmt.Sprintf(" %s=%s", f.Name, f.Text)
			case f.Real != 0:
				line += fmt.Sprintf(" %s=%v", f.Name, f.Real)
			case f.Number != 0:
				line += fmt.Sprintf(" %s=%d", f.Name, f.Number)
			}
		}
		got = append(got, line)
	}
	meta := "goprof.Recording version=1.0 host=host pid=4711 mainClass=shop.Server jvm=OpenJDK 25 " +
		"collector=G1 mode=cpu engine=ptrace interval=1000000 weight=cpu time"
	want := []string{meta, meta, meta,
		"goprof.Account attempted=130 whole=100 truncated=20 lost=10 threads=3 rate=1000 rateReached=998.5",
		"goprof.Unseen reason=no unwind info samples=20",
		"goprof.Unseen lost=1 reason=stale samples=10",
		"goprof.Pauses count=120 median=20000 p99=60000 longest=1000000 total=3000000",
		"goprof.Note name=library-replaced text=libc.so.6 was replaced remedy=restart it",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// readAll reads all fields of all events of a file, to its end or to the first error.
func readAll(file []byte) (n int, err error) {
	every := func(string, bool) bool { return true }
	r := NewReader(bytes.NewReader(file), int64(len(file)), every)
	r.AllFields()
	for err == nil {
		_, err = r.Next()
	}
	r = NewReader(bytes.NewReader(file), int64(len(file)), every)
	for {
		e, err := r.Next()
		if err != nil {
			return n, err
		}
		n += 1 + int(e.Samples&1)
	}
}

// TestCutOff: the whole chunks of a file that was cut off are read. Then the error says where the last chunk begins.
func TestCutOff(t *testing.T) {
	file := recording(t)
	whole, _ := readAll(file)
	for _, size := range []int{len(file) - 1, len(file) / 2, 100} {
		n, err := readAll(file[:size])
		var bad *BadRecording
		if !errors.As(err, &bad) || !bad.Incomplete || n >= whole || string(file[bad.Offset:bad.Offset+3]) != "FLR" {
			t.Errorf("%d of %d bytes: %d events, %v", size, len(file), n, err)
		}
	}
	for size := 0; size < len(file); size += 997 {
		if _, err := readAll(file[:size]); err == io.EOF && size != 0 {
			// A file that is cut at the end of a chunk is a whole file. With any other cut it is not.
			if _, err := readAll(append(file[:size:size], 'F')); err == io.EOF {
				t.Errorf("%d bytes are taken for a whole file", size)
			}
		}
	}
}

// TestHostile: a malicious file ends with an error that says where. That comes soon and takes little memory.
func TestHostile(t *testing.T) {
	huge := appendInt(nil, 1<<63)
	file := smallFile(t)
	constants := int(be64(file[16:]))
	for _, test := range []struct {
		name    string
		problem string
		change  func(b []byte) []byte
	}{
		{"not a recording", "no Flight Recorder file", func(b []byte) []byte { return []byte("PK\x03\x04 and so on") }},
		{"empty", "no Flight Recorder file", func(b []byte) []byte { return nil }},
		{"version 3", "2.x", func(b []byte) []byte { b[5] = 3; return b }},
		{"being written", "never finished", func(b []byte) []byte { b[64] = 1; return b }},
		{"a chunk of 2^62 bytes", "cut off", func(b []byte) []byte { b[8] = 0x40; return b }},
		{"a negative size", "shorter than its header", func(b []byte) []byte { b[8] = 0x80; return b }},
		{"constants in the header", "constants outside", func(b []byte) []byte { putBE64(b[16:], 3); return b }},
		{"constants behind the end", "constants outside", func(b []byte) []byte { putBE64(b[16:], 1<<40); return b }},
		{"a clock that stands", "clock", func(b []byte) []byte { putBE64(b[56:], 0); return b }},
		{"metadata that are constants", "event type 1", func(b []byte) []byte {
			putBE64(b[24:], int64(constants))
			return b
		}},
		{"checkpoints in a loop", "lie behind", func(b []byte) []byte { return withCheckpoint(b, 0, nil) }},
		{"2^63 pools", "a count", func(b []byte) []byte { return withCheckpoint(b, 1, huge) }},
		{"2^63 constants", "a count", func(b []byte) []byte {
			return withCheckpoint(b, 1, append([]byte{1, byte(typeSymbol)}, huge...))
		}},
		{"2^63 frames", "a count", func(b []byte) []byte {
			return withCheckpoint(b, 1, append([]byte{1, byte(typeStackTrace), 1, 9, 0}, huge...))
		}},
		{"a string of 2^63 bytes", "a count", func(b []byte) []byte {
			return withCheckpoint(b, 1, append([]byte{1, byte(typeSymbol), 1, 9, stringUTF8}, huge...))
		}},
		{"constants of no type", "of type 99", func(b []byte) []byte { return withCheckpoint(b, 1, []byte{1, 99, 1, 1}) }},
		{"types in a loop", "more than 16 deep", func(b []byte) []byte {
			loop := []fieldDef{{name: "a", typ: 200}, {name: "b", typ: 200}}
			return withTypes(t, []typeDef{{id: 200, name: "Loop", fields: loop}})
		}},
		{"types without a byte", "structures without end", func(b []byte) []byte {
			var types []typeDef
			for i := range typeID(12) {
				d := typeDef{id: 200 + i, name: fmt.Sprint("T", i)}
				for f := range 9 * min(i, 1) {
					d.fields = append(d.fields, fieldDef{name: fmt.Sprint(f), typ: 200 + i - 1})
				}
				types = append([]typeDef{d}, types...)
			}
			return withTypes(t, types)
		}},
		{"a field of no type", "which there is not", func(b []byte) []byte {
			return withTypes(t, []typeDef{{id: 200, name: "T", fields: []fieldDef{{name: "a", typ: 777}}}})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			begin := time.Now()
			_, err := readAll(test.change(bytes.Clone(file)))
			var bad *BadRecording
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%v", err)
			}
			if d := time.Since(begin); d > 20*time.Second { // the reader does not do a billion steps because a file says so
				t.Errorf("it took %v", d)
			}
		})
	}
}

// TestManyConstants: a reader and redact refuse millions of small constants before these take much memory.
func TestManyConstants(t *testing.T) {
	for _, typ := range []typeID{typeSymbol, typeFrameType, typeStackTrace} {
		var pool []byte
		count := uint64(0)
		for ; len(pool) < 4<<20; count++ {
			pool = append(appendInt(pool, 1<<20+count), make([]byte, leastBytes[typ])...)
		}
		file := withCheckpoint(smallFile(t), 1, append(appendInt([]byte{1, byte(typ)}, count), pool...))
		for name, read := range map[string]func() error{
			"reader": func() error { _, err := readAll(file); return err },
			"redact": func() error {
				by := redact.New(redact.Default(), nil)
				_, err := Redact(io.Discard, bytes.NewReader(file), int64(len(file)), by, nil)
				return err
			},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read()
			runtime.ReadMemStats(&after)
			var bad *BadRecording
			if !errors.As(err, &bad) || !bad.TooMuch {
				t.Errorf("%s, type %d: %v", name, typ, err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 300<<20 {
				t.Errorf("%s, type %d: %d MB for a file of %d MB", name, typ, used>>20, len(file)>>20)
			}
		}
	}
}

// leastBytes is the size of the shortest value of a type, after its key.
var leastBytes = map[typeID]int{typeSymbol: 1, typeFrameType: 1, typeStackTrace: 2}

// smallFile is a chunk with three events.
func smallFile(t testing.TB) []byte {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	if err := w.Sample(&profile.Sample{At: moment(0), Thread: worker, Stack: stacks()[0], CPU: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.ThreadEnd(moment(1), worker); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(moment(2)); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func be64(b []byte) (v int64) {
	for _, c := range b[:8] {
		v = v<<8 | int64(c)
	}
	return v
}

func putBE64(b []byte, v int64) {
	for i := range 8 {
		b[i] = byte(v >> (56 - 8*i))
	}
}

// withCheckpoint adds a checkpoint with these pools to a chunk, before the other checkpoints. Without pools, the
// checkpoint leads to itself.
func withCheckpoint(b []byte, back int64, pools []byte) []byte {
	at := int64(len(b))
	delta := uint64(be64(b[16:]) - at)
	if back == 0 {
		delta, pools = 5, []byte{0}
	}
	body := appendInt([]byte{byte(typeCheckpoint), 0, 0}, delta)
	b = appendEvent(b, append(append(body, 0), pools...))
	putBE64(b[8:], int64(len(b)))
	putBE64(b[16:], at)
	return b
}

// withTypes returns a chunk with these types in its metadata, and one constant of the first type.
func withTypes(t testing.TB, types []typeDef) []byte {
	body := encodeMetadata(append(types, typeTable()...), metadataID)
	metadata := appendEvent(nil, append([]byte{byte(typeMetadata), 0, 0}, body...))
	pools := appendInt([]byte{byte(typeCheckpoint), 0, 0, 0, 0, 1}, uint64(types[0].id))
	constants := appendEvent(nil, append(append(pools, 1, 1), make([]byte, 25)...))
	at := int64(headerSize + len(metadata))
	h := header{size: at + int64(len(constants)), constants: at, metadata: headerSize, ticksPerSec: 1}
	return append(append(h.append(nil), metadata...), constants...)
}

func FuzzRead(f *testing.F) {
	f.Add(smallFile(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		n, err := readAll(file)
		if n > len(file) {
			t.Errorf("%d events in %d bytes", n, len(file))
		}
		var bad *BadRecording
		if err != io.EOF && (!errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > int64(len(file))) {
			t.Errorf("%v", err)
		}
	})
}

// BenchmarkRead reads samples of 60 frames. ns/op is the CPU time of one sample.
func BenchmarkRead(b *testing.B) {
	file := recording(b)
	n := 0
	for b.Loop() {
		eachEvent(b, bytes.NewReader(file), func(*Event) { n++ })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
}

// TestUnwantedStacks: a reader without stacks does not even skip those of goprof's files, where they are most of a
// file.
func TestUnwantedStacks(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	stack := stackOn(javaFrame(profile.C2, "shop.Cart.add", 1, 1))
	if err := w.Sample(&profile.Sample{At: moment(0), Thread: worker, Stack: stack, CPU: 1}); err != nil {
		t.Fatal(err)
	}
	finish(t, w, moment(1))
	data := file.Bytes()
	data[len(data)-1] = 0xff // the last number of the last frame has no end
	for stacks, want := range map[bool]bool{false: true, true: false} {
		r := NewReader(bytes.NewReader(data), int64(len(data)), func(_ string, stack bool) bool { return stack && stacks })
		_, err := r.Next()
		if (err == io.EOF) != want {
			t.Errorf("stacks wanted: %v; %v", stacks, err)
		}
	}
}

// TestDetailOfAnother: a sample has the facts of the detail after it if that has the same time and thread.
func TestDetailOfAnother(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	sample := profile.Sample{At: moment(0), Thread: worker, Stack: stacks()[0], CPU: time.Millisecond}
	if err := errors.Join(w.Sample(&sample), w.Close(moment(time.Second))); err != nil {
		t.Fatal(err)
	}
	data := file.Bytes()
	isDetail := func(name string, _ bool) bool { return name == detailName }
	r := NewReader(bytes.NewReader(data), int64(len(data)), isDetail)
	if _, err := r.Next(); err != io.EOF {
		t.Fatalf("a detail is handed out: %v", err)
	}
	r = NewReader(bytes.NewReader(data), int64(len(data)), isDetail)
	r.nextChunk()
	for of, bad := r.nextEvent(); of == nil || of.name != detailName; of, bad = r.nextEvent() {
		if bad != nil {
			t.Fatal(bad)
		}
	}
	begins := newCursor(data, 0)
	begins.bytes(int(r.base) + r.bodyAt)
	start := begins.at
	begins.int()
	for _, c := range []struct {
		name string
		at   int // the changed byte
		want time.Duration
	}{{"its own", 0, time.Millisecond}, {"of another moment", start, 0}, {"of another thread", begins.at, 0}} {
		changed := bytes.Clone(data)
		if c.at > 0 {
			changed[c.at] ^= 1
		}
		e, err := NewReader(bytes.NewReader(changed), int64(len(changed)), nil).Next()
		if err != nil || e.CPU != c.want {
			t.Errorf("%s: %v of CPU time, %v", c.name, e.CPU, err)
		}
	}
}
