//go:build linux

package jfr

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// hit is one sample of an event, for tests.
type hit struct {
	kind  profile.EventKind
	about string // "": the leaf is code
	bytes int64
	count int64
}

var (
	allocKind = profile.EventKind{Name: "alloc", Unit: profile.Bytes}
	throwKind = profile.EventKind{Name: "exceptions"}
	writeKind = profile.EventKind{Name: "libc:write"}
	callKind  = profile.EventKind{Name: "libc_write"} // a type of its own would have the same name
)

var hits = []hit{
	{allocKind, "byte[]", 65536, 1}, {allocKind, "shop.Cart[][]", 1 << 40, 1}, {allocKind, profile.UnknownClass, 512, 1},
	{throwKind, "shop.SoldOut", 0, 1}, {throwKind, "shop.SoldOut", 0, 10},
	{profile.EventKind{Name: "class-load"}, "shop.Cart$1", 0, 2},
	{profile.EventKind{Name: "malloc", Unit: profile.Bytes}, "", 4096, 1},
	{writeKind, "", 0, 1}, {callKind, "", 0, 7},
	{profile.EventKind{Name: "safepoint"}, "VM_GC_Oops", 0, 1},
}

// hitsFile is a recording of all hits, in two chunks.
func hitsFile(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, Options{})
	w.SetMeta(profile.Meta{Version: "1", PID: 4711, Mode: "alloc,exceptions"})
	code := []profile.Frame{{Func: &profile.Func{Name: "schedule"}, Kind: profile.Kernel, BCI: -1},
		{Func: &profile.Func{Name: "shop.Main.main"}, Kind: profile.C2, Line: 3, BCI: 2}}
	for i, h := range hits {
		s := profile.Sample{At: profile.Instant{Wall: int64(i) * 1e9, Ticks: int64(i) * 1e9}, NoState: true, Event: &h.kind,
			Thread: profile.Thread{TID: 7, Name: "main"}, Count: h.count, Bytes: h.bytes, About: h.about != ""}
		s.Stack = &profile.Stack{Frames: code}
		if s.About {
			leaf := profile.Frame{Func: &profile.Func{Name: h.about}, Kind: profile.Native, BCI: -1}
			s.Stack = &profile.Stack{Frames: append([]profile.Frame{leaf}, code...)}
		}
		err := w.Sample(&s)
		if i == len(hits)/2 && err == nil {
			err = w.Flush(s.At)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	end := profile.Instant{Wall: 1e11, Ticks: 1e11}
	sum := profile.Summary{Events: []profile.EventCount{{Name: "alloc", Unit: profile.Bytes, Hits: 3, Amount: 9}}}
	if err := w.Account(end, &sum); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(end); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestHits: what an event was about is its class, and not a frame. Each event has its amount. No two kinds share a
// type.
func TestHits(t *testing.T) {
	types := map[string]profile.EventKind{}
	i := 0
	eachEvent(t, bytes.NewReader(hitsFile(t)), func(e *Event) {
		h := hits[i]
		if known, ok := types[e.Name]; ok && known != h.kind {
			t.Errorf("%s is of %v, and of %v", e.Name, known, h.kind)
		}
		types[e.Name] = h.kind
		if e.Class != h.about || e.Bytes != h.bytes || h.bytes == 0 && e.Samples != h.count {
			t.Errorf("%+v is %s with %q, %d bytes, %d", h, e.Name, e.Class, e.Bytes, e.Samples)
		}
		if len(e.Stack.Frames) != 2 || e.Stack.Frames[0].Kind != profile.Kernel || e.Stack.Frames[1].Kind != profile.C2 {
			t.Errorf("%+v: %+v", h, e.Stack)
		}
		i++
	})
	if i != len(hits) {
		t.Errorf("%d of %d", i, len(hits))
	}
	for name, kind := range map[string]string{allocationEvent: "alloc", exceptionEvent: "exceptions",
		classDefineEvent: "class-load", "goprof.event.malloc": "malloc", "goprof.event.libc_write": "libc:write",
		"goprof.event.libc_write_": "libc_write"} {
		if types[name].Name != kind {
			t.Errorf("%s is of %q, not of %q", name, types[name].Name, kind)
		}
	}
}

// TestRedactHits: classes are renamed, but not byte[] and the name for a class that could not be read.
func TestRedactHits(t *testing.T) {
	out, _ := redacted(t, hitsFile(t))
	classes := map[string]bool{}
	eachEvent(t, bytes.NewReader(out), func(e *Event) { classes[e.Class] = true })
	if !classes[profile.UnknownClass] || !classes["byte[]"] || classes["shop.SoldOut"] {
		t.Errorf("%v", classes)
	}
}

// TestDescriptor: a class's name and the JVM's name for the class convert into each other.
func TestDescriptor(t *testing.T) {
	for name, want := range map[string]string{"byte[]": "[B", "shop.Cart[][]": "[[Lshop.Cart;", "boolean": "boolean",
		"shop.Cart": "shop.Cart", profile.UnknownClass: "unknown class", "[]": "[]"} {
		if got := descriptor(name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
		if got := className(want); got != name {
			t.Errorf("%s is %s, not %s", want, got, name)
		}
	}
}

// TestJDKReadsHits: the JDK's own command finds the same hits in the file, and knows the classes.
func TestJDKReadsHits(t *testing.T) {
	needsJDK(t)
	name := writeFile(t, "hits.jfr", hitsFile(t))
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if _, err := os.Stat(jdk.Tool("jfr")); err != nil {
			t.Skip("it has no jfr command")
		}
		type class struct{ Name string }
		var all struct {
			Recording struct {
				Events []struct {
					Type   string
					Values struct {
						ObjectClass, ThrownClass, DefinedClass, About *class
						Weight, Samples, Bytes                        int64
					}
				}
			}
		}
		text := jvmtest.JFRTool(t, jdk, "print", "--json", "--events",
			"ObjectAllocationSample,JavaExceptionThrow,ClassDefine,goprof.event.*", name)
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v\n%.500s", err, text)
		}
		if len(all.Recording.Events) != len(hits) {
			t.Fatalf("%d events of %d:\n%.2000s", len(all.Recording.Events), len(hits), text)
		}
		for i, e := range all.Recording.Events {
			v, h := &e.Values, hits[i]
			if got := v.Weight + v.Bytes; got != h.bytes || h.bytes == 0 && v.Samples != h.count {
				t.Errorf("%+v is %+v", h, e)
			}
			for _, c := range []*class{v.ObjectClass, v.ThrownClass, v.DefinedClass, v.About} {
				if c != nil && className(strings.ReplaceAll(c.Name, ".", "/")) != h.about && c.Name != h.about {
					t.Errorf("%+v is about %q", h, c.Name)
				}
			}
		}
		if jdk.Version < 21 {
			return // older JDKs have no jfr view
		}
		out := jvmtest.JFRTool(t, jdk, "view", "allocation-by-class", name)
		if !regexp.MustCompile(`byte\[\]`).MatchString(out) {
			t.Errorf("no byte[] in\n%s", out)
		}
	})
}

// TestOwnEventsAreBounded: the metadata of a recording is bounded, however many events are recorded.
func TestOwnEventsAreBounded(t *testing.T) {
	var types eventTypes
	for i := range 3 * maxOwnEvents {
		types.of(&profile.EventKind{Name: strings.Repeat("x", i)})
	}
	if len(types.list) != maxOwnEvents || len(types.metadata) > 1<<16 {
		t.Errorf("%d types, %d bytes", len(types.list), len(types.metadata))
	}
}
