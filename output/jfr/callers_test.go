package jfr

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"goprof/profile"
)

// TestSharedCallers: stacks with the same last frames, by numbers or by bytes, are read as they were written. The file
// is of two writers, in some chunks each: a key has a different meaning for each writer.
func TestSharedCallers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var file bytes.Buffer
	var want []string
	for _, of := range []string{"shop", "bank"} {
		w := NewWriter(&file, Options{})
		for i := range 4000 {
			s := randomStack(random, of)
			want = append(want, stackText(s))
			at := moment(time.Duration(i) * 50 * time.Millisecond)
			if err := w.Sample(&profile.Sample{At: at, Thread: worker, Stack: s, CPU: 1}); err != nil {
				t.Fatal(err)
			}
		}
		finish(t, w, moment(200*time.Second))
	}
	numbers, shared := map[uint64]string{}, 0
	r := NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), func(name string, _ bool) bool {
		return name == "jdk.ExecutionSample"
	})
	for i := range want {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		got := stackText(e.Stack)
		if got != want[i] {
			t.Fatalf("stack %d:\n%s\nwant\n%s", i, got, want[i])
		}
		if text, met := numbers[e.StackNumber]; met && text != got {
			t.Fatalf("number %d is that of\n%s\nand of\n%s", e.StackNumber, text, got)
		}
		numbers[e.StackNumber] = got
		if n := len(r.stacks.record.frames); n < len(e.Stack.Frames) {
			shared++
		}
	}
	if shared < len(want)/4 {
		t.Errorf("of %d stacks only %d took callers from others", len(want), shared)
	}
}

// randomStack returns a stack of few methods and lines, so that many such stacks differ by one number. Methods have
// keys of one byte and of two. The second byte of these is also the key of another method.
func randomStack(random *rand.Rand, of string) *profile.Stack {
	s := &profile.Stack{}
	for range 1 + random.IntN(3) {
		name := fmt.Sprintf("%s.Cart%d.add", of, random.IntN(3))
		if random.IntN(3) == 0 {
			name = fmt.Sprintf("%s.Part%d.of", of, random.IntN(200))
		}
		s.Frames = append(s.Frames, javaFrame(profile.C2, name, int32(random.IntN(2)*300), int32(random.IntN(2)*150)))
	}
	for depth := range random.IntN(9) {
		s.Frames = append(s.Frames, javaFrame(profile.C1, fmt.Sprintf("%s.Main.run%d", of, depth%7), 200, 1))
	}
	if random.IntN(3) == 0 {
		s.Truncated = profile.Reason(1 + random.IntN(2))
	}
	return s
}

func stackText(s *profile.Stack) string {
	text := s.Truncated.String()
	for _, f := range s.Frames {
		text += fmt.Sprintf("\n%s %v %d %d", f.Func.Name, f.Kind, f.Line, f.BCI)
	}
	return text
}

// TestSameEnd compares the result with a simple implementation.
func TestSameEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		a, b := make([]byte, random.IntN(30)), make([]byte, random.IntN(30))
		for _, text := range [][]byte{a, b} {
			for i := range text {
				text[i] = byte(random.IntN(40) / 39)
			}
		}
		want := 0
		for want < min(len(a), len(b)) && a[len(a)-1-want] == b[len(b)-1-want] {
			want++
		}
		if got := sameEnd(a, b); got != want {
			t.Fatalf("%v and %v: %d, not %d", a, b, got, want)
		}
	}
}

// TestTable: constants of one chunk are not used for the next one, for small and for large keys.
func TestTable(t *testing.T) {
	var table table[string]
	for _, key := range []uint64{0, 7, lowKeys - 1, lowKeys, 1 << 60} {
		table.begin()
		table.keepFirst(key, "first")
		table.keepFirst(key, "second")
		if got := table.get(key); got != "first" || !table.has(key) {
			t.Errorf("%d: %q", key, got)
		}
		table.begin()
		if got := table.get(key); got != "" || table.has(key) {
			t.Errorf("%d in the next chunk: %q", key, got)
		}
	}
	if got := table.last(7); got != "first" {
		t.Errorf("the last of 7: %q", got)
	}
}

// TestTableChanges: a table reports that a key has a new meaning, in the next chunk or in a later one. It reports
// nothing for new keys.
func TestTableChanges(t *testing.T) {
	for _, key := range []uint64{7, lowKeys, 1 << 60} {
		var table table[string]
		for i, c := range []struct {
			key   uint64
			value string
			want  bool
		}{{key, "a", false}, {key, "a", false}, {key + 1, "b", false}, {key, "b", true}, {key, "b", false}} {
			table.begin()
			table.keepFirst(c.key, c.value)
			if got := table.takeChanged(); got != c.want {
				t.Errorf("%d, chunk %d: changed %v", key, i, got)
			}
		}
	}
	var many table[string]
	many.begin()
	for key := range uint64(maxRest + 1) {
		many.keepFirst(lowKeys+key, "a")
	}
	if many.begin(); len(many.rest) != 0 || !many.takeChanged() {
		t.Errorf("%d keys are remembered", len(many.rest))
	}
}

// TestCallersOfEachChunk: a chunk has the methods of its stacks, even if a stack of the last chunk had the same
// callers.
func TestCallersOfEachChunk(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	stack := stackOn(javaFrame(profile.C2, "shop.Cart.add", 1, 1))
	for i := range 2 {
		at := moment(time.Duration(i) * 2 * maxChunkLength)
		if err := w.Sample(&profile.Sample{At: at, Thread: worker, Stack: stack, CPU: 1}); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, w, moment(2*maxChunkLength))
	r := eachEvent(t, bytes.NewReader(file.Bytes()), func(e *Event) {
		if e.Name == "jdk.ExecutionSample" && stackText(e.Stack) != stackText(stack) {
			t.Errorf("%s\nwant\n%s", stackText(e.Stack), stackText(stack))
		}
	})
	if r.Chunks() != 2 {
		t.Errorf("%d chunks", r.Chunks())
	}
}
