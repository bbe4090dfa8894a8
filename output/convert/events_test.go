package convert

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/output/format"
	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
)

// about returns a stack of an event, with what the event was about as its leaf.
func about(name string, kind profile.Kind, s *profile.Stack) *profile.Stack {
	leaf := profile.Frame{Func: &profile.Func{Name: name}, Kind: kind, BCI: -1}
	return &profile.Stack{Frames: append([]profile.Frame{leaf}, s.Frames...)}
}

// eventsFile is a recording of three events. More threads start in it than events occur, and thread starts have stacks,
// too.
func eventsFile(t *testing.T) []byte {
	t.Helper()
	alloc := &profile.EventKind{Name: profile.EventAlloc, Unit: profile.Bytes}
	write := &profile.EventKind{Name: "libc:write"}
	throws := &profile.EventKind{Name: profile.EventExceptions}
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{})
	w.SetMeta(profile.Meta{Version: "1", PID: 4711, Mode: "gc-request,alloc,libc:write,exceptions", Engine: "perf"})
	list := []profile.Sample{
		{Event: write, Stack: stacks[2], Count: 5},
		{Event: alloc, Stack: about("byte[]", profile.Inlined, stacks[0]), About: true, Bytes: 4096, Count: 1},
		{Event: throws, Stack: about("shop.SoldOut", profile.Native, stacks[1]), About: true, Count: 1},
		{Event: alloc, Stack: about("shop.Cart", profile.Kernel, stacks[0]), About: true, Bytes: 1024, Count: 1},
	}
	for i := range list {
		list[i].At, list[i].Thread, list[i].NoState = moment(time.Duration(i)*time.Second), threads[0], true
		if err := w.Sample(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	for range 9 {
		if err := w.ThreadStart(moment(5*time.Second), threads[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(moment(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEvents: each event of a recording can be chosen by the name with which it was recorded. The first one is the
// default. Every format has the event's own counts.
func TestEvents(t *testing.T) {
	data := eventsFile(t)
	lines := map[string]int{"": 2, "alloc": 2, "libc:write": 1, "libc_write": 1, "exceptions": 1}
	for event, want := range map[string][]string{
		// of the events that occurred, the first in the recording's list
		"":           {";byte[]_[i] 4096\n", ";shop.Cart_[k] 1024\n"},
		"libc:write": {"java.lang.System.nanoTime", " 5\n"},
		"libc_write": {"java.lang.System.nanoTime", " 5\n"},
		"alloc":      {";byte[]_[i] 4096\n", ";shop.Cart_[k] 1024\n"},
		"exceptions": {";shop.SoldOut 1\n"},
	} {
		o := recording.Options{Event: event}
		text := string(converted(t, open(t, data, o), format.Collapsed, false))
		for _, part := range want {
			if !strings.Contains(text, part) || strings.Count(text, "\n") != lines[event] {
				t.Errorf("--event %q: no %q in\n%s", event, part, text)
			}
		}
		for _, way := range ways {
			through, o := data, o
			for _, f := range way {
				through = converted(t, open(t, through, o), f, false)
				o = recording.Options{}
			}
			got := plain(string(converted(t, open(t, through, o), format.Collapsed, false)), way)
			want := plain(text, way)
			if slices.Contains(way, format.PProf) { // pprof reads a name with a dot as a Java method, and has no kernel frames
				marks := strings.NewReplacer("_[j]", "", "_[k]", "")
				got, want = marks.Replace(got), marks.Replace(want)
			}
			if got != want {
				t.Errorf("--event %q by %v:\n%s\nwant\n%s", event, way, got, want)
			}
		}
		for _, f := range format.All() {
			if len(converted(t, open(t, data, o), f, false)) == 0 {
				t.Errorf("--event %q: %v is empty", event, f)
			}
		}
	}
	if _, err := recording.Open(recording.Stdin, recording.Options{Stdin: bytes.NewReader(data),
		Event: "alloc,exceptions"}); err == nil {
		t.Error("bytes and exceptions are counted together")
	}
	exceptions := open(t, data, recording.Options{Event: "exceptions"})
	proto := open(t, converted(t, exceptions, format.PProf, false), recording.Options{})
	if w := proto.Info().Weights; len(w) != 1 || w[0] != profile.Samples {
		t.Errorf("pprof has %v: exceptions stand for no time", w)
	}
}
